/**
 * The model server of the benchmark: replies built once, in OpenAI's and Anthropic's shape, from a process of its own.
 * It costs so little that what is measured beside it is the service. The request says what it wants in its `user` words:
 * `chunks=7`, and `pace=40` for milliseconds between them.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Shape {
  type: "openai" | "anthropic";
  /** The reply in one piece. */
  whole: Buffer;
  head: string;
  /** Around the text of a chunk. */
  before: string;
  after: string;
  tail: string;
}

const WORD = " token";
const PLAIN_CHUNKS = 7;
/** Up to this many chunks leave together, as a short reply does that was there at once. */
const ONE_GO = 16;
/** The clock of paced replies looks for chunks that are due this often. Milliseconds. */
const TICK_MS = 1;

const openai = ((): Shape => {
  const base = `"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"bench-1","service_tier":"default","system_fingerprint":"fp_bench"`;
  const chunk = (delta: string, finish: string) =>
    `data: {${base},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}],"usage":null}\n\n`;
  const [before = "", after = ""] = chunk('{"content":"@"}', "null").split("@");
  const usage = `"usage":{"prompt_tokens":9,"completion_tokens":${PLAIN_CHUNKS},"total_tokens":${9 + PLAIN_CHUNKS}}`;
  const whole = `{"id":"chatcmpl-bench","object":"chat.completion","created":1790000000,"model":"bench-1","choices":[{"index":0,"message":{"role":"assistant","content":"${WORD.repeat(PLAIN_CHUNKS)}","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],${usage}}`;
  return {
    type: "openai",
    whole: Buffer.from(whole),
    head: chunk('{"role":"assistant","content":"","refusal":null}', "null"),
    before,
    after,
    tail: `${chunk("{}", '"stop"')}data: {${base},"choices":[],${usage}}\n\ndata: [DONE]\n\n`,
  };
})();

const anthropic = ((): Shape => {
  const frame = (type: string, fields: string) => `event: ${type}\ndata: {"type":"${type}",${fields}}\n\n`;
  const message = `"id":"msg_bench","type":"message","role":"assistant","model":"bench-1"`;
  const usage = `"usage":{"input_tokens":9,"output_tokens":${PLAIN_CHUNKS}}`;
  const delta = frame("content_block_delta", '"index":0,"delta":{"type":"text_delta","text":"@"}');
  const [before = "", after = ""] = delta.split("@");
  return {
    type: "anthropic",
    whole: Buffer.from(
      `{${message},"content":[{"type":"text","text":"${WORD.repeat(PLAIN_CHUNKS)}"}],"stop_reason":"end_turn","stop_sequence":null,${usage}}`,
    ),
    head:
      frame(
        "message_start",
        `"message":{${message},"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}`,
      ) + frame("content_block_start", '"index":0,"content_block":{"type":"text","text":""}'),
    before,
    after,
    tail:
      frame("content_block_stop", '"index":0') +
      frame("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},${usage}`) +
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  };
})();

const chunkOf = new Map<Shape, Buffer>(
  [openai, anthropic].map((s) => [s, Buffer.from(s.before + WORD + s.after)]),
);

/** A stream as fast as it goes: every chunk is a write of its own, as from a server that flushes each. */
function stream(response: ServerResponse, shape: Shape, chunks: number): void {
  const chunk = chunkOf.get(shape) as Buffer;
  response.write(shape.head);
  if (chunks <= ONE_GO) {
    for (let i = 0; i < chunks; i++) response.write(chunk);
    response.end(shape.tail);
    return;
  }
  let left = chunks;
  const next = (): void => {
    if (left-- === 0 || response.destroyed) return void response.end(shape.tail);
    response.write(chunk, next);
  };
  next();
}

interface Paced {
  response: ServerResponse;
  shape: Shape;
  left: number;
  paceMs: number;
  due: number;
}

const paced = new Set<Paced>();

/** Chunks tell when they were due, so that the far end can tell how late they are. */
function tick(): void {
  const now = performance.timeOrigin + performance.now();
  for (const it of paced) {
    if (it.due > now) continue;
    if (it.left === 0 || it.response.destroyed) {
      it.response.end(it.shape.tail);
      paced.delete(it);
      continue;
    }
    it.response.write(`${it.shape.before}@${now.toFixed(3)}@${it.shape.after}`);
    it.left -= 1;
    it.due += it.paceMs;
  }
}

const CHUNKS = /chunks=(\d+)/;
const PACE = /pace=(\d+)/;

const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    const text = Buffer.concat(pieces).toString();
    const shape = request.url?.endsWith("/messages") ? anthropic : openai;
    if (!/"stream": ?true/.test(text)) {
      response.writeHead(200, { "content-type": "application/json", "content-length": shape.whole.length });
      response.end(shape.whole);
      return;
    }
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
    });
    const chunks = Number(CHUNKS.exec(text)?.[1] ?? PLAIN_CHUNKS);
    const paceMs = Number(PACE.exec(text)?.[1] ?? 0);
    if (paceMs === 0) return stream(response, shape, chunks);
    response.write(shape.head);
    // Real streams are out of step with each other.
    const due = performance.timeOrigin + performance.now() + Math.random() * paceMs;
    paced.add({ response, shape, left: chunks, paceMs, due });
  });
});
setInterval(tick, TICK_MS);
server.keepAliveTimeout = 120_000;
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on("disconnect", () => process.exit(0));
