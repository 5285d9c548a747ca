/**
 * What every adapter does alike: open the upstream's stream, watch its clock, retry what may be retried, and end in
 * exactly one `done` or `failed`. An adapter brings the dialect: how to send, how to read one event, how to read an error.
 *
 * The vendor SDK sends the request (`asResponse()`); the body is read here, since the SDKs' own stream readers cost
 * several times what the work needs and accept a cut stream as a finished one.
 */
import type { ModelEvent } from "../core/event.ts";
import type { ProviderName } from "../core/message.ts";
import type { UpstreamFetch } from "../core/platform.ts";
import { AppError, toFault } from "../errors.ts";
import { type SseEvent, SseParser } from "./sse.ts";
import { parseEvent, QUOTE_LIMIT, upstreamError, VENDOR_NAMES } from "./upstream-error.ts";

/** How long an upstream may be silent, and how often it is asked again. Milliseconds. */
export interface UpstreamLimits {
  firstByteMs: number;
  idleMs: number;
  retries: number;
  /** The first wait before a retry where the upstream names none; doubled for the next. 250 where absent. */
  retryWaitMs?: number | undefined;
}

export type Fetch = UpstreamFetch;

/** What an adapter is made from: one per provider and key. */
export interface AdapterOptions {
  key: string;
  /** From configuration only; the vendor's own address where absent. */
  baseUrl?: string | undefined;
  limits: UpstreamLimits;
  fetch?: Fetch | undefined;
}

export interface UpstreamDecoder {
  /** Reads one event and appends what it means to `out`. Throws AppError for an error event or a broken one. */
  push(event: SseEvent, out: ModelEvent[]): void;
  /** The body has ended: appends `done`, or nothing when the stream was cut before its end. */
  end(out: ModelEvent[]): void;
  /**
   * A server that ignores `stream: true` has answered with one JSON value: appends the whole stream it stands for,
   * `done` included. Throws AppError as `push` does. Where it is absent such an answer is a failure.
   */
  whole?(body: unknown, out: ModelEvent[]): void;
}

export interface UpstreamCall {
  provider: ProviderName;
  /** The key in use: cut out of every message that leaves. */
  key: string;
  /** Sends the request. Resolves with the 2xx response, body unread; throws what the SDK throws. */
  open(signal: AbortSignal): Promise<Response>;
  decoder(): UpstreamDecoder;
}

/** Statuses after which the same request may succeed. */
const RETRYABLE = new Set([408, 429, 500, 502, 503, 504, 529]);
/** A longer wait than this is the caller's to decide: the fault goes out at once with its `retry-after`. Seconds. */
const LONGEST_WAIT = 5;
export const RETRY_WAIT_MS = 250;
/** After `done`, the rest of the body gets this long to end, so that its connection can be used again. */
const DRAIN_MS = 1_000;

export async function* streamUpstream(
  call: UpstreamCall,
  limits: UpstreamLimits,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent, void, void> {
  for (let attempt = 0; ; attempt++) {
    const connection = new Connection(call, limits, signal);
    let begun = false;
    try {
      await connection.open();
      for (;;) {
        for (const event of await connection.next()) {
          begun = true;
          if (event.type === "done") connection.drain();
          yield event;
          if (event.type === "done") return;
        }
      }
    } catch (error) {
      const fault = connection.explain(error);
      connection.close();
      const again = !begun && attempt < limits.retries && connection.retryable;
      const wait = again ? retryDelay(fault, attempt, limits.retryWaitMs ?? RETRY_WAIT_MS) : null;
      if (wait === null || !(await sleep(wait, signal))) {
        yield { type: "failed", fault: toFault(signal.aborted ? cancelled() : fault) };
        return;
      }
    } finally {
      connection.close();
    }
  }
}

/** One attempt: an open connection, its clock, and the reason why it ended. */
class Connection {
  /** false once it is known that the same request cannot do better. */
  retryable = true;
  readonly #call: UpstreamCall;
  readonly #limits: UpstreamLimits;
  readonly #caller: AbortSignal;
  readonly #controller = new AbortController();
  readonly #onAbort = () => this.#controller.abort();
  readonly #decoder: UpstreamDecoder;
  readonly #parser = new SseParser();
  readonly #raw: SseEvent[] = [];
  #out: ModelEvent[] = [];
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** A JSON answer that stands for the whole stream. */
  #whole: Response | undefined;
  /** The content type, when it is not that of an event stream and no event has come yet. */
  #doubt: string | undefined;
  #broken: unknown;
  #timedOut: "first" | "idle" | null = null;
  #deadline: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The upstream has the word. Otherwise the consumer has, and its pauses are not the upstream's. */
  #waiting = true;
  #started = false;
  #draining = false;

  constructor(call: UpstreamCall, limits: UpstreamLimits, caller: AbortSignal) {
    this.#call = call;
    this.#limits = limits;
    this.#caller = caller;
    this.#decoder = call.decoder();
    this.#deadline = performance.now() + limits.firstByteMs;
    if (caller.aborted) this.#controller.abort();
    else caller.addEventListener("abort", this.#onAbort, { once: true });
    // The shorter of both, for once the first byte is there the other counts.
    this.#arm(Math.min(limits.firstByteMs, limits.idleMs));
  }

  /** The deadline moves with every read; the timer looks at it when it fires instead of being set anew each time. */
  #arm(ms: number): void {
    this.#timer = setTimeout(() => {
      const left = this.#waiting ? this.#deadline - performance.now() : this.#limits.idleMs;
      if (left > 1) return this.#arm(left);
      this.#timedOut = this.#started ? "idle" : "first";
      this.#controller.abort();
    }, ms);
  }

  async open(): Promise<void> {
    if (this.#caller.aborted) throw cancelled();
    const response = await this.#call.open(this.#controller.signal);
    const type = response.headers.get("content-type") ?? "";
    if (/json/i.test(type) && this.#decoder.whole) this.#whole = response;
    else if (response.body && !/html|json/i.test(type)) {
      this.#reader = response.body.getReader();
      if (!/event-stream/i.test(type)) this.#doubt = type;
    } else throw this.#notAStream(type, await response.text().catch(() => ""));
  }

  /** The events of the next bytes; empty when they complete none. The array is filled anew by the next call. */
  async next(): Promise<readonly ModelEvent[]> {
    // What stood before a broken event was still good, and has gone out first.
    if (this.#broken !== undefined) throw this.#broken;
    this.#out.length = 0;
    this.#deadline = performance.now() + (this.#started ? this.#limits.idleMs : this.#limits.firstByteMs);
    this.#waiting = true;
    if (this.#reader) await this.#read(this.#reader);
    else if (this.#whole) this.#decodeWhole(await this.#whole.text());
    this.#waiting = false;
    if (this.#out.length > 0) this.#started = true;
    else if (this.#broken !== undefined) throw this.#broken;
    return this.#out;
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    try {
      const { done, value } = await reader.read();
      if (!done) return this.#decode(value);
      this.#decoder.end(this.#out);
      this.#broken =
        this.#doubt === undefined ? cutOff(this.#call.provider) : this.#notAStream(this.#doubt, "");
    } catch (cause) {
      this.#broken = cause instanceof AppError ? cause : cutOff(this.#call.provider, cause);
      // A connection that breaks, or falls silent, after the last thing that matters has done no harm.
      if (!this.#caller.aborted) this.#decoder.end(this.#out);
    }
  }

  #decode(value: Uint8Array): void {
    const raw = this.#raw;
    try {
      raw.length = 0;
      this.#parser.push(value, raw);
      for (const event of raw) this.#decoder.push(event, this.#out);
      if (raw.length > 0) this.#doubt = undefined;
    } catch (error) {
      this.#broken = error;
    }
  }

  #decodeWhole(text: string): void {
    this.#broken = cutOff(this.#call.provider);
    try {
      this.#decoder.whole?.(parseEvent(text, this.#call.provider), this.#out);
    } catch (error) {
      this.#broken = error;
    }
  }

  #notAStream(type: string, text: string): AppError {
    this.retryable = false;
    const start = text.slice(0, QUOTE_LIMIT);
    return new AppError(
      "upstream_unreachable",
      `${VENDOR_NAMES[this.#call.provider]} answered with ${type || "no content type"} instead of an event stream. Check the base URL configured for it.${start && ` It began: ${start}`}`,
    );
  }

  explain(error: unknown): AppError {
    if (this.#caller.aborted) return cancelled();
    const name = VENDOR_NAMES[this.#call.provider];
    if (this.#timedOut) {
      const [ms, when] =
        this.#timedOut === "first"
          ? [this.#limits.firstByteMs, "the first byte of its reply"]
          : [this.#limits.idleMs, "the next piece of its reply"];
      return new AppError(
        "upstream_timeout",
        `${name} was silent for ${ms / 1000} s before ${when}. Try again, or with another model.`,
      );
    }
    return upstreamError(error, this.#call.provider, this.#call.key);
  }

  /** The reply is complete: lets the body end by itself, for a body that is cancelled costs its connection. */
  drain(): void {
    const reader = this.#reader;
    if (!reader) return;
    this.#draining = true;
    this.#release();
    const timer = setTimeout(() => this.#controller.abort(), DRAIN_MS);
    const rest = async () => {
      while (!(await reader.read()).done);
    };
    rest()
      .catch(() => {})
      .finally(() => clearTimeout(timer));
  }

  /** Closes the upstream connection, unless it is draining. May be called again. */
  close(): void {
    this.#release();
    if (this.#draining) return;
    this.#reader?.cancel().catch(() => {});
    this.#controller.abort();
  }

  #release(): void {
    clearTimeout(this.#timer);
    this.#caller.removeEventListener("abort", this.#onAbort);
  }
}

export function cancelled(): AppError {
  return new AppError("cancelled", "The request was cancelled.");
}

export function cutOff(provider: ProviderName, cause?: unknown): AppError {
  return new AppError(
    "upstream_unreachable",
    `${VENDOR_NAMES[provider]} closed the connection before its reply was complete. Send the request again.`,
    { cause },
  );
}

/** Milliseconds to wait before the next attempt; null when it must not be repeated, or not so soon. */
export function retryDelay(fault: AppError, attempt: number, firstMs: number): number | null {
  if (fault.code === "cancelled" || fault.code === "upstream_timeout") return null;
  if (!RETRYABLE.has(fault.status) || fault.upstreamCode === "insufficient_quota") return null;
  if (fault.retryAfter !== undefined) return fault.retryAfter > LONGEST_WAIT ? null : fault.retryAfter * 1000;
  return firstMs * 2 ** attempt * (0.75 + Math.random() / 2);
}

/** false when the signal ended the wait. */
export function sleep(ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const stop = () => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve(true);
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
