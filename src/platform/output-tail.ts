/** The last part of a command's output, in bounded memory, decoded as it comes. */
export class OutputTail {
  readonly #limit: number;
  readonly #onOutput: ((delta: string) => void) | undefined;
  readonly #decoder = new TextDecoder();
  #text = "";
  #dropped = 0;

  /** @param limit characters kept at the end. */
  constructor(limit: number, onOutput?: (delta: string) => void) {
    this.#limit = limit;
    this.#onOutput = onOutput;
  }

  /** Bytes that are not UTF-8 become replacement characters; a character cut between two chunks is put together. */
  pushBytes(bytes: Uint8Array): void {
    this.push(this.#decoder.decode(bytes, { stream: true }));
  }

  push(text: string): void {
    if (text === "") return;
    // NUL ends a text column in the database and is refused by some model APIs.
    const clean = text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
    this.#text += clean;
    // Cutting at twice the limit makes the copy rare; memory stays within three limits.
    if (this.#text.length > this.#limit * 2) this.#cut();
    this.#onOutput?.(clean);
  }

  end(): { output: string; dropped: number } {
    this.push(this.#decoder.decode());
    this.#cut();
    return { output: this.#text, dropped: this.#dropped };
  }

  #cut(): void {
    if (this.#text.length <= this.#limit) return;
    let start = this.#text.length - this.#limit;
    const first = this.#text.charCodeAt(start);
    if (first >= 0xdc00 && first <= 0xdfff) start++;
    this.#dropped += start;
    this.#text = this.#text.slice(start);
  }
}
