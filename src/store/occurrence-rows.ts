/** Rows of occurrences <-> the core's words, and the one statement that adds them. Pure. */
import type { InStatement, InValue, Row } from "@libsql/client/web";
import type { DeliveryRecord, NewOccurrence, Occurrence } from "../core/occurrences.ts";
import { toTime } from "./job-rows.ts";
import { toStorable, toStorableJson } from "./text.ts";

const NAMES = [
  ...["job_id", "scheduled_at", "owner", "until", "count", "trigger", "fate", "late", "reason", "finding"],
  ...["run_id", "session_id", "attempts", "started_at", "ended_at", "tokens", "money", "denied"],
];
export const OCCURRENCE_COLUMNS = NAMES.join(", ");
/** With what has become of its delivery. */
export const O_OCCURRENCE_COLUMNS = `${NAMES.map((name) => `o.${name}`).join(", ")}, d.status AS d_status,
  d.attempts AS d_attempts, d.next_at AS d_next_at, d.last_status AS d_last_status, d.last_error AS d_last_error`;

/** It has not ended. */
export function isOpen({ fate }: Pick<NewOccurrence, "fate">): boolean {
  return fate === "queued" || fate === "claimed";
}

/** Adds an occurrence to the job that `from` finds; none where it finds none. `onlyNew`: none where its time has one either. */
export function insertOccurrence(
  record: NewOccurrence,
  {
    from,
    args,
    holder,
    at,
    onlyNew = false,
  }: { from: string; args: InValue[]; holder: string; at: Date; onlyNew?: boolean },
): InStatement {
  const open = isOpen(record);
  const values: InValue[] = [
    ...[record.scheduledAt.getTime(), record.until?.getTime() ?? null, record.count, record.trigger],
    ...[record.fate, record.late ? 1 : 0, words(record.reason), words(record.finding), record.runId],
    ...[record.fate === "claimed" ? holder : null, open ? at.getTime() : null, open ? null : at.getTime()],
  ];
  const sql = `INSERT INTO occurrences (job_id, owner, scheduled_at, until, count, trigger, fate, late, reason, finding,
    run_id, holder, look_at, ended_at, attempts, tokens, money)
    SELECT id, owner, ${values.map(() => "?").join(", ")}, 0, 0, 0 FROM jobs WHERE ${from}
    ${onlyNew ? "ON CONFLICT (job_id, scheduled_at) DO NOTHING" : ""}`;
  return { sql, args: [...values, ...args] };
}

export function toOccurrence(row: Row): Occurrence {
  return {
    jobId: row.job_id as string,
    owner: row.owner as string,
    scheduledAt: new Date(row.scheduled_at as number),
    until: toTime(row.until),
    count: row.count as number,
    trigger: row.trigger as Occurrence["trigger"],
    fate: row.fate as Occurrence["fate"],
    late: row.late === 1,
    reason: row.reason as string | null,
    finding: row.finding as string | null,
    runId: row.run_id as string | null,
    sessionId: row.session_id as string | null,
    attempts: row.attempts as number,
    startedAt: toTime(row.started_at),
    endedAt: toTime(row.ended_at),
    spent: { tokens: row.tokens as number, money: row.money as number },
    denied: row.denied === null ? [] : (JSON.parse(row.denied as string) as string[]),
    delivery: toDelivery(row),
  };
}

function toDelivery(row: Row): DeliveryRecord | null {
  if (typeof row.d_status !== "string") return null;
  return {
    status: row.d_status as DeliveryRecord["status"],
    attempts: row.d_attempts as number,
    nextAt: toTime(row.d_next_at),
    lastStatus: row.d_last_status as number | null,
    lastError: row.d_last_error as string | null,
  };
}

export function words(text: string | null): string | null {
  return text === null ? null : toStorable(text);
}

export function namesJson(names: readonly string[]): string | null {
  return names.length === 0 ? null : toStorableJson(names);
}
