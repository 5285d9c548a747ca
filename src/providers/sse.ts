/** Server-sent events from bytes, as the WHATWG specification parses them, for streams that may be split anywhere. */
import { AppError } from "../errors.ts";

export interface SseEvent {
  event: string;
  data: string;
}

/** Characters that one event may hold: a guard against an upstream that never ends its line. */
const EVENT_LIMIT = 32 * 1024 * 1024;

export class SseParser {
  #decoder = new TextDecoder("utf-8");
  #rest = "";
  #event = "";
  #data: string | null = null;
  /** The last piece ended in CR: an LF that comes next belongs to it. */
  #afterCr = false;

  /** Appends the events that `bytes` complete to `out`. Throws AppError when an event outgrows its limit. */
  push(bytes: Uint8Array, out: SseEvent[]): void {
    let piece = this.#decoder.decode(bytes, { stream: true });
    if (this.#afterCr && piece.length > 0) {
      if (piece.charCodeAt(0) === 10) piece = piece.slice(1);
      this.#afterCr = false;
    }
    const hasCr = piece.includes("\r");
    if (!hasCr && !piece.includes("\n")) {
      // Joined without being looked at again: a long line in many pieces would cost their square otherwise.
      this.#rest += piece;
      this.#checkSize();
      return;
    }
    const text = this.#rest.length > 0 ? this.#rest + piece : piece;
    let from = 0;
    for (;;) {
      let end = text.indexOf("\n", from);
      let next = end + 1;
      if (hasCr) {
        const cr = text.indexOf("\r", from);
        if (cr !== -1 && (end === -1 || cr < end)) {
          end = cr;
          next = cr + 1;
          if (text.charCodeAt(next) === 10) next += 1;
          else if (next === text.length) this.#afterCr = true;
        }
      }
      if (end === -1) break;
      this.#line(text, from, end, out);
      from = next;
    }
    this.#rest = from === 0 ? text : text.slice(from);
    this.#checkSize();
  }

  #checkSize(): void {
    if (this.#rest.length + (this.#data?.length ?? 0) > EVENT_LIMIT)
      throw new AppError("upstream_unreachable", "The upstream sent an event of more than 32 MiB.");
  }

  #line(text: string, from: number, end: number, out: SseEvent[]): void {
    if (from === end) {
      if (this.#data !== null) out.push({ event: this.#event, data: this.#data });
      this.#data = null;
      this.#event = "";
      return;
    }
    const first = text.charCodeAt(from);
    if (first === 100 /* d */ && text.startsWith("data:", from)) {
      const start = text.charCodeAt(from + 5) === 32 ? from + 6 : from + 5;
      const value = text.slice(start, end);
      this.#data = this.#data === null ? value : `${this.#data}\n${value}`;
    } else if (first === 101 /* e */ && text.startsWith("event:", from)) {
      const start = text.charCodeAt(from + 6) === 32 ? from + 7 : from + 6;
      this.#event = text.slice(start, end);
    } else if (end - from === 4 && text.startsWith("data", from)) {
      this.#data = this.#data === null ? "" : `${this.#data}\n`;
    }
  }
}
