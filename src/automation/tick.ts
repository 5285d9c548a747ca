/**
 * The runner of jobs. Any number of processes may tick on one database: a job that is due is claimed by one of them, and an
 * occurrence has one row, one run and one end (R3). Nothing here outlives the process: what it leaves, the next tick of
 * any other finds.
 */

import { createRunId } from "../agent/turns.ts";
import type { Plan, QuietLook } from "../core/automation.ts";
import type { DueJob, Job, JobKind } from "../core/jobs.ts";
import type { Occurrence } from "../core/occurrences.ts";
import { Courier } from "./deliver.ts";
import { hasRun, type OccurrenceRunParts, OccurrenceRuns, type WithRun } from "./occurrence-runs.ts";
import { withoutRun } from "./outcome.ts";
import { planCron, QUEUE_LIMIT } from "./plan-cron.ts";
import { QuietLooks } from "./quiet-looks.ts";

export interface EngineParts extends OccurrenceRunParts {
  /** What is done about jobs of other kinds that are due. Those without one are left alone. */
  planners?: Partial<Record<JobKind, Planner>> | undefined;
}

/** `open`: the occurrences of the job that have not ended. Never throws for what it finds. */
export type Planner = (
  job: DueJob,
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

/** A tick that has been at it for longer has ended with its request. Milliseconds. */
const LONGEST_TICK_MS = 60_000;
/** That somebody who asks now and then finds out how late it was. Milliseconds. */
const LAG_MS = 60_000;
/** That a tick waits for watchdogs. Milliseconds. */
const WATCHED_MS = 1_000;
/** Occurrences looked at, and jobs of other kinds claimed, in one go. */
const AT_ONCE = 50;
/** While all slots are taken. Milliseconds. */
const NO_SLOT_MS = 1_000;
const CRASHED =
  "The service stopped between taking this up and the beginning of its run. Nothing was done; repeat_after_crash would have it begun again.";

const PAUSED = "The job was paused while this waited for its turn.";

export class Engine {
  readonly #parts: EngineParts;
  readonly #planners: Partial<Record<JobKind, Planner>>;
  readonly #courier: Courier;
  readonly #runs: OccurrenceRuns;
  #busy: { since: number } | undefined;
  #watching: { since: number } | undefined;
  #again = false;
  #stopped = false;
  /** How late the latest claim was, and when that was found. */
  #late = { seconds: 0, since: Number.NEGATIVE_INFINITY };

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#planners = { ...parts.planners, cron: planDue };
    this.#runs = new OccurrenceRuns(parts, () => this.tick());
    const { vault, platform } = parts.agent;
    this.#courier = new Courier({ deliveries: parts.automation.deliveries, vault, platform });
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
        ticked.delivered += await this.#courier.deliverDue();
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
    this.#courier.stop();
  }

  /** By hand, now; null where one is not over and the job skips what comes meanwhile, or its queue is full. Resolves when its run has begun, or cannot. */
  async runNow(job: Job): Promise<Occurrence | null> {
    const { automation } = this.#parts;
    const now = this.#now();
    const open = job.overlap === "queue" ? await automation.occurrences.open([job.id]) : [];
    if (open.length > QUEUE_LIMIT) return null;
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

  /** How late the latest job was of those that were taken up within the last minute. */
  get lagSeconds(): number {
    const { seconds, since } = this.#late;
    return performance.now() - since < LAG_MS ? seconds : 0;
  }

  #now(): Date {
    return this.#parts.agent.platform.now();
  }

  #lease(): Date {
    return new Date(this.#now().getTime() + this.#parts.leaseMs);
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
      const limit = kind === "cron" ? this.#runs.free : AT_ONCE;
      if (limit <= 0) break;
      const claim = crypto.randomUUID();
      const { metrics, automation } = this.#parts;
      const { jobs } = automation;
      const claimed = await jobs.claim({ kind, claim, now: this.#now(), until: this.#lease(), limit });
      total += claimed.length;
      if (claimed.length > 0) metrics.claimed(kind, claimed.length);
      const seconds = latenessOf(claimed, this.#now());
      if (seconds > this.lagSeconds) this.#late = { seconds, since: performance.now() };
      const open = await automation.occurrences.open(claimed.map(({ id }) => id));
      const quiet = new QuietLooks(jobs, claim, claimed.length);
      await Promise.all(
        claimed.map((job) => {
          const ofJob = open.filter(({ jobId }) => jobId === job.id);
          return this.#runs.attempt(job.id, async () => {
            let look: QuietLook | null = null;
            try {
              const plan = await planner(job, { now: this.#now(), open: ofJob });
              if (kind === "watchdog") metrics.checked(outcomeOf(plan));
              look = quietOf(job.id, plan);
              if (!look) await this.#settle(job, claim, plan);
            } finally {
              await quiet.ended(look);
            }
          });
        }),
      );
      if (claimed.length < limit) break;
      // After a long sleep all jobs are due, and to reckon what each has missed takes its time.
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    return total;
  }

  async #settle(due: DueJob, claim: string, plan: Plan): Promise<void> {
    const { jobs } = this.#parts.automation;
    // Before its occurrence is written: what fails by then is tried again. Who changes it meanwhile undoes the claim.
    const begins = plan.records.some(({ fate }) => fate === "claimed");
    const job = begins ? await jobs.get(due.owner, due.kind, due.id) : null;
    const look = { holder: this.#parts.agent.holder, at: this.#lease() };
    const recorded = await jobs.settle(due.id, claim, plan, look);
    for (const record of recorded ?? []) {
      const { fate, count } = record;
      if (fate !== "claimed" && fate !== "queued") this.#parts.metrics.occurred(fate, count);
      if (!job || fate !== "claimed") continue;
      const occurrence = { ...record, ...FRESH, jobId: job.id, owner: job.owner };
      if (hasRun(occurrence)) this.#runs.begin(job, occurrence);
    }
  }

  /** Occurrences whose time to be looked at has come: in the queue, or claimed by somebody who may be gone. */
  async #look(): Promise<number> {
    const { automation } = this.#parts;
    const wish = { now: this.#now(), until: this.#lease(), limit: AT_ONCE, queued: this.#runs.free > 0 };
    const found = await automation.occurrences.look(wish);
    for (const occurrence of found) {
      if (!hasRun(occurrence) || this.#runs.isMine(occurrence.runId)) continue;
      await this.#runs.attempt(occurrence.jobId, async () => {
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
    if (job.status === "paused" && occurrence.trigger !== "manual")
      return this.#runs.finish(job, occurrence, withoutRun("skipped", PAUSED, this.#now(), "neither"), "");
    if (this.#runs.free <= 0)
      return occurrences.postpone(occurrence, new Date(this.#now().getTime() + NO_SLOT_MS));
    const until = this.#lease();
    // Where it is not its turn, the end of the one before it wakes it: to put it off here could undo that.
    if (await occurrences.start(occurrence, { holder: agent.holder, until }))
      await this.#runs.begin(job, occurrence);
  }

  async #lookAfter(job: Job, occurrence: WithRun): Promise<void> {
    const record = await this.#parts.agent.store.runs.get(occurrence.owner, occurrence.runId);
    if (record) {
      // Taken over here: its end is recorded when it comes, and not at the next look.
      const live = this.#parts.runs.find(occurrence.runId);
      return live ? this.#runs.begin(job, occurrence, live) : this.#runs.end(job, occurrence);
    }
    // Whoever claimed it died before anything happened. Its run id stays, so that there is one run at most.
    if (!job.repeatAfterCrash)
      return this.#runs.finish(job, occurrence, withoutRun("failed", CRASHED, this.#now(), "failure"), "");
    if (this.#runs.free > 0) await this.#runs.begin(job, occurrence);
    else
      await this.#parts.automation.occurrences.postpone(
        occurrence,
        new Date(this.#now().getTime() + NO_SLOT_MS),
      );
  }
}

/** What an occurrence has that was claimed just now. */
const FRESH = {
  ...{ sessionId: null, attempts: 0, startedAt: null, endedAt: null, spent: { tokens: 0, money: 0 } },
  ...{ denied: [], delivery: null },
} satisfies Partial<Occurrence>;

/** Seconds; the first of them was due first. */
function latenessOf([first]: readonly DueJob[], now: Date): number {
  return first?.nextAt ? Math.max(0, now.getTime() - first.nextAt.getTime()) / 1_000 : 0;
}

function outcomeOf({ records, watchState }: Plan): "quiet" | "fired" | "failed" {
  if (records.length > 0) return "fired";
  return watchState?.lastError ? "failed" : "quiet";
}

/** null: there is more to be written than that somebody has looked. */
function quietOf(id: string, { records, nextAt, done, watchState }: Plan): QuietLook | null {
  const isQuiet = records.length === 0 && done === null && watchState && watchState.state === undefined;
  return isQuiet && nextAt ? { ...watchState, id, nextAt } : null;
}

const planDue: Planner = (job, { now, open }) => {
  const { schedule, nextAt } = job;
  if (!schedule || !nextAt) return { records: [], nextAt: null, done: "It has no time." };
  return planCron({ ...job, schedule, nextAt }, { now, open: open.length, createRunId });
};
