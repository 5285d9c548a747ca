/**
 * The fetch that the SDK's HTTP transports get: guarded, with the server's own headers, each message bounded as it arrives,
 * and with an eye on streams that end before they have brought their answer.
 */
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { GuardedFetch } from "../core/fetch.ts";
import { LONGEST_CALL_MS, MESSAGE_BYTES } from "./limits.ts";

/** Tells the service that a request comes from itself; see http/own-agent.ts. */
export const CALLER_HEADER = "x-dragoman-caller";
/** A stream's end is told by the parser a little later than by the stream. Milliseconds. */
const PARSE_MS = 200;

export interface HttpOptions {
  url: string;
  headers: Record<string, string>;
  fetch: GuardedFetch;
  /** The server was chosen by the operator. What it refers to elsewhere was not. */
  trusted: boolean;
  callerMark: string;
  /** The older transport, where every answer comes on the one stream. */
  sse: boolean;
  /** The answer to this request will not come. `tooLarge`: it was cut off. */
  onLost(id: RequestId, tooLarge: boolean): void;
  /** The stream on which the server speaks by itself has broken, or could not be had again. */
  onDown(error: unknown): void;
}

export interface HttpLink {
  fetch: FetchLike;
  /** Cuts the request that carries a message. */
  drop(id: RequestId): void;
}

export function createHttpLink(options: HttpOptions): HttpLink {
  const { origin } = new URL(options.url);
  const carried = new Map<RequestId, AbortController>();
  let listened = false;

  async function listen(url: string | URL, init: RequestInit | undefined): Promise<Response> {
    try {
      const response = await send(url, init, 0);
      // It has forgotten the session, as one does that was started anew.
      if (listened && response.status === 404) options.onDown(undefined);
      listened ||= response.ok;
      if (!response.body || !response.ok) return response;
      // The other transport asks for its stream again by itself.
      return bounded(response, { perEvent: true, onEnd: options.sse ? options.onDown : undefined });
    } catch (error) {
      if (listened && !init?.signal?.aborted) options.onDown(error);
      throw error;
    }
  }

  async function post(url: string | URL, init: RequestInit): Promise<Response> {
    const id = requestId(init.body);
    if (id === undefined) return send(url, init, LONGEST_CALL_MS);
    const controller = new AbortController();
    carried.set(id, controller);
    const signal = init.signal ? AbortSignal.any([init.signal, controller.signal]) : controller.signal;
    try {
      const response = await send(url, { ...init, signal }, LONGEST_CALL_MS);
      if (!response.body || !response.ok) return response;
      const perEvent = /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
      if (!perEvent) return bounded(response, { perEvent });
      return bounded(response, {
        perEvent,
        onEnd: (error, resumable) => {
          carried.delete(id);
          if (error instanceof TooLarge) options.onLost(id, true);
          // The SDK asks for the rest of a stream whose events have ids.
          else if (!resumable) setTimeout(() => options.onLost(id, false), PARSE_MS);
        },
      });
    } catch (error) {
      carried.delete(id);
      throw error;
    }
  }

  function send(url: string | URL, init: RequestInit | undefined, timeoutMs: number): Promise<Response> {
    const headers = new Headers(init?.headers);
    const own = new URL(url).origin === origin;
    if (own) for (const [name, value] of Object.entries(options.headers)) headers.set(name, value);
    headers.set(CALLER_HEADER, options.callerMark);
    return options.fetch(url, {
      method: init?.method,
      headers,
      body: init?.body as string | undefined,
      signal: init?.signal,
      redirect: init?.redirect,
      maxBytes: own ? Number.POSITIVE_INFINITY : undefined,
      timeoutMs: own ? timeoutMs : undefined,
      trusted: own && options.trusted,
    });
  }

  return {
    fetch: (url, init) =>
      (init?.method ?? "GET").toUpperCase() === "GET" && new URL(url).origin === origin
        ? listen(url, init)
        : post(url, init ?? {}),
    drop(id) {
      carried.get(id)?.abort();
      carried.delete(id);
    },
  };
}

/** The id of the request that a body carries; undefined for notifications, answers and what is not of the protocol. */
function requestId(body: RequestInit["body"]): RequestId | undefined {
  if (typeof body !== "string" || !body.startsWith("{")) return undefined;
  const message = JSON.parse(body) as { id?: RequestId; method?: string };
  return message.method === undefined ? undefined : message.id;
}

class TooLarge extends Error {}

interface Watch {
  /** Whether the bound is for each event of a stream, or for the whole. */
  perEvent: boolean;
  /** Not for a stream that is cancelled from here. `resumable`: its events have ids. */
  onEnd?: ((error: unknown, resumable: boolean) => void) | undefined;
}

function bounded(response: Response, { perEvent, onEnd }: Watch): Response {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const size = new MessageSize(perEvent);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.close();
          onEnd?.(undefined, size.hasIds);
          return;
        }
        size.add(value);
        controller.enqueue(value);
      } catch (error) {
        controller.error(error);
        onEnd?.(error, size.hasIds);
        if (error instanceof TooLarge) await reader.cancel().catch(() => {});
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const { status, statusText, headers } = response;
  const out = new Response(body, { status, statusText, headers });
  Object.defineProperty(out, "url", { value: response.url });
  return out;
}

const LINE_FEED = 10;
const RETURN = 13;
const COLON = 58;

/** Bytes since the last blank line, which ends an event. */
class MessageSize {
  hasIds = false;
  readonly #perEvent: boolean;
  #bytes = 0;
  /** Bytes of the line so far, its first three kept. */
  #line = 0;
  #start = 0;

  constructor(perEvent: boolean) {
    this.#perEvent = perEvent;
  }

  add(chunk: Uint8Array): void {
    if (!this.#perEvent) this.#bytes += chunk.length;
    else for (let from = 0; from < chunk.length; ) from = this.#readLine(chunk, from);
    if (this.#bytes > MESSAGE_BYTES) throw new TooLarge(`A message is larger than ${MESSAGE_BYTES} bytes.`);
  }

  /** Up to and with the end of a line, or of the chunk. */
  #readLine(chunk: Uint8Array, from: number): number {
    let end = chunk.indexOf(LINE_FEED, from);
    const cut = end === -1;
    if (cut) end = chunk.length;
    for (let at = from; at < end && this.#line < 3; at++, this.#line++)
      this.#start = (this.#start << 8) | (chunk[at] as number);
    // `id:` at the beginning of a line.
    if (this.#line === 3 && this.#start === ((105 << 16) | (100 << 8) | COLON)) this.hasIds = true;
    this.#bytes += end - from;
    if (cut) return end;
    const blank = this.#line === 0 || (this.#line === 1 && this.#start === RETURN);
    if (blank) this.#bytes = 0;
    this.#line = 0;
    this.#start = 0;
    return end + 1;
  }
}
