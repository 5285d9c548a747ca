/** What the steps of a run say, as one text: a blank line between what different steps say. */

const STEP_BREAK = "\n\n";

/** One voice of a reply: its text, its reasoning. Fragments go in as they come, and out as a client appends them. */
export class StepJoin {
  #step = -1;
  #endsLine: boolean;

  /** `before`: what the voice has said already. */
  constructor(before = "") {
    this.#endsLine = before === "" || before.endsWith("\n");
  }

  /** Whether anything has come. */
  get spoke(): boolean {
    return this.#step !== -1;
  }

  push(step: number, delta: string): string {
    if (delta === "") return delta;
    const text = step !== this.#step && !this.#endsLine ? STEP_BREAK + delta : delta;
    this.#step = step;
    this.#endsLine = delta.charCodeAt(delta.length - 1) === 10;
    return text;
  }
}
