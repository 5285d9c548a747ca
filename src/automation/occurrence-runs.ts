/** Runs of occurrences that this process has begun: its slots, each run from its beginning to the fate of its occurrence. */
import type { LiveRun, LiveRuns } from "../agent/live-runs.ts";
import type { Automation } from "../core/automation.ts";
import type { Job } from "../core/jobs.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Occurrence, Outcome } from "../core/occurrences.ts";
import { AppError } from "../errors.ts";
import { allowanceOf, type BudgetLimits, type ModelPrice, priceOf } from "./budget.ts";
import { deliveryOf, mayBeRetried, outcomeOf, withoutRun } from "./outcome.ts";
import { answererOf, keyOf, type RunHost, startRun } from "./start-run.ts";

export interface OccurrenceRunParts extends RunHost {
  runs: Pick<LiveRuns, "drive" | "find">;
  metrics: Pick<Metrics, "claimed" | "checked" | "started" | "occurred">;
  automation: Automation;
  /** Runs of jobs at once, in this process. */
  concurrency: number;
  limits: BudgetLimits;
  prices: readonly ModelPrice[];
  /** How long a claim is left alone by others. Milliseconds. */
  leaseMs: number;
  /** How long a run may take. Milliseconds. */
  runTimeoutMs: number;
}

export type WithRun = Occurrence & { runId: string };

/** Behind its run's own time. Milliseconds. */
const SLOT_MARGIN_MS = 5 * 60_000;
/** Pauses before a run that could not begin is tried again; then it has failed. Milliseconds. */
export const BEGIN_AGAIN_MS = [15_000, 60_000, 5 * 60_000, 15 * 60_000];

const INTERNAL = "Something failed inside the service. The log has more under the job's id.";

export class OccurrenceRuns {
  readonly #parts: OccurrenceRunParts;
  readonly #onEnd: () => Promise<unknown>;
  /** Runs of jobs under way here, and since when. */
  readonly #mine = new Map<string, number>();

  /** `onEnd`: a slot is free again, and what has waited for this run may begin. */
  constructor(parts: OccurrenceRunParts, onEnd: () => Promise<unknown>) {
    this.#parts = parts;
    this.#onEnd = onEnd;
  }

  /** How many more may begin. */
  get free(): number {
    const oldest = this.#now().getTime() - this.#parts.runTimeoutMs - SLOT_MARGIN_MS;
    // On Workers what was under way may have ended with its request, unnoticed.
    for (const [runId, since] of this.#mine) if (since < oldest) this.#mine.delete(runId);
    return this.#parts.concurrency - this.#mine.size;
  }

  isMine(runId: string): boolean {
    return this.#mine.has(runId);
  }

  #now(): Date {
    return this.#parts.agent.platform.now();
  }

  /** Takes a slot, and gives it back when the run is over. Resolves when it has begun, or cannot. `taken`: it has. */
  begin(job: Job, occurrence: WithRun, taken?: LiveRun): Promise<void> {
    const { background } = this.#parts.agent.platform;
    const { runId } = occurrence;
    this.#mine.set(runId, this.#now().getTime());
    let begun = () => {};
    const beginning = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const whole = async () => {
      try {
        const live = taken ?? (await this.attempt(job.id, () => this.#start(job, occurrence)));
        begun();
        if (live) {
          await live.ended;
          await this.attempt(job.id, () => this.end(job, occurrence));
        }
      } finally {
        begun();
        this.#mine.delete(runId);
      }
      await this.#onEnd();
    };
    background(whole());
    return beginning;
  }

  async #start(job: Job, occurrence: WithRun) {
    const { automation, agent, limits, prices } = this.#parts;
    const { occurrences } = automation;
    const now = this.#now();
    try {
      const answerer = await answererOf(this.#parts, job, await keyOf(this.#parts, job));
      const today = await occurrences.spentOn(job.owner, now);
      const price = priceOf(prices, answerer.target.model);
      const allowance = allowanceOf(job, today, limits, price);
      if (allowance.spent !== undefined) {
        const { spent, reason } = allowance;
        const pause = spent === "job" ? reason : undefined;
        const outcome = withoutRun("blocked", reason, now, "neither", pause);
        await this.finish(job, occurrence, outcome, "");
        return undefined;
      }
      // Who was held up for long, as by a machine that slept, may have been given up by others.
      const heldUp = this.#now().getTime() - now.getTime() > this.#parts.leaseMs / 2;
      if (
        heldUp &&
        !(await occurrences.hold(
          occurrence,
          occurrence.runId,
          new Date(this.#now().getTime() + this.#parts.leaseMs),
        ))
      )
        return undefined;
      const { sessionId, live } = await startRun(this.#parts, job, occurrence, answerer, allowance.tokens);
      this.#parts.metrics.started(job.kind);
      await this.attempt(job.id, () => occurrences.begun(occurrence, sessionId, now));
      return live;
    } catch (error) {
      await this.#couldNot(job, occurrence, error);
      if (!(error instanceof AppError))
        agent.platform.log("error", "a job's run could not begin", {
          ...{ job_id: job.id, error: String((error as Error)?.stack ?? error) },
        });
      return undefined;
    }
  }

  /** No model has been asked: it may be tried again. */
  async #couldNot(job: Job, occurrence: WithRun, error: unknown): Promise<void> {
    const { automation, agent } = this.#parts;
    const fault = error instanceof AppError ? error : new AppError("internal", INTERNAL);
    // It may have begun all the same; then the run says how it went.
    if (await agent.store.runs.get(job.owner, occurrence.runId)) return;
    const now = this.#now();
    const pause = BEGIN_AGAIN_MS[occurrence.attempts];
    if (mayBeRetried(fault) && pause !== undefined) {
      const at = new Date(now.getTime() + pause);
      await automation.occurrences.requeue(
        occurrence,
        occurrence.runId,
        at,
        `Tried again later: ${fault.message}`,
      );
      return;
    }
    const fate = fault.code === "missing_key" ? "blocked" : "failed";
    await this.finish(job, occurrence, withoutRun(fate, fault.message, now, "failure"), "");
  }

  /** The run has ended, or is looked at again later. */
  async end(job: Job, occurrence: WithRun): Promise<void> {
    const { agent, prices } = this.#parts;
    const record = await agent.store.runs.get(occurrence.owner, occurrence.runId);
    if (!record) {
      const gone = "Its run is gone: the session was deleted while it was at it.";
      return this.finish(job, occurrence, withoutRun("failed", gone, this.#now(), "neither"), "");
    }
    const outcome = await outcomeOf(agent.store, occurrence, record, prices, this.#now());
    if (outcome) await this.finish(job, occurrence, outcome, outcome.reply);
  }

  async finish(job: Job, occurrence: Occurrence, outcome: Outcome, reply: string): Promise<void> {
    const { automation, agent, metrics } = this.#parts;
    const delivery = deliveryOf(job, occurrence, outcome, reply);
    const isFirst = await automation.occurrences.finish(occurrence, outcome, delivery);
    const { fate, reason } = outcome;
    if (isFirst) metrics.occurred(fate);
    if (!isFirst || ["ran", "late", "skipped"].includes(fate)) return;
    agent.platform.log("warning", "a job did not run well", { job_id: job.id, fate, reason });
  }

  /** One job that cannot be helped must not keep the others from it; the next look finds it again. */
  async attempt<T>(jobId: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#parts.agent.platform.log("error", "a job could not be seen to", {
        ...{ job_id: jobId, error: String((error as Error)?.stack ?? error) },
      });
      return undefined;
    }
  }
}

export function hasRun(occurrence: Occurrence): occurrence is WithRun {
  return occurrence.runId !== null;
}
