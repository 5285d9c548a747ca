/** Where and why a text is not JSON, in words of our own: engines disagree about it, and some repeat the text. */

/** For a text that `JSON.parse` has refused. Nesting has to be limited before. */
export function jsonFault(text: string): string {
  const scanner = new Scanner(text);
  const at = scanner.fault();
  if (at >= text.length) return "it ends before it is complete";
  const line = text.slice(0, at).split("\n");
  const column = (line.at(-1)?.length ?? 0) + 1;
  return `unexpected ${name(text.codePointAt(at) ?? 0)} at position ${at} (line ${line.length}, column ${column})`;
}

function name(code: number): string {
  if (code < 32 || code === 127) return `control character ${code}`;
  return code === 39 ? '"\'"' : `'${String.fromCodePoint(code)}'`;
}

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Position of the first character that cannot stand where it does; the text's length when something is missing. */
  fault(): number {
    if (this.#value()) this.#space();
    return this.#at;
  }

  #space(): void {
    while (" \t\n\r".includes(this.#text[this.#at] ?? "x")) this.#at += 1;
  }

  /** Steps over `wanted`, or stays and says no. */
  #take(wanted: string): boolean {
    if (this.#text[this.#at] !== wanted) return false;
    this.#at += 1;
    return true;
  }

  #value(): boolean {
    this.#space();
    const c = this.#text[this.#at];
    if (c === "{") return this.#items("}", true);
    if (c === "[") return this.#items("]", false);
    if (c === '"') return this.#string();
    if (c === "t") return this.#word("true");
    if (c === "f") return this.#word("false");
    if (c === "n") return this.#word("null");
    return this.#number();
  }

  #items(close: string, named: boolean): boolean {
    this.#at += 1;
    this.#space();
    if (this.#take(close)) return true;
    for (;;) {
      this.#space();
      if (named) {
        if (this.#text[this.#at] !== '"' || !this.#string()) return false;
        this.#space();
        if (!this.#take(":")) return false;
      }
      if (!this.#value()) return false;
      this.#space();
      if (this.#take(close)) return true;
      if (!this.#take(",")) return false;
    }
  }

  #word(word: string): boolean {
    for (const c of word) if (!this.#take(c)) return false;
    return true;
  }

  #string(): boolean {
    this.#at += 1;
    for (;;) {
      const c = this.#text.charCodeAt(this.#at);
      if (Number.isNaN(c) || c < 32) return false;
      this.#at += 1;
      if (c === 34) return true;
      if (c === 92 && !this.#escape()) return false;
    }
  }

  #escape(): boolean {
    const c = this.#text[this.#at] ?? "";
    if (c === "" || !'"\\/bfnrtu'.includes(c)) return false;
    this.#at += 1;
    for (let i = 0; c === "u" && i < 4; i++) if (!this.#oneOf("0123456789abcdefABCDEF")) return false;
    return true;
  }

  #number(): boolean {
    this.#take("-");
    if (!this.#take("0") && !this.#digits()) return false;
    if (this.#take(".") && !this.#digits()) return false;
    if (!this.#take("e") && !this.#take("E")) return true;
    if (!this.#take("+")) this.#take("-");
    return this.#digits();
  }

  #digits(): boolean {
    if (!this.#oneOf("0123456789")) return false;
    while (this.#oneOf("0123456789"));
    return true;
  }

  #oneOf(characters: string): boolean {
    const c = this.#text[this.#at] ?? "";
    if (c === "" || !characters.includes(c)) return false;
    this.#at += 1;
    return true;
  }
}
