/**
 * The upstream of the matrix: aimock, which speaks all four dialects, behind a server that keeps every request as it
 * came and can play by itself what aimock cannot: recorded seals, cut and silent streams, connections that close.
 */
import { type ChatCompletionRequest, type FixtureFileResponse, LLMock } from "@copilotkit/aimock";
import { type Answer, startUpstream, type UpstreamRequest, type UpstreamServer } from "../upstream-server.ts";

export interface Double {
  /** The base URLs of all providers, as settings of the service. */
  readonly env: Record<string, string>;
  /** Answers the next requests, in this order and in the dialect in which they come. */
  script(...replies: FixtureFileResponse[]): void;
  /** Answers by hand, until the next `script`. */
  answer(answer: Answer): void;
  /** The requests since then, as they came. */
  readonly sent: UpstreamRequest[];
  /** Their messages as aimock read them: every dialect in the form of chat completions. */
  histories(): ChatCompletionRequest["messages"][];
  /** Resolves once the request with this number has come. */
  request(n: number): Promise<UpstreamRequest>;
  stop(): Promise<void>;
}

export async function startDouble(): Promise<Double> {
  const mock = new LLMock({ port: 0, logLevel: "silent", chunkSize: 6 });
  const behind = await mock.start();
  const front: UpstreamServer = await startUpstream();
  const pass = passOn(behind);
  return {
    env: {
      OPENAI_BASE_URL: `${front.url}/v1`,
      GROQ_BASE_URL: front.url,
      ANTHROPIC_BASE_URL: front.url,
      GEMINI_BASE_URL: front.url,
    },
    script(...replies) {
      mock.reset();
      let asked = 0;
      mock.on({ predicate: () => true }, () => {
        const reply = replies[asked++];
        if (!reply)
          throw new Error(`The upstream was asked ${asked} times, ${replies.length} were expected.`);
        return reply as never;
      });
      front.answer(pass);
    },
    answer: (answer) => front.answer(answer),
    get sent() {
      return front.requests;
    },
    histories: () => mock.getRequests().map(({ body }) => (body as ChatCompletionRequest).messages),
    request: (n) => front.request(n),
    async stop() {
      await front[Symbol.asyncDispose]();
      await mock.stop();
    },
  };
}

/** What a connection says of itself and of nothing behind it. */
const OF_A_HOP = ["host", "connection", "keep-alive", "content-length", "transfer-encoding"];

function without(headers: Record<string, string>, names: string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
}

/** The same request to the server behind, its reply piece by piece. */
function passOn(behind: string): Answer {
  return async (response, { method, path, headers, body }) => {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const reply = await fetch(behind + path, {
      method,
      headers: without(headers as Record<string, string>, OF_A_HOP),
      ...(method === "POST" ? { body: JSON.stringify(body) } : {}),
      signal: gone.signal,
    });
    const shown = Object.fromEntries(reply.headers);
    response.writeHead(reply.status, without(shown, ["content-encoding", ...OF_A_HOP]));
    for await (const piece of reply.body ?? []) response.write(piece);
    response.end();
  };
}
