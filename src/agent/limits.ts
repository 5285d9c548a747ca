/** What ends a run that does not end by itself (R6). Each limit has a reason that the user reads. */
import type { CallPart } from "../core/message.ts";

export interface RunLimits {
  /** Model calls in one run. */
  maxSteps: number;
  /** Wall clock of one run. Milliseconds. */
  timeoutMs: number;
  /** Input and output tokens of one run together. */
  tokenBudget: number;
}

/** The same call with the same arguments this often in a row is a loop. */
const IDENTICAL_CALLS = 4;

export class LimitWatch {
  readonly #limits: RunLimits;
  #last = "";
  #repeats = 0;

  constructor(limits: RunLimits) {
    this.#limits = limits;
  }

  /** Before a model call: the reason to stop, or null. `tokens`: what counts for the budget. */
  beforeStep(step: number, tokens: number): string | null {
    const { maxSteps, tokenBudget } = this.#limits;
    if (step >= maxSteps)
      return `I stopped here: a run may take ${maxSteps} steps (MAX_STEPS). Ask me to go on.`;
    if (tokens >= tokenBudget)
      return `I stopped here: this run has used ${tokens} tokens, and ${tokenBudget} is its budget (RUN_TOKEN_BUDGET). Ask me to go on.`;
    return null;
  }

  /** Before the calls of a turn are run: the reason not to, or null. */
  beforeCalls(calls: CallPart[]): string | null {
    for (const call of calls) {
      const signature = `${call.name}\0${call.args}`;
      this.#repeats = signature === this.#last ? this.#repeats + 1 : 1;
      this.#last = signature;
      if (this.#repeats >= IDENTICAL_CALLS)
        return `I stopped here: I was about to call ${call.name} with the same arguments for the ${IDENTICAL_CALLS}th time in a row, which does not lead anywhere.`;
    }
    return null;
  }

  timeout(): string {
    return `I stopped here: a run may take ${this.#limits.timeoutMs / 1000} s (RUN_TIMEOUT). Ask me to go on.`;
  }
}
