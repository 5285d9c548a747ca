/**
 * Looks of one claim that have found nothing, which are by far the most: those that end at about the same time are
 * written together, since a transaction for each would cost more than its look.
 */
import type { Jobs, QuietLook } from "../core/automation.ts";

/** That the first one waits for others. Milliseconds. */
const GATHER_MS = 100;

export class QuietLooks {
  readonly #rest: (looks: QuietLook[]) => Promise<void>;
  /** Looks that have not ended. */
  #left: number;
  #looks: QuietLook[] = [];
  #written: Promise<void> | undefined;
  #write = () => {};

  constructor(jobs: Pick<Jobs, "rest">, claim: string, count: number) {
    this.#rest = (looks) => jobs.rest(claim, looks);
    this.#left = count;
  }

  /** Told of each, once. null: it has found something, or failed. Resolves when it is written; rejects when it cannot be. */
  async ended(look: QuietLook | null): Promise<void> {
    this.#left -= 1;
    if (look) {
      this.#looks.push(look);
      this.#written ??= this.#gather();
    }
    const written = this.#written;
    if (this.#left === 0) this.#write();
    if (look) await written;
  }

  async #gather(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GATHER_MS);
      this.#write = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    const looks = this.#looks;
    this.#looks = [];
    this.#written = undefined;
    await this.#rest(looks);
  }
}
