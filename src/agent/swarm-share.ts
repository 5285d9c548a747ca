/** What all runs of a swarm have in common while this process is at them: tokens, names, and how many work at a time. */
import type { Usage } from "../core/message.ts";
import type { PolicyRule } from "../core/policy.ts";

/** A member's right to work. */
interface Place {
  /** Whether it counts among those who work. */
  held: boolean;
  /** Calls in which the member waits for members of its own. */
  lent: number;
}

export class SwarmShare {
  /** Used by all its runs together. */
  tokens: number;
  /** What a person has allowed for the session. */
  grants: readonly PolicyRule[] = [];
  /** Members' first runs by the names that they were given. */
  readonly names = new Map<string, string>();
  readonly #counted = new Set<string>();
  readonly #places = new Map<string, Place>();
  #working = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(tokens = 0) {
    this.tokens = tokens;
  }

  /** `before`: what the run had used before this process was at it, which counts once. */
  join(runId: string, before: Usage | undefined): void {
    if (this.#counted.has(runId)) return;
    this.#counted.add(runId);
    if (before) this.tokens += before.input + before.output;
  }

  /** Does a member's work when fewer than `limit` others are at theirs. Who is to stop waits for nobody. `runIds`: of the work. */
  async placed<T>(
    runIds: readonly string[],
    limit: number,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    const place: Place = { held: await this.#enter(limit, signal, false), lent: 0 };
    for (const runId of runIds) this.#places.set(runId, place);
    try {
      return await work();
    } finally {
      for (const runId of runIds) this.#places.delete(runId);
      if (place.held) this.#leave();
    }
  }

  /** A member waits for its own members, who may have its place. Nothing for a run that has none. */
  lend(runId: string): void {
    const place = this.#places.get(runId);
    if (!place) return;
    place.lent++;
    if (place.held) this.#leave();
    place.held = false;
  }

  /** Waits for a place again once the last of the member's calls is over, in front of those who have not begun. */
  async takeBack(runId: string, limit: number, signal: AbortSignal): Promise<void> {
    const place = this.#places.get(runId);
    if (!place) return;
    place.lent--;
    if (place.lent === 0) place.held = await this.#enter(limit, signal, true);
  }

  /** false: the signal was faster. */
  #enter(limit: number, signal: AbortSignal, first: boolean): boolean | Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#working < limit) {
      this.#working++;
      return true;
    }
    return new Promise((resolve) => {
      const enter = () => {
        signal.removeEventListener("abort", give);
        this.#working++;
        resolve(true);
      };
      const give = () => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        resolve(false);
      };
      signal.addEventListener("abort", give, { once: true });
      if (first) this.#waiting.unshift(enter);
      else this.#waiting.push(enter);
    });
  }

  #leave(): void {
    this.#working--;
    this.#waiting.shift()?.();
  }
}
