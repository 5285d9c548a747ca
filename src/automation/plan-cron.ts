/** A cron job whose time has come -> what is done about it. Pure. */
import type { Plan } from "../core/automation.ts";
import type { DueJob, Schedule } from "../core/jobs.ts";
import type { NewOccurrence } from "../core/occurrences.ts";
import { judgeDue, type Left } from "./misfire.ts";

/** Runs of a job that wait for the one before, with `overlap: queue`. */
export const QUEUE_LIMIT = 5;

export interface CronSituation {
  now: Date;
  /** Occurrences of the job that have not ended. */
  open: number;
  createRunId(): string;
}

export function planCron(
  job: DueJob & { schedule: Schedule; nextAt: Date },
  { now, open, createRunId }: CronSituation,
): Plan {
  const verdict = judgeDue(job.schedule, job.nextAt, now, job.misfire);
  const records: NewOccurrence[] = [];
  if (verdict.missed) records.push(record(verdict.missed, "missed"));
  if (verdict.superseded) records.push(record(verdict.superseded, "superseded"));
  let left = job.maxRuns === null ? Number.POSITIVE_INFINITY : job.maxRuns - job.runsMade;
  let ahead = open;
  for (const { at, late } of verdict.run) {
    const only = { first: at, last: at, count: 1, more: false };
    if (left <= 0) records.push(record({ ...only, reason: ranEnough(job.maxRuns) }, "skipped"));
    else if (open > 0 && job.overlap === "skip")
      records.push(record({ ...only, reason: OVERLAPPED }, "skipped"));
    else if (ahead > QUEUE_LIMIT) records.push(record({ ...only, reason: QUEUED_ENOUGH }, "superseded"));
    else {
      const fate = ahead === 0 ? "claimed" : "queued";
      records.push({ ...record({ ...only, reason: null }, fate), late, runId: createRunId() });
      ahead++;
      left--;
    }
  }
  if (left <= 0) return { records, nextAt: null, done: ranEnough(job.maxRuns) };
  return { records, nextAt: verdict.next, done: verdict.next === null ? OVER : null };
}

const OVERLAPPED = "The run before was not over, and the job skips what comes meanwhile (overlap: skip).";
const QUEUED_ENOUGH = `${QUEUE_LIMIT} runs of the job were waiting for the one before already.`;
const OVER = "Its time has come and gone.";

export function ranEnough(maxRuns: number | null): string {
  return `It has run as often as it was to (max_runs: ${maxRuns}).`;
}

function record(
  { first, last, count, more, reason }: Omit<Left, "reason"> & { reason: string | null },
  fate: NewOccurrence["fate"],
): NewOccurrence {
  return {
    ...{ scheduledAt: first, until: count > 1 ? last : null, count, trigger: "schedule", fate, late: false },
    reason: more ? `${reason} There were more than ${count} of them.` : reason,
    ...{ runId: null, finding: null },
  };
}
