/** What a run under way has shown, for any number of readers; and the frames of one that are stored. */
import type { Runs } from "../core/run.ts";
import type { Frame } from "./journal.ts";

/** Rows of frames read at once: as many as hold about this many characters, since a slow reader holds on to them. */
const FRAMES_PAGE = 50;
const PAGE_LENGTH = 64 * 1024;
/** Characters of frames that a live run keeps although they are stored, for readers who are almost up to date. */
const KEPT_FRAMES = 4 * 1024;

export class LiveFrames {
  /** Nothing follows. */
  over = false;
  /** What was shown, but for what is stored and long ago. */
  #frames: Frame[] = [];
  #length = 0;
  #base: number;
  /** Wake the readers; each is called once. */
  readonly #waiting = new Set<() => void>();

  constructor(base: number) {
    this.#base = base;
  }

  /** Number of the last event that is stored and not kept here. */
  get base(): number {
    return this.#base;
  }

  /** `storedSeq`: number of the last event that is stored by now. */
  show(frames: readonly Frame[], storedSeq: number): void {
    // Readers have seen these by now; who comes later parses the text.
    for (let at = this.#frames.length; at > 0 && this.#frames[at - 1]?.event !== undefined; at--)
      (this.#frames[at - 1] as Frame).event = undefined;
    for (const frame of frames) {
      this.#frames.push(frame);
      this.#length += frame.text.length;
    }
    if (this.#length > KEPT_FRAMES) this.#forget(storedSeq);
    this.#wake();
  }

  end(): void {
    this.over = true;
    this.#wake();
  }

  /** Yields what is shown behind a number, to the end, or until what comes next is to be found in the store. */
  async *follow(after: number, signal: AbortSignal): AsyncGenerator<Frame, number, void> {
    let seen = after;
    let resume = () => {};
    const abort = () => resume();
    signal.addEventListener("abort", abort, { once: true });
    try {
      for (;;) {
        if (seen < this.#base) return seen;
        const first = this.#frames[0]?.seq ?? seen + 1;
        const frame = this.#frames[Math.max(0, seen + 1 - first)];
        if (frame) {
          seen = frame.seq;
          yield frame;
        } else if (this.over || signal.aborted) return seen;
        else
          await new Promise<void>((resolve) => {
            resume = resolve;
            this.#waiting.add(resolve);
          });
      }
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  #forget(storedSeq: number): void {
    let count = 0;
    for (const { seq, text } of this.#frames) {
      if (seq > storedSeq || this.#length <= KEPT_FRAMES) break;
      this.#base = seq;
      this.#length -= text.length;
      count++;
    }
    this.#frames.splice(0, count);
  }

  #wake(): void {
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }
}

/** The frames of a run that are stored behind a number, in order. */
export async function* storedFrames(
  runs: Pick<Runs, "frames">,
  owner: string,
  runId: string,
  after: number,
): AsyncGenerator<Frame, void, void> {
  let seen = after;
  for (let page = 1; ; ) {
    const rows = await runs.frames(owner, runId, seen, page);
    const complete = rows.length < page;
    let length = 0;
    for (let row = rows.shift(); row; row = rows.shift()) {
      length += row.text.length;
      for (const frame of framesIn(row.first, row.text)) {
        if (frame.seq <= seen) continue;
        seen = frame.seq;
        yield frame;
      }
    }
    if (complete) return;
    page = Math.min(FRAMES_PAGE, Math.max(1, Math.floor((page * PAGE_LENGTH) / length)));
  }
}

/** Events end in an empty line. */
function* framesIn(first: number, text: string): Generator<Frame, void, void> {
  for (let from = 0, seq = first; from < text.length; seq++) {
    const end = text.indexOf("\n\n", from) + 2;
    yield { seq, text: text.slice(from, end) };
    from = end;
  }
}
