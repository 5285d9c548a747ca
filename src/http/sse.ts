/** Frames -> a response body: pulled, never pushed, and written together where they were made together. */
import type { Log } from "../core/platform.ts";

/** Characters that may wait for a reader who is slower than the run, and that are handed over at once. */
const WAITING_LIMIT = 64 * 1024;
const STUCK_MS = 30_000;
/** After this long without a frame the heartbeat goes out. Milliseconds. */
const QUIET_MS = 15_000;

export const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
} as const;

export interface StreamOptions {
  /** A frame that says nothing, for doors whose clients expect signs of life. Not sent before the first frame. */
  heartbeat?: string | undefined;
  /**
   * The stream is over; called once. `delivered` says that all was handed over. Otherwise the reader has gone, does not
   * read, or the generator broke; it comes before `frames.return()`, so that it can abort what the
   * generator is waiting for: `return()` alone waits for that.
   */
  onClose?(delivered: boolean): void;
  /** The generator is left alone when the reader goes: whoever gets `onClose(false)` reads it to its end. */
  hold?: boolean;
  log?: Log;
  /** How long data may wait for a reader who does not read. Milliseconds. */
  stuckMs?: number;
  quietMs?: number;
}

/**
 * Frames that come within one turn of the event loop leave as one chunk. The generator is asked for more only while
 * less than {@link WAITING_LIMIT} waits, and first when the body is read.
 */
export function streamBody(
  frames: AsyncGenerator<string, void, void>,
  options: StreamOptions = {},
): ReadableStream<Uint8Array> {
  const body = new FrameBody(frames, options);
  return new ReadableStream<Uint8Array>(
    { pull: (controller) => body.pull(controller), cancel: () => body.cancel() },
    { highWaterMark: 0 },
  );
}

const encoder = new TextEncoder();

/** After the microtasks of this turn and what they produce. */
const nextTurn: (task: () => void) => void =
  typeof setImmediate === "function" ? (task) => setImmediate(task) : (task) => setTimeout(task, 0);

class FrameBody {
  readonly #frames: AsyncGenerator<string, void, void>;
  readonly #options: StreamOptions;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** The frames' own strings, which all readers of a run share. */
  readonly #waiting: string[] = [];
  #waitingLength = 0;
  /** The reader has asked and got nothing yet. */
  #wanted = false;
  #flushing = false;
  #exhausted = false;
  #begun = false;
  #ended = false;
  /** Wakes the pump, which sleeps while enough is waiting. */
  #resume: (() => void) | null = null;
  /** When the reader last asked or was last served. */
  #moved = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(frames: AsyncGenerator<string, void, void>, options: StreamOptions) {
    this.#frames = frames;
    this.#options = options;
  }

  pull(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#wanted = true;
    this.#moved = performance.now();
    if (this.#controller === undefined) {
      this.#controller = controller;
      this.#watch();
      this.#pump();
    } else if (this.#waitingLength > 0 || this.#exhausted) {
      this.#flushSoon();
    }
  }

  async #pump(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#frames.next();
        if (this.#ended) return;
        if (done) break;
        if (value === "") continue;
        this.#waiting.push(value);
        this.#waitingLength += value.length;
        this.#flushSoon();
        if (this.#waitingLength < WAITING_LIMIT) continue;
        await new Promise<void>((resolve) => {
          this.#resume = resolve;
        });
        if (this.#ended) return;
      }
    } catch (error) {
      this.#options.log?.("error", "a response stream broke", { error: String(error) });
      if (this.#ended) return;
      this.#fail(error);
      return;
    }
    this.#exhausted = true;
    this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    nextTurn(this.#flush);
  }

  readonly #flush = (): void => {
    this.#flushing = false;
    if (this.#ended) return;
    if (this.#waitingLength > 0) {
      if (!this.#wanted) return;
      this.#send(this.#nextChunk());
    }
    if (!this.#exhausted || this.#waitingLength > 0) return;
    this.#controller?.close();
    this.#end(true);
  };

  #nextChunk(): string {
    let chunk = "";
    let taken = 0;
    for (const text of this.#waiting) {
      const room = WAITING_LIMIT - chunk.length;
      if (text.length > room) {
        // Never between the halves of a surrogate pair.
        const end = room > 0 && (text.charCodeAt(room - 1) & 0xfc00) === 0xd800 ? room - 1 : room;
        chunk += text.slice(0, end);
        this.#waiting[taken] = text.slice(end);
        break;
      }
      chunk += text;
      taken++;
    }
    this.#waiting.splice(0, taken);
    this.#waitingLength -= chunk.length;
    return chunk;
  }

  #send(text: string): void {
    this.#wanted = false;
    this.#begun = true;
    this.#moved = performance.now();
    this.#controller?.enqueue(encoder.encode(text));
    if (this.#waitingLength >= WAITING_LIMIT) return;
    const resume = this.#resume;
    this.#resume = null;
    resume?.();
  }

  /** One timer for the whole stream, which looks at the time when it fires rather than being set with every frame. */
  #watch(): void {
    const { heartbeat, stuckMs = STUCK_MS, quietMs = QUIET_MS } = this.#options;
    const limit = !heartbeat ? stuckMs : Math.min(stuckMs, quietMs);
    const check = (): void => {
      const still = performance.now() - this.#moved;
      if (this.#waitingLength > 0 && !this.#wanted && still >= stuckMs) {
        this.#fail(new Error(`The reader has not read for ${stuckMs / 1000} s.`));
        return;
      }
      if (heartbeat && this.#wanted && this.#begun && still >= quietMs) this.#send(heartbeat);
      this.#timer = setTimeout(check, still < limit ? limit - still : limit);
    };
    this.#timer = setTimeout(check, limit);
  }

  /** An error, rather than an end, is what makes the server drop the connection. */
  #fail(error: unknown): void {
    this.#controller?.error(error);
    this.#end(false);
  }

  cancel(): void {
    this.#end(false);
  }

  #end(delivered: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#waiting.length = 0;
    this.#waitingLength = 0;
    clearTimeout(this.#timer);
    this.#options.onClose?.(delivered);
    this.#resume?.();
    // Queued behind a next() that is under way; a generator that has ended does nothing.
    if (!this.#options.hold) this.#frames.return().catch(() => {});
  }
}
