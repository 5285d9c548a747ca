/** Jobs and occurrences as tests need them: all that is not said is of no matter. */
import type { Job, JobSpec } from "../../src/core/jobs.ts";
import type { NewOccurrence, Occurrence, Outcome } from "../../src/core/occurrences.ts";

export const NOW = new Date("2026-11-20T10:00:00.000Z");
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export function later(ms: number, from = NOW): Date {
  return new Date(from.getTime() + ms);
}

export function newSpec(spec: Partial<JobSpec> = {}): JobSpec {
  return {
    ...{ kind: "cron", name: "watch", command: "look", session: "new", agentName: null, provider: null },
    ...{ model: null, sealedKey: null, allowedTools: null, approval: "deny", webhookUrl: null },
    ...{ sealedWebhookSecret: null, budget: {}, overlap: "skip", maxRuns: null, misfire: "once" },
    ...{ repeatAfterCrash: false, watch: null },
    schedule: { kind: "cron", expression: "* * * * *", timezone: "UTC" },
    ...spec,
  } as JobSpec;
}

export function newJob(job: Partial<Job> = {}): Job {
  return {
    ...newSpec(job),
    ...{ id: "job_1", owner: "ann", status: "active", reason: null, runsMade: 0, failures: 0 },
    ...{ spent: { tokens: 0, money: 0 }, lastRunAt: null, lastFate: null, nextAt: NOW },
    watchState: { state: null, lastCheckedAt: null, lastFiredAt: null, lastError: null },
    ...{ createdAt: NOW, updatedAt: NOW },
    ...job,
  };
}

export function newOccurrence(occurrence: Partial<NewOccurrence> = {}): NewOccurrence {
  return {
    ...{ scheduledAt: NOW, until: null, count: 1, trigger: "schedule", fate: "claimed", late: false },
    ...{ reason: null, runId: "run_1", finding: null },
    ...occurrence,
  };
}

export function occurrenceOf(occurrence: Partial<Occurrence> = {}): Occurrence & { runId: string } {
  return {
    ...newOccurrence(),
    ...{ jobId: "job_1", owner: "ann", sessionId: null, attempts: 0, startedAt: null, endedAt: null },
    ...{ spent: { tokens: 0, money: 0 }, denied: [], delivery: null },
    ...occurrence,
    runId: occurrence.runId ?? "run_1",
  };
}

export function outcome(change: Partial<Outcome> = {}): Outcome {
  return {
    ...{ fate: "ran", reason: null, sessionId: "ses_1", spent: { tokens: 15, money: 0.5 }, denied: [] },
    ...{ at: NOW, counts: "success" },
    ...change,
  };
}
