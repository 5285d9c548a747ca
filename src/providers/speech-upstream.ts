/** One request for audio: opened, watched, repeated before its first byte, and passed on as it comes. */
import type { SpeechBytes, SpeechProvider, SpeechUsage } from "../core/speech.ts";
import { AppError } from "../errors.ts";
import { type SseEvent, SseParser } from "./sse.ts";
import { cancelled, cutOff, RETRY_WAIT_MS, retryDelay, sleep, type UpstreamLimits } from "./upstream.ts";
import { QUOTE_LIMIT, upstreamError, VENDOR_NAMES } from "./upstream-error.ts";

export interface SpeechCall {
  provider: SpeechProvider;
  /** The key in use: cut out of every message that leaves. */
  key: string;
  /** Sends the request. Resolves with the 2xx response, body unread; throws what the SDK throws. */
  open(signal: AbortSignal): Promise<Response>;
  /** Reads audio out of events; absent where the body is the audio. */
  events?(): SpeechDecoder;
}

export interface SpeechDecoder {
  /** Reads one event and appends its audio to `out`. Throws AppError for an error event or a broken one. */
  push(event: SseEvent, out: Uint8Array[]): void;
  /** The body has ended. Throws AppError when that was too early. */
  end(): SpeechUsage | undefined;
}

export async function* streamSpeech(
  call: SpeechCall,
  limits: UpstreamLimits,
  signal: AbortSignal,
): SpeechBytes {
  for (let attempt = 0; ; attempt++) {
    const connection = new SpeechConnection(call, limits, signal);
    let begun = false;
    try {
      await connection.open();
      for (let pieces = await connection.next(); pieces; pieces = await connection.next())
        for (const piece of pieces) {
          if (piece.length === 0) continue;
          begun = true;
          yield piece;
        }
      if (!begun) throw noAudio(call.provider);
      return connection.usage;
    } catch (error) {
      const fault = connection.explain(error);
      connection.close();
      const again = !begun && attempt < limits.retries && connection.retryable;
      const wait = again ? retryDelay(fault, attempt, limits.retryWaitMs ?? RETRY_WAIT_MS) : null;
      if (wait === null || !(await sleep(wait, signal))) throw signal.aborted ? cancelled() : fault;
    } finally {
      connection.close();
    }
  }
}

/** One attempt. While the consumer has the word, nothing is timed. */
class SpeechConnection {
  usage: SpeechUsage | undefined;
  /** false once it is known that the same request cannot do better. */
  retryable = true;
  readonly #call: SpeechCall;
  readonly #limits: UpstreamLimits;
  readonly #caller: AbortSignal;
  readonly #controller = new AbortController();
  readonly #onAbort = () => this.#controller.abort();
  readonly #opened = performance.now();
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #decoder: SpeechDecoder | undefined;
  readonly #parser = new SseParser();
  #started = false;
  #silent: number | undefined;

  constructor(call: SpeechCall, limits: UpstreamLimits, caller: AbortSignal) {
    this.#call = call;
    this.#limits = limits;
    this.#caller = caller;
    if (caller.aborted) this.#controller.abort();
    else caller.addEventListener("abort", this.#onAbort, { once: true });
  }

  async open(): Promise<void> {
    if (this.#caller.aborted) throw cancelled();
    const response = await this.#timed(this.#call.open(this.#controller.signal));
    this.#decoder = this.#call.events?.();
    const type = response.headers.get("content-type") ?? "";
    const good = this.#decoder ? /event-stream/i.test(type) : !/html|json|event-stream/i.test(type);
    if (good && response.body) {
      this.#reader = response.body.getReader();
      return;
    }
    this.retryable = false;
    const start = (await this.#timed(response.text().catch(() => ""))).slice(0, QUOTE_LIMIT);
    const { provider } = this.#call;
    throw new AppError(
      "upstream_unreachable",
      `${VENDOR_NAMES[provider]} answered with ${type || "no content type"} instead of audio. Check the base URL configured for it.${start && ` It began: ${start}`}`,
    );
  }

  /** What has come next; null at the end. */
  async next(): Promise<Uint8Array[] | null> {
    const { done, value } = await this.#timed(this.#read());
    if (done) {
      this.usage = this.#decoder?.end();
      return null;
    }
    this.#started = true;
    if (!this.#decoder) return [value];
    const out: Uint8Array[] = [];
    const events: SseEvent[] = [];
    this.#parser.push(value, events);
    for (const event of events) this.#decoder.push(event, out);
    return out;
  }

  async #read() {
    try {
      return await (this.#reader as ReadableStreamDefaultReader<Uint8Array>).read();
    } catch (cause) {
      throw cutOff(this.#call.provider, cause);
    }
  }

  async #timed<T>(work: Promise<T>): Promise<T> {
    const { idleMs, firstByteMs } = this.#limits;
    const ms = this.#started ? idleMs : Math.max(0, this.#opened + firstByteMs - performance.now());
    const timer = setTimeout(() => {
      this.#silent = this.#started ? idleMs : firstByteMs;
      this.#controller.abort();
    }, ms);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  }

  explain(error: unknown): AppError {
    const { provider, key } = this.#call;
    if (this.#caller.aborted) return cancelled();
    if (this.#silent === undefined) return upstreamError(error, provider, key);
    return new AppError(
      "upstream_timeout",
      `${VENDOR_NAMES[provider]} was silent for ${this.#silent / 1000} s while it was to speak. Try again, or with another model.`,
    );
  }

  close(): void {
    this.#caller.removeEventListener("abort", this.#onAbort);
    this.#reader?.cancel().catch(() => {});
    this.#controller.abort();
  }
}

export function noAudio(provider: SpeechProvider, reason = ""): AppError {
  const why = reason && ` (${reason})`;
  return new AppError(
    "upstream_unreachable",
    `${VENDOR_NAMES[provider]} answered with no audio${why}. Try again, or with another text or model.`,
  );
}

/** Standard base64. Throws AppError for what is none. */
export function fromBase64(text: string, provider: SpeechProvider): Uint8Array {
  let binary: string;
  try {
    binary = atob(text);
  } catch (cause) {
    throw new AppError("upstream_unreachable", `${VENDOR_NAMES[provider]} sent audio that is not base64.`, {
      cause,
    });
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
