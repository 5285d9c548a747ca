/**
 * The beat at which the leases of runs under way are extended, while there are any. One for all; by run on workerd, where
 * timers and runs end unnoticed with the request that they belong to.
 */

/** How often leases are extended and stops from elsewhere are noticed. Milliseconds. */
const PULSE_MS = 500;
/** Of several beats within it one extends the leases of all. Milliseconds. */
const APART_MS = PULSE_MS / 2;
/** A run whose own pulse has been silent for longer may have ended with its request. Milliseconds. */
const SILENT_MS = 4 * PULSE_MS;

interface Pulse {
  timer: ReturnType<typeof setInterval>;
  /** When it was felt last. */
  at: number;
}

export class LeasePulse {
  readonly #byRun: boolean;
  readonly #onBeat: () => void;
  readonly #pulses = new Map<string, Pulse>();
  #beaten = 0;
  #stopped = false;

  constructor(byRun: boolean, onBeat: () => void) {
    this.#byRun = byRun;
    this.#onBeat = onBeat;
  }

  start(runId: string): void {
    const key = this.#byRun ? runId : "";
    if (this.#stopped || this.#pulses.has(key)) return;
    const beat = () => {
      pulse.at = performance.now();
      if (pulse.at - this.#beaten < APART_MS) return;
      this.#beaten = pulse.at;
      this.#onBeat();
    };
    const pulse: Pulse = { timer: setInterval(beat, PULSE_MS), at: performance.now() };
    this.#pulses.set(key, pulse);
  }

  /** `last`: no other run is under way. */
  end(runId: string, last: boolean): void {
    if (this.#byRun) this.#stop(runId);
    else if (last) this.#stop("");
  }

  /** For good. */
  close(): void {
    this.#stopped = true;
    for (const key of this.#pulses.keys()) this.#stop(key);
  }

  /** Those whose leases are to be extended; undefined: all that are ours. */
  alive(): string[] | undefined {
    if (!this.#byRun) return undefined;
    const since = performance.now() - SILENT_MS;
    return [...this.#pulses].flatMap(([runId, { at }]) => (at >= since ? [runId] : []));
  }

  #stop(key: string): void {
    clearInterval(this.#pulses.get(key)?.timer);
    this.#pulses.delete(key);
  }
}
