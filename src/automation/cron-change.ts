/** What a change of a cron job makes of it, and what a job is known again by. Pure. */
import { AGENT } from "../agent/target.ts";
import type { Job, JobChange, JobSpec, Schedule } from "../core/jobs.ts";
import type { CronChange } from "../core/scheduler.ts";
import { AppError } from "../errors.ts";
import { ranEnough } from "./plan-cron.ts";
import { nextTime, nextTimes, parseSchedule, type ScheduleFields } from "./schedule.ts";

/** Characters of a name that is made from the command. */
const NAME_LENGTH = 60;
const WAYS = ["schedule", "interval_minutes", "run_at", "cron_time"] as const;

/** The next times of a job that is active, as many as are asked for and it may still run. */
export function upcomingOf({ status, schedule, nextAt, maxRuns, runsMade }: Job, count: number): Date[] {
  if (status !== "active" || !schedule || !nextAt) return [];
  const left = maxRuns === null ? count : Math.min(count, maxRuns - runsMade);
  return left <= 0 ? [] : [nextAt, ...nextTimes(schedule, nextAt, left)].slice(0, left);
}

/** The schedule where the change says another, or the same in another zone; null where it says none. */
export function rescheduled(job: Job, change: CronChange, now: Date): Schedule | null {
  const { schedule, interval_minutes, run_at, cron_time } = change;
  const timezone = change.timezone === null ? "UTC" : change.timezone;
  const { schedule: old } = job;
  const given: ScheduleFields = {
    schedule: schedule ?? undefined,
    interval_minutes: interval_minutes ?? undefined,
    run_at: run_at ?? undefined,
    cron_time: cron_time ?? undefined,
    timezone: timezone ?? old?.timezone,
  };
  if (WAYS.some((way) => given[way] !== undefined)) return parseSchedule(given, now);
  if (timezone === undefined || old === null) return null;
  if (old.kind === "cron") return parseSchedule({ schedule: old.expression, timezone }, now);
  if (old.kind === "once" && timezone !== old.timezone)
    throw wrong("timezone", "this job runs once, at a fixed moment. Give run_at with it.");
  return { ...old, timezone: parseSchedule({ interval_minutes: 1, timezone }, now).timezone };
}

/** What the change says of the job's other parts; null takes a field back to what it is without one. */
export function partsOf(change: CronChange): Partial<JobSpec> {
  const out: Partial<JobSpec> = {};
  const { name, command, session, agent_name, provider, model, allowed_tools, approval } = change;
  const { misfire, overlap, max_runs, repeat_after_crash, budget } = change;
  if (typeof command === "string") out.command = command;
  if (typeof name === "string") out.name = name;
  if (session !== undefined) out.session = session ?? "new";
  if (agent_name !== undefined) out.agentName = nameless(agent_name);
  if (provider !== undefined) out.provider = provider;
  if (model !== undefined) out.model = model;
  if (allowed_tools !== undefined) out.allowedTools = allowed_tools;
  if (approval !== undefined) out.approval = approval ?? "deny";
  if (misfire !== undefined) out.misfire = misfire ?? "once";
  if (overlap !== undefined) out.overlap = overlap ?? "skip";
  if (max_runs !== undefined) out.maxRuns = max_runs;
  if (repeat_after_crash !== undefined) out.repeatAfterCrash = repeat_after_crash ?? false;
  if (budget !== undefined) out.budget = budget ?? {};
  return out;
}

/** Whether the job is due again, and when. A job that is done wakes up with a new time or more runs. */
export function stateOf(
  job: Job,
  { schedule, maxRuns }: Pick<JobSpec, "schedule" | "maxRuns">,
  {
    status: wish,
    isRescheduled,
    now,
  }: { status: "active" | "paused" | undefined; isRescheduled: boolean; now: Date },
): JobChange {
  const mayGoOn = isRescheduled || maxRuns !== job.maxRuns;
  const status = wish ?? (job.status === "done" && mayGoOn ? "active" : job.status);
  if (status === "paused") return wish === "paused" ? { status, reason: null } : {};
  if (status === "done" || (job.status === "active" && !mayGoOn)) return {};
  const enough = maxRuns !== null && job.runsMade >= maxRuns;
  if (enough && wish === undefined && !isRescheduled && job.status === "active")
    return { status: "done", reason: ranEnough(maxRuns), nextAt: null };
  if (enough)
    throw new AppError(
      "conflict",
      `The job has run ${job.runsMade} times, and max_runs is ${maxRuns}. Raise max_runs with the same change.`,
      { param: "max_runs" },
    );
  if (job.status === "active" && !isRescheduled) return {};
  const nextAt = schedule && nextTime(schedule, now);
  if (nextAt === null)
    throw new AppError("conflict", "The job's time is over. Give it a new one with the same change.", {
      param: "status",
    });
  return { status, reason: null, nextAt, failures: 0 };
}

/** Of all that makes a job what it is, but for keys and secrets. A job that is done has none: the same may be made again. */
export async function fingerprintOf({ schedule, ...spec }: JobSpec): Promise<string> {
  const when = schedule?.kind === "interval" ? { ...schedule, anchor: null } : schedule;
  const fields = JOB_FIELDS.map((name) => spec[name]);
  const bytes = new TextEncoder().encode(JSON.stringify([when, ...fields]));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const JOB_FIELDS = [
  ...(["kind", "name", "command", "session", "agentName", "provider", "model", "allowedTools"] as const),
  ...(["approval", "webhookUrl", "budget", "overlap", "maxRuns", "misfire", "repeatAfterCrash"] as const),
  "watch" as const,
];

/** null: the default agent, which has a name as well. */
export function nameless(agent: string | null | undefined): string | null {
  return agent === AGENT ? null : (agent ?? null);
}

/** The first line of what the agent is told. */
export function nameOf(command: string): string {
  const line = command.trim().split("\n", 1)[0] as string;
  return line.length <= NAME_LENGTH
    ? line
    : `${line
        .slice(0, NAME_LENGTH - 1)
        .trimEnd()
        .toWellFormed()}…`;
}

export function wrong(field: string, sentence: string): AppError {
  const message = `${field}: ${sentence}`;
  return new AppError("invalid_request", message, {
    param: field,
    details: { errors: [{ path: field, message }] },
  });
}
