/** Output of a command that nobody has read yet: the last part of it, in bounded memory. */
import { MAX_RESULT_CHARS } from "./result.ts";

export class UnreadOutput {
  #text = "";
  #dropped = 0;
  #over = false;
  readonly #waiting = new Set<() => void>();

  push(delta: string): void {
    this.#text += delta;
    // Cutting at twice the limit makes the copy rare.
    if (this.#text.length > MAX_RESULT_CHARS * 2) this.#cut();
    this.#wake();
  }

  /** Nothing more comes. */
  end(): void {
    this.#over = true;
    this.#wake();
  }

  /** Takes what there is; `dropped` counts the characters before it that were not kept. */
  take(): { text: string; dropped: number } {
    this.#cut();
    const taken = { text: this.#text, dropped: this.#dropped };
    this.#text = "";
    this.#dropped = 0;
    return taken;
  }

  /** Resolves when there is output, at the end, when the time is over, or when the signal is aborted. */
  async news(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#text !== "" || this.#over || signal.aborted || ms <= 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    const wake = () => resolve();
    signal.addEventListener("abort", wake, { once: true });
    this.#waiting.add(wake);
    await promise;
    this.#waiting.delete(wake);
    signal.removeEventListener("abort", wake);
    clearTimeout(timer);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  #cut(): void {
    if (this.#text.length <= MAX_RESULT_CHARS) return;
    let start = this.#text.length - MAX_RESULT_CHARS;
    const first = this.#text.charCodeAt(start);
    if (first >= 0xdc00 && first <= 0xdfff) start++;
    this.#dropped += start;
    this.#text = this.#text.slice(start);
  }
}
