/** Rows of jobs <-> the core's words. Pure. */
import type { InValue, Row } from "@libsql/client/web";
import type { Plan } from "../core/automation.ts";
import type { DueJob, Job, JobChange, JobSpec, Schedule } from "../core/jobs.ts";
import { toStorable, toStorableJson } from "./text.ts";

export const DUE_JOB_COLUMNS = `id, owner, kind, status, agent_name, allowed_tools, overlap, max_runs, runs_made, schedule,
  misfire, target, interval_ms, debounce_ms, cooldown_ms, check_state, last_checked_at, last_fired_at, last_error, next_at`;
export const JOB_COLUMNS = `${DUE_JOB_COLUMNS}, name, command, session, provider, model, sealed_key, approval, webhook_url,
  sealed_webhook_secret, budget, repeat_after_crash, reason, failures, tokens, money, last_run_at, last_fate, created_at,
  updated_at`;

type Columns = Record<string, InValue>;

/** The columns that a part of a job is kept in; what is absent is not among them. */
export function jobColumns(part: JobChange & { kind?: JobSpec["kind"] }): Columns {
  const out: Columns = {};
  const put = <T>(name: string, value: T | undefined, to: (value: T) => InValue) => {
    if (value !== undefined) out[name] = to(value);
  };
  const same = (value: InValue) => value;
  const words = (value: string | null) => (value === null ? null : toStorable(value));
  const time = (value: Date | null) => value?.getTime() ?? null;
  const json = (value: unknown) => (value === null ? null : toStorableJson(value));
  put("kind", part.kind, same);
  put("name", part.name, words);
  put("command", part.command, words);
  put("session", part.session, words);
  put("agent_name", part.agentName, words);
  put("provider", part.provider, words);
  put("model", part.model, words);
  put("sealed_key", part.sealedKey, same);
  put("allowed_tools", part.allowedTools, json);
  put("approval", part.approval, same);
  put("webhook_url", part.webhookUrl, words);
  put("sealed_webhook_secret", part.sealedWebhookSecret, same);
  put("budget", part.budget, json);
  put("overlap", part.overlap, same);
  put("max_runs", part.maxRuns, same);
  put("schedule", part.schedule, json);
  put("misfire", part.misfire, same);
  put("repeat_after_crash", part.repeatAfterCrash, (value) => (value ? 1 : 0));
  if (part.watch) {
    put("target", part.watch.target, json);
    put("interval_ms", part.watch.intervalMs, same);
    put("debounce_ms", part.watch.debounceMs, same);
    put("cooldown_ms", part.watch.cooldownMs, same);
  }
  put("status", part.status, same);
  put("reason", part.reason, words);
  put("failures", part.failures, same);
  put("next_at", part.nextAt, time);
  put("fingerprint", part.fingerprint, same);
  return out;
}

export function watchColumns({
  state,
  lastCheckedAt,
  lastFiredAt,
  lastError,
}: NonNullable<Plan["watchState"]>): Columns {
  return {
    ...(state === undefined ? {} : { check_state: state === null ? null : toStorableJson(state) }),
    last_checked_at: lastCheckedAt?.getTime() ?? null,
    last_fired_at: lastFiredAt?.getTime() ?? null,
    last_error: lastError === null ? null : toStorable(lastError),
  };
}

export function toDueJob(row: Row): DueJob {
  const target = parsed<Record<string, unknown>>(row.target);
  return {
    id: row.id as string,
    owner: row.owner as string,
    kind: row.kind as Job["kind"],
    status: row.status as Job["status"],
    agentName: row.agent_name as string | null,
    allowedTools: parsed(row.allowed_tools),
    overlap: row.overlap as Job["overlap"],
    maxRuns: row.max_runs as number | null,
    runsMade: row.runs_made as number,
    schedule: toSchedule(parsed(row.schedule)),
    misfire: row.misfire as Job["misfire"],
    watch: target && {
      target,
      intervalMs: row.interval_ms as number,
      debounceMs: row.debounce_ms as number,
      cooldownMs: row.cooldown_ms as number,
    },
    watchState: {
      state: parsed(row.check_state),
      lastCheckedAt: toTime(row.last_checked_at),
      lastFiredAt: toTime(row.last_fired_at),
      lastError: row.last_error as string | null,
    },
    nextAt: toTime(row.next_at),
  };
}

export function toJob(row: Row): Job {
  const text = (name: string) => row[name] as string | null;
  return {
    ...toDueJob(row),
    name: row.name as string,
    command: row.command as string,
    session: row.session as string,
    provider: text("provider"),
    model: text("model"),
    sealedKey: text("sealed_key"),
    approval: row.approval as Job["approval"],
    webhookUrl: text("webhook_url"),
    sealedWebhookSecret: text("sealed_webhook_secret"),
    budget: parsed(row.budget) ?? {},
    repeatAfterCrash: row.repeat_after_crash === 1,
    reason: text("reason"),
    failures: row.failures as number,
    spent: { tokens: row.tokens as number, money: row.money as number },
    lastRunAt: toTime(row.last_run_at),
    lastFate: row.last_fate as Job["lastFate"],
    createdAt: new Date(row.created_at as number),
    updatedAt: new Date(row.updated_at as number),
  };
}

function parsed<T>(json: unknown): T | null {
  return json === null ? null : (JSON.parse(json as string) as T);
}

/** JSON has no dates. */
function toSchedule(stored: Record<string, unknown> | null): Schedule | null {
  if (!stored) return null;
  const dates = ["anchor", "at"].filter((name) => name in stored);
  return {
    ...stored,
    ...Object.fromEntries(dates.map((name) => [name, new Date(stored[name] as string)])),
  } as Schedule;
}

export function toTime(value: unknown): Date | null {
  return typeof value === "number" ? new Date(value) : null;
}
