/**
 * The runner of jobs. Any number of processes may tick on one database: a job that is due is claimed by one of them, and an
 * occurrence has one row, one run and one end (R3). Nothing here outlives the process: what it leaves, the next tick of
 * any other finds.
 */

import { createRunId } from "../agent/turns.ts";
import type { Automation, Job, JobKind, Occurrence, Outcome, Plan } from "../core/automation.ts";
import { AppError } from "../errors.ts";
import { allowanceOf, type BudgetLimits, type ModelPrice, priceOf } from "./budget.ts";
import { deliverDue } from "./deliver.ts";
import { deliveryOf, mayBeRetried, outcomeOf, withoutRun } from "./outcome.ts";
import { planCron } from "./plan-cron.ts";
import { answererOf, keyOf, type RunHost, startRun } from "./start-run.ts";

export interface EngineParts extends RunHost {
  automation: Automation;
  /** Runs of jobs at once, in this process. */
  concurrency: number;
  limits: BudgetLimits;
  prices: readonly ModelPrice[];
  /** How long a claim is left alone by others. Milliseconds. */
  leaseMs: number;
  /** How long a run may take. Milliseconds. */
  runTimeoutMs: number;
  /** What is done about jobs of other kinds that are due. Those without one are left alone. */
  planners?: Partial<Record<JobKind, Planner>> | undefined;
}

/** `open`: the occurrences of the job that have not ended. Never throws for what it finds. */
export type Planner = (
  job: Job,
  situation: { now: Date; open: readonly Occurrence[] },
) => Plan | Promise<Plan>;

export interface Ticked {
  /** Jobs that were due and taken up here. */
  claimed: number;
  /** Occurrences that were looked at again. */
  looked: number;
  /** Posts to webhooks begun. */
  delivered: number;
}

type WithRun = Occurrence & { runId: string };

/** A tick that has been at it for longer has ended with its request. Milliseconds. */
const LONGEST_TICK_MS = 60_000;
/** That a tick waits for watchdogs. Milliseconds. */
const WATCHED_MS = 1_000;
/** Occurrences looked at, and jobs of other kinds claimed, in one go. */
const AT_ONCE = 50;
/** Behind its run's own time. Milliseconds. */
const SLOT_MARGIN_MS = 5 * 60_000;
/** While all slots are taken. Milliseconds. */
const NO_SLOT_MS = 1_000;
/** Pauses before a run that could not begin is tried again; then it has failed. Milliseconds. */
export const BEGIN_AGAIN_MS = [15_000, 60_000, 5 * 60_000, 15 * 60_000];

const CRASHED =
  "The service stopped between taking this up and the beginning of its run. Nothing was done; repeat_after_crash would have it begun again.";

export class Engine {
  readonly #parts: EngineParts;
  readonly #planners: Partial<Record<JobKind, Planner>>;
  /** Runs of jobs under way here, and since when. */
  readonly #mine = new Map<string, number>();
  #busy: { since: number } | undefined;
  #watching: { since: number } | undefined;
  #again = false;
  #stopped = false;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#planners = { ...parts.planners, cron: planDue };
  }

  /** Never twice at once in a process: who comes meanwhile has what is new looked at, and does not wait. */
  async tick(): Promise<Ticked> {
    const ticked = { claimed: 0, looked: 0, delivered: 0 };
    const busy = this.#busy;
    if (this.#stopped || (busy && performance.now() - busy.since < LONGEST_TICK_MS)) {
      this.#again = true;
      return ticked;
    }
    const mine = { since: performance.now() };
    this.#busy = mine;
    try {
      do {
        this.#again = false;
        ticked.delivered += await deliverDue(this.#courier());
        ticked.looked += await this.#look();
        ticked.claimed += await this.#claim("cron");
        ticked.claimed += await this.#watch();
      } while (this.#again && !this.#stopped && performance.now() - mine.since < LONGEST_TICK_MS / 2);
    } finally {
      if (this.#busy === mine) this.#busy = undefined;
    }
    return ticked;
  }

  /** Takes up nothing more. What is under way ends or is given up elsewhere. */
  stop(): void {
    this.#stopped = true;
  }

  /** By hand, now; null where one is not over and the job skips what comes meanwhile. Resolves when its run has begun, or cannot. */
  async runNow(job: Job): Promise<Occurrence | null> {
    const { automation } = this.#parts;
    const now = this.#now();
    const occurrence = await automation.occurrences.add(
      job.owner,
      job.id,
      {
        ...{ scheduledAt: now, until: null, count: 1, trigger: "manual", fate: "queued", late: false },
        ...{ reason: null, runId: createRunId(), finding: null },
      },
      { now, alone: job.overlap === "skip" },
    );
    if (!occurrence || !hasRun(occurrence)) return null;
    await this.#startQueued(occurrence, job);
    return automation.occurrences.get(job.owner, occurrence);
  }

  get #free(): number {
    const oldest = this.#now().getTime() - this.#parts.runTimeoutMs - SLOT_MARGIN_MS;
    // On Workers what was under way may have ended with its request, unnoticed.
    for (const [runId, since] of this.#mine) if (since < oldest) this.#mine.delete(runId);
    return this.#parts.concurrency - this.#mine.size;
  }

  #now(): Date {
    return this.#parts.agent.platform.now();
  }

  #lease(): Date {
    return new Date(this.#now().getTime() + this.#parts.leaseMs);
  }

  #courier() {
    const { automation, agent } = this.#parts;
    return { deliveries: automation.deliveries, vault: agent.vault, platform: agent.platform };
  }

  /** What others are slow to answer holds up nothing that has its time: the tick goes on without it. */
  async #watch(): Promise<number> {
    const since = performance.now();
    if (this.#watching && since - this.#watching.since < LONGEST_TICK_MS) return 0;
    const watching = { since };
    this.#watching = watching;
    const work = this.#claim("watchdog").finally(() => {
      if (this.#watching === watching) this.#watching = undefined;
    });
    this.#parts.agent.platform.background(work);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const enough = new Promise<number>((resolve) => {
      timer = setTimeout(() => resolve(0), WATCHED_MS);
    });
    try {
      return await Promise.race([work, enough]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #claim(kind: JobKind): Promise<number> {
    const planner = this.#planners[kind];
    let total = 0;
    while (planner && !this.#stopped) {
      // Not more than can be begun: the rest may be for others.
      const limit = kind === "cron" ? this.#free : AT_ONCE;
      if (limit <= 0) break;
      const claim = crypto.randomUUID();
      const { jobs } = this.#parts.automation;
      const claimed = await jobs.claim({ kind, claim, now: this.#now(), until: this.#lease(), limit });
      total += claimed.length;
      const open = await this.#parts.automation.occurrences.open(claimed.map(({ id }) => id));
      await Promise.all(
        claimed.map((job) => {
          const ofJob = open.filter(({ jobId }) => jobId === job.id);
          return this.#attempt(job.id, () => this.#settle(job, claim, planner, ofJob));
        }),
      );
      if (claimed.length < limit) break;
    }
    return total;
  }

  async #settle(job: Job, claim: string, planner: Planner, open: Occurrence[]): Promise<void> {
    const { automation, agent } = this.#parts;
    const plan = await planner(job, { now: this.#now(), open });
    const look = { holder: agent.holder, at: this.#lease() };
    if (!(await automation.jobs.settle(job.id, claim, plan, look))) return;
    for (const record of plan.records) {
      if (record.fate !== "claimed") continue;
      const occurrence = { ...record, ...FRESH, jobId: job.id, owner: job.owner };
      if (hasRun(occurrence)) this.#begin(job, occurrence);
    }
  }

  /** Occurrences whose time to be looked at has come: in the queue, or claimed by somebody who may be gone. */
  async #look(): Promise<number> {
    const { automation } = this.#parts;
    const found = await automation.occurrences.look(this.#now(), this.#lease(), AT_ONCE);
    for (const occurrence of found) {
      if (!hasRun(occurrence) || this.#mine.has(occurrence.runId)) continue;
      await this.#attempt(occurrence.jobId, async () => {
        const job = await automation.jobs.get(occurrence.owner, null, occurrence.jobId);
        if (!job) return;
        if (occurrence.fate === "queued") await this.#startQueued(occurrence, job);
        else await this.#lookAfter(job, occurrence);
      });
    }
    return found.length;
  }

  async #startQueued(occurrence: WithRun, job: Job): Promise<void> {
    const { automation, agent } = this.#parts;
    const { occurrences } = automation;
    if (this.#free <= 0)
      return occurrences.postpone(occurrence, new Date(this.#now().getTime() + NO_SLOT_MS));
    const until = this.#lease();
    if (await occurrences.start(occurrence, { holder: agent.holder, until }))
      await this.#begin(job, occurrence);
    else await occurrences.postpone(occurrence, until);
  }

  async #lookAfter(job: Job, occurrence: WithRun): Promise<void> {
    const record = await this.#parts.agent.store.runs.get(occurrence.owner, occurrence.runId);
    if (record) return this.#end(job, occurrence);
    // Whoever claimed it died before anything happened. Its run id stays, so that there is one run at most.
    if (!job.repeatAfterCrash)
      return this.#finish(job, occurrence, withoutRun("failed", CRASHED, this.#now(), "failure"), "");
    if (this.#free > 0) await this.#begin(job, occurrence);
    else
      await this.#parts.automation.occurrences.postpone(
        occurrence,
        new Date(this.#now().getTime() + NO_SLOT_MS),
      );
  }

  /** Takes a slot, and gives it back when the run is over. Resolves when it has begun, or cannot. */
  #begin(job: Job, occurrence: WithRun): Promise<void> {
    const { background } = this.#parts.agent.platform;
    const { runId } = occurrence;
    this.#mine.set(runId, this.#now().getTime());
    let begun = () => {};
    const beginning = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const whole = async () => {
      try {
        const live = await this.#attempt(job.id, () => this.#start(job, occurrence));
        begun();
        if (live) {
          await live.ended;
          await this.#attempt(job.id, () => this.#end(job, occurrence));
        }
      } finally {
        begun();
        this.#mine.delete(runId);
      }
      await this.tick();
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
        await this.#finish(job, occurrence, outcome, "");
        return undefined;
      }
      // Who was held up for long, as by a machine that slept, may have been given up by others.
      const heldUp = this.#now().getTime() - now.getTime() > this.#parts.leaseMs / 2;
      if (heldUp && !(await occurrences.hold(occurrence, occurrence.runId, this.#lease()))) return undefined;
      const { sessionId, live } = await startRun(this.#parts, job, occurrence, answerer, allowance.tokens);
      await this.#attempt(job.id, () => occurrences.begun(occurrence, sessionId, now));
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
    await this.#finish(job, occurrence, withoutRun(fate, fault.message, now, "failure"), "");
  }

  /** The run has ended, or is looked at again later. */
  async #end(job: Job, occurrence: WithRun): Promise<void> {
    const { agent, prices } = this.#parts;
    const record = await agent.store.runs.get(occurrence.owner, occurrence.runId);
    if (!record) {
      const gone = "Its run is gone: the session was deleted while it was at it.";
      return this.#finish(job, occurrence, withoutRun("failed", gone, this.#now(), "neither"), "");
    }
    const outcome = await outcomeOf(agent.store, occurrence, record, prices, this.#now());
    if (outcome) await this.#finish(job, occurrence, outcome, outcome.reply);
  }

  async #finish(job: Job, occurrence: Occurrence, outcome: Outcome, reply: string): Promise<void> {
    const { automation, agent } = this.#parts;
    const delivery = deliveryOf(job, occurrence, outcome, reply);
    const isFirst = await automation.occurrences.finish(occurrence, outcome, delivery);
    const { fate, reason } = outcome;
    if (!isFirst || fate === "ran" || fate === "late") return;
    agent.platform.log("warning", "a job did not run well", { job_id: job.id, fate, reason });
  }

  /** One job that cannot be helped must not keep the others from it; the next look finds it again. */
  async #attempt<T>(jobId: string, work: () => Promise<T>): Promise<T | undefined> {
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

const INTERNAL = "Something failed inside the service. The log has more under the job's id.";

/** What an occurrence has that was claimed just now. */
const FRESH = {
  ...{ sessionId: null, attempts: 0, startedAt: null, endedAt: null, spent: { tokens: 0, money: 0 } },
  ...{ denied: [], delivery: null },
} satisfies Partial<Occurrence>;

function hasRun(occurrence: Occurrence): occurrence is WithRun {
  return occurrence.runId !== null;
}

const planDue: Planner = (job, { now, open }) => {
  const { schedule, nextAt } = job;
  if (!schedule || !nextAt) return { records: [], nextAt: null, done: "It has no time." };
  return planCron({ ...job, schedule, nextAt }, { now, open: open.length, createRunId });
};
