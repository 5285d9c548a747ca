/** The local runner's clock: sleeps until something is due, and looks now and then for what others have added. */

/** It may be another process that adds a job, and the machine's clock may jump. Milliseconds. */
const LONGEST_MS = 15_000;
/** Between two looks while something is due that cannot be begun: no slot is free, or another process is at it. */
const SHORTEST_MS = 1_000;

/** Without a good end for that long the runner has failed. Milliseconds. */
const SILENT_MS = 120_000;

export interface PaceParts {
  tick(): Promise<unknown>;
  /** When something is due next; null: nothing is. */
  nextDue(): Promise<Date | null>;
  now(): Date;
  /** Takes a failure as well. */
  background(work: Promise<unknown>): void;
}

export class Pace {
  readonly #parts: PaceParts;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ended = performance.now();
  #turning = false;
  #again = false;
  #stopped = false;

  constructor(parts: PaceParts) {
    this.#parts = parts;
  }

  /** Something is due sooner than was known. */
  wake(): void {
    this.#again = true;
    if (!this.#turning) this.#sleep(0);
  }

  /** Throws when no turn has ended well for a while. */
  check(): void {
    const silent = performance.now() - this.#ended;
    if (silent > SILENT_MS)
      throw new Error(`no look at what is due has ended well for ${Math.round(silent / 1_000)} s`);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #sleep(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    this.#timer = setTimeout(() => this.#parts.background(this.#turn()), ms);
    // It must not keep a process alive that has nothing else to do.
    (this.#timer as { unref?(): void }).unref?.();
  }

  async #turn(): Promise<void> {
    this.#turning = true;
    this.#again = false;
    let pause = LONGEST_MS;
    try {
      await this.#parts.tick();
      pause = await this.#pause();
      this.#ended = performance.now();
    } finally {
      this.#turning = false;
      this.#sleep(this.#again ? 0 : pause);
    }
  }

  async #pause(): Promise<number> {
    const next = await this.#parts.nextDue();
    const left = next === null ? LONGEST_MS : next.getTime() - this.#parts.now().getTime();
    return left <= 0 ? SHORTEST_MS : Math.min(left, LONGEST_MS);
  }
}
