/**
 * A provider that a test plays: it speaks chat completions, messages and Gemini, refuses histories that the real ones
 * refuse, and says what the scene of the conversation tells it to. A conversation is known by the last `#word` that the
 * user has written.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Dialect, dialectOf, type Heard } from "./dialects.ts";

/** What the model does with a request. `hold` stops there for as long as the connection lives. */
export interface Act {
  say?: string;
  /** The text comes in pieces of so many characters; default all at once. */
  pieces?: number;
  calls?: { id: string; name: string; args: unknown }[];
  /** Before anything is sent; after the headers; behind the first piece of text. */
  hold?: "request" | "headers" | "middle";
  /** Goes on with a hold when it resolves. */
  until?: Promise<void>;
  /** In place of a reply. */
  fault?: { status: number; body: string; type?: string };
}

export interface Asked extends Heard {
  /** How often a request with as many results of this conversation has come before. */
  attempt: number;
  key: string;
  text: string;
}

export type Scene = (asked: Asked) => Act;

export interface Upstream extends AsyncDisposable {
  url: string;
  /** Addresses and operator keys, as settings of the service. */
  env: Record<string, string>;
  asked: Asked[];
  /** Why histories were refused. */
  refused: string[];
  play(tag: string, scene: Scene): void;
  /** Resolves when so many requests of a conversation have come, and what is to be sent before a hold has been. */
  reached(tag: string, count?: number): Promise<Asked>;
}

export async function startUpstream(): Promise<Upstream> {
  const scenes = new Map<string, Scene>();
  const asked: Asked[] = [];
  const ready = new Map<string, Asked[]>();
  const refused: string[] = [];
  let waiting: (() => void)[] = [];

  const wake = () => {
    for (const each of waiting.splice(0)) each();
  };

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => {});
    let text = "";
    incoming.setEncoding("utf8");
    for await (const piece of incoming) text += piece;
    const dialect = dialectOf(incoming.url ?? "");
    if (!dialect) return void response.writeHead(404).end();
    const heard = dialect.read(JSON.parse(text));
    const attempt = asked.filter(
      (each) => each.tag === heard.tag && each.results.length === heard.results.length,
    ).length;
    const request: Asked = { ...heard, attempt, key: keyOf(incoming), text };
    asked.push(request);
    if (heard.fault) refused.push(`${dialect.name} ${heard.tag}: ${heard.fault} ${text}`);
    const scene = scenes.get(heard.tag);
    const act: Act = heard.fault
      ? { fault: { status: 400, body: JSON.stringify({ error: { message: heard.fault } }) } }
      : (scene?.(request) ?? { say: `heard #${heard.tag}` });
    await perform(dialect, act, response, () => {
      ready.set(heard.tag, [...(ready.get(heard.tag) ?? []), request]);
      wake();
    });
  }

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ url, asked, refused },
    env: {
      OPENAI_BASE_URL: `${url}/v1`,
      ANTHROPIC_BASE_URL: url,
      GEMINI_BASE_URL: `${url}/v1beta`,
      OPENAI_API_KEY: "sk-of-the-operator",
      ANTHROPIC_API_KEY: "sk-ant-of-the-operator",
      GEMINI_API_KEY: "AIza-of-the-operator",
      UPSTREAM_RETRIES: "0",
    },
    play: (tag, scene) => void scenes.set(tag, scene),
    async reached(tag, count = 1) {
      for (;;) {
        const found = ready.get(tag)?.[count - 1];
        if (found) return found;
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    async [Symbol.asyncDispose]() {
      waiting = [];
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function keyOf({ headers }: IncomingMessage): string {
  const bare = headers["x-api-key"] ?? headers["x-goog-api-key"];
  return String(bare ?? headers.authorization?.replace(/^Bearer /, "") ?? "");
}

async function perform(
  dialect: Dialect,
  act: Act,
  response: ServerResponse,
  reached: () => void,
): Promise<void> {
  const held = async (at: Act["hold"]) => {
    if (act.hold !== at) return;
    reached();
    await (act.until ?? new Promise<void>(() => {}));
  };
  await held("request");
  if (act.fault) {
    const { status, body, type = "application/json" } = act.fault;
    response.writeHead(status, { "content-type": type }).end(body);
    return reached();
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  await held("headers");
  const text = act.say ?? "";
  const size = act.pieces ?? Math.max(1, text.length);
  const reply = dialect.reply();
  await write(response, reply.open());
  for (let at = 0; at < text.length; at += size) {
    await write(response, reply.text(text.slice(at, at + size)));
    if (at === 0) await held("middle");
  }
  for (const call of act.calls ?? []) await write(response, reply.call(call));
  await write(response, reply.close());
  response.end();
  if (act.hold === undefined) reached();
}

/** One piece a packet, as far as that can be had. */
function write(response: ServerResponse, text: string): Promise<void> {
  if (text === "" || response.destroyed) return Promise.resolve();
  return new Promise((resolve) => response.write(text, () => resolve()));
}
