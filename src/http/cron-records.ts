/** Cron jobs and their occurrences on the wire: what is shown of them. */
import * as z from "zod";
import { type Job, MISFIRES, OVERLAPS, UNATTENDED_APPROVALS } from "../core/jobs.ts";
import { FATES, type Occurrence } from "../core/occurrences.ts";
import { encodeBudget } from "./cron-fields.ts";
import { unavailableTools } from "./unavailable-tools.ts";

const usage = z.object({
  tokens: z.int(),
  money: z.number().describe("In the currency of MODEL_PRICES; 0 for models without a price."),
});
const time = z.string().nullable();

export const cronView = z
  .object({
    id: z.string(),
    name: z.string(),
    command: z.string(),
    schedule: z.string().nullable().describe("The cron expression, where that is what it has."),
    interval_minutes: z.int().nullable(),
    run_at: time,
    timezone: z.string(),
    session: z.string(),
    agent_name: z.string().nullable(),
    provider: z.string().nullable(),
    model: z.string().nullable(),
    has_api_key: z.boolean().describe("It has a key of its own."),
    allowed_tools: z.array(z.string()).nullable(),
    approval: z.enum(UNATTENDED_APPROVALS),
    misfire: z.enum(MISFIRES),
    overlap: z.enum(OVERLAPS),
    max_runs: z.int().nullable(),
    runs_made: z.int(),
    repeat_after_crash: z.boolean(),
    webhook_url: z.string().nullable(),
    budget: z.record(z.string(), z.number()),
    usage,
    failures: z.int().describe("In a row; ten pause it."),
    status: z.enum(["active", "paused", "done"]),
    reason: z.string().nullable().describe("Why it is paused or done."),
    created_at: z.string(),
    updated_at: z.string(),
    next_run_time: time,
    last_run: time,
    last_fate: z.enum(FATES).nullable(),
  })
  .meta({ id: "CronJob" });

export const cronSaved = z
  .object({
    status: z.enum(["created", "exists", "updated"]),
    job_id: z.string(),
    job: cronView,
    webhook_secret: z.string().optional().describe("Of a webhook that is new. It is shown this once."),
    ...unavailableTools,
  })
  .meta({ id: "CronSaved" });

export const cronList = z
  .object({ jobs: z.array(cronView), next_cursor: z.string().nullable() })
  .meta({ id: "CronList" });

export const occurrenceView = z
  .object({
    scheduled_at: z.string(),
    until: time.describe("The last of those that the entry stands for, where it is more than one."),
    count: z.int(),
    trigger: z.enum(["schedule", "manual", "watchdog"]),
    fate: z
      .enum(FATES)
      .describe(
        "`queued` and `claimed` are under way. `ran`, `late` (it ran late), `skipped` (by the job's own rules), `missed` (nobody was there), `superseded` (a newer one took its place), `blocked` (no key, no budget), `failed`.",
      ),
    reason: z.string().nullable(),
    run_id: z.string().nullable(),
    session_id: z.string().nullable(),
    attempts: z.int().describe("Times that its run could not begin."),
    started_at: time,
    ended_at: time,
    usage,
    denied_tools: z.array(z.string()).describe("Calls that were not run, since nobody could be asked."),
    delivery: z
      .object({
        status: z.enum(["pending", "delivered", "failed"]),
        attempts: z.int(),
        next_at: time,
        last_status: z.int().nullable(),
        last_error: z.string().nullable(),
      })
      .nullable()
      .describe("What became of the webhook's POST."),
  })
  .meta({ id: "Occurrence" });

export const occurrenceList = z
  .object({
    runs: z.array(occurrenceView).describe("Past and under way, newest first."),
    upcoming: z.array(z.string()).describe("The next ten times, soonest first."),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: "OccurrenceList" });

export const runStarted = z
  .object({ status: z.enum(["started", "queued", "ended"]), run: occurrenceView })
  .meta({ id: "RunStarted" });

const iso = (at: Date | null) => at?.toISOString() ?? null;

export function encodeJob(job: Job): z.output<typeof cronView> {
  const { schedule, spent } = job;
  return {
    ...{ id: job.id, name: job.name, command: job.command },
    schedule: schedule?.kind === "cron" ? schedule.expression : null,
    interval_minutes: schedule?.kind === "interval" ? schedule.minutes : null,
    run_at: schedule?.kind === "once" ? iso(schedule.at) : null,
    timezone: schedule?.timezone ?? "UTC",
    ...encodeCommon(job),
    misfire: job.misfire,
    usage: spent,
    next_run_time: job.status === "active" ? iso(job.nextAt) : null,
  };
}

/** What a watchdog has as well. */
export function encodeCommon(job: Job) {
  return {
    ...{ session: job.session, agent_name: job.agentName, provider: job.provider, model: job.model },
    ...{ has_api_key: job.sealedKey !== null, allowed_tools: job.allowedTools, approval: job.approval },
    ...{ overlap: job.overlap, max_runs: job.maxRuns, runs_made: job.runsMade },
    ...{ repeat_after_crash: job.repeatAfterCrash, webhook_url: job.webhookUrl },
    ...{ budget: encodeBudget(job.budget), failures: job.failures, status: job.status, reason: job.reason },
    ...{ created_at: job.createdAt.toISOString(), updated_at: job.updatedAt.toISOString() },
    ...{ last_run: iso(job.lastRunAt), last_fate: job.lastFate },
  };
}

export function encodeOccurrence(occurrence: Occurrence): z.output<typeof occurrenceView> {
  const { delivery } = occurrence;
  return {
    scheduled_at: occurrence.scheduledAt.toISOString(),
    until: iso(occurrence.until),
    ...{ count: occurrence.count, trigger: occurrence.trigger, fate: occurrence.fate },
    ...{ reason: occurrence.reason, run_id: occurrence.runId, session_id: occurrence.sessionId },
    ...{ attempts: occurrence.attempts, started_at: iso(occurrence.startedAt) },
    ...{ ended_at: iso(occurrence.endedAt), usage: occurrence.spent, denied_tools: occurrence.denied },
    delivery: delivery && {
      ...{ status: delivery.status, attempts: delivery.attempts, next_at: iso(delivery.nextAt) },
      ...{ last_status: delivery.lastStatus, last_error: delivery.lastError },
    },
  };
}
