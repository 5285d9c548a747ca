/** The time that a run has, and the signal that ends it: aborted by the caller, by the run's end, or when its time is over. */

/** Made once: without a reason every abort makes an exception with its stack, which is dear for something that no one reads. */
const OVER = new DOMException("The run is over.", "AbortError");

export class RunClock {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #ms: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #abort = () => this.#controller.abort(OVER);
  timedOut = false;

  constructor(ms: number, caller: AbortSignal) {
    this.#caller = caller;
    this.#ms = ms;
  }

  start(): void {
    if (this.#caller.aborted) this.#abort();
    else this.#caller.addEventListener("abort", this.#abort, { once: true });
    this.#timer = setTimeout(() => {
      this.timedOut = true;
      this.#abort();
    }, this.#ms);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#caller.removeEventListener("abort", this.#abort);
    this.#abort();
  }
}
