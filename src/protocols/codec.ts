/**
 * What an inbound wire format is to the rest of the house: a schema, a pure decoder to the core's words and pure
 * encoders back. Codecs do no I/O and know no upstream; adding a door is adding one of these and mounting it.
 */
import type * as z from "zod";
import type { AgentEvent } from "../core/event.ts";
import type { ModelRequest } from "../core/model.ts";
import type { Fault } from "../errors.ts";

export interface Decoded {
  /** `model` is the word the client sent; the front door resolves it. */
  request: ModelRequest;
  stream: boolean;
  /** How many independent replies (`n` of chat completions). */
  choices: number;
  /** The client replays reasoning with its seals, so the server need not keep them. */
  carriesSeals: boolean;
  /** Whatever the codec wants to see again when it encodes. */
  echo?: unknown;
}

/** What the front door tells an encoder about the response under way. */
export interface ReplyMeta {
  /** The model word to show: the one the client sent. */
  model: string;
  requestId: string;
  createdAt: Date;
  choices: number;
  /** `x-agent-events: 1`: server tool activity is shown, in a form that clients of the door ignore. */
  agentEvents: boolean;
  echo?: unknown;
}

/**
 * One response as a stream. `push` returns the complete SSE text that the event gives, or the empty string. After the
 * `run-close` of the last choice it has written the door's own end; nothing may follow. A failed run is the
 * door's error event followed by the end of the stream.
 */
export interface Encoder {
  push(event: AgentEvent, choice?: number): string;
}

/** One response in one piece. `body` is valid once every choice has closed. */
export interface Collector {
  push(event: AgentEvent, choice?: number): void;
  body(): Record<string, unknown>;
}

export interface ErrorReply {
  status: number;
  body: Record<string, unknown>;
  headers: Record<string, string>;
}

export interface Codec<Wire = unknown> {
  /** For logs and usage rows: `chat-completions`, `messages`. */
  readonly door: string;
  /** What keeps a quiet stream alive through proxies: complete SSE text that every client of the door ignores. */
  readonly heartbeat: string;
  readonly request: z.ZodType<Wire>;
  /** Throws AppError `invalid_request` or `unsupported_field` with `param` where the wire's own rules are broken. */
  decode(wire: Wire, context: { headers: Headers; query: URLSearchParams }): Decoded;
  encoder(meta: ReplyMeta): Encoder;
  collector(meta: ReplyMeta): Collector;
  /** A fault before the first byte: status and body as the real service has them, so that SDKs choose class and retry. */
  fault(fault: Fault, requestId: string): ErrorReply;
}
