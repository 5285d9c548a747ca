/** Speech upstreams as aimock plays them, behind a server that keeps every request and can play faults by itself. */
import { LLMock } from "@copilotkit/aimock";
import { type Answer, startUpstream, type UpstreamServer } from "./upstream-server.ts";

export interface SpeechDouble extends AsyncDisposable {
  /** The base URLs of all providers, as settings of the service. */
  readonly env: Record<string, string>;
  readonly front: UpstreamServer;
  /** Says this in reply to every request: its bytes, and of what kind they are. */
  says(audio: Uint8Array, kind: { format: string } | { contentType: string }): void;
  answer(answer: Answer): void;
}

export async function startSpeechDouble(): Promise<SpeechDouble> {
  const mock = new LLMock({ port: 0, logLevel: "silent" });
  const behind = await mock.start();
  const front = await startUpstream();
  const pass: Answer = async (response, { path, headers, body }) => {
    const reply = await fetch(behind + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: String(headers.authorization ?? "Bearer x"),
      },
      body: JSON.stringify(body),
    });
    response.writeHead(reply.status, { "content-type": reply.headers.get("content-type") ?? "" });
    for await (const piece of reply.body ?? []) response.write(piece);
    response.end();
  };
  return {
    env: {
      OPENAI_BASE_URL: `${front.url}/v1`,
      GROQ_BASE_URL: front.url,
      GEMINI_BASE_URL: front.url,
    },
    front,
    says(audio, kind) {
      const text = Buffer.from(audio).toString("base64");
      const reply =
        "format" in kind
          ? { audio: text, format: kind.format }
          : { audio: { b64Json: text, contentType: kind.contentType } };
      mock.reset();
      mock.on({ predicate: () => true }, reply as never);
      front.answer(pass);
    },
    answer: (answer) => front.answer(answer),
    async [Symbol.asyncDispose]() {
      await front[Symbol.asyncDispose]();
      await mock.stop();
    },
  };
}
