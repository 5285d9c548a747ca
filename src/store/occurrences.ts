/** The times that jobs were due: one fate each, and what it meant for the job, in one batch. */
import type { InStatement, InValue } from "@libsql/client/web";
import type { Occurrences } from "../core/automation.ts";
import type { NewDelivery, OccurrenceKey, Outcome } from "../core/occurrences.ts";
import { fromNumberCursor, toCursor } from "./cursor.ts";
import { isConstraint } from "./faults.ts";
import {
  insertOccurrence,
  namesJson,
  O_OCCURRENCE_COLUMNS,
  OCCURRENCE_COLUMNS,
  toOccurrence,
  words,
} from "./occurrence-rows.ts";
import type { Reader } from "./reader.ts";
import { isStorable, toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** So many in a row pause a job. */
export const FAILURES_LIMIT = 10;
/** Ended ones that are kept of a job; the oldest go. */
export const KEPT_OCCURRENCES = 1_000;
const DAY_MS = 24 * 60 * 60_000;
const END_OF_TIME = Number.MAX_SAFE_INTEGER;

const WITH_DELIVERY = `FROM occurrences AS o
  LEFT JOIN deliveries AS d ON d.job_id = o.job_id AND d.scheduled_at = o.scheduled_at`;
const LIST = `SELECT ${O_OCCURRENCE_COLUMNS} ${WITH_DELIVERY}
  WHERE o.job_id = ? AND o.owner = ? AND o.scheduled_at < ? ORDER BY o.scheduled_at DESC LIMIT ?`;
const GET = `SELECT ${O_OCCURRENCE_COLUMNS} ${WITH_DELIVERY} WHERE o.job_id = ? AND o.scheduled_at = ? AND o.owner = ?`;
const OPEN = `SELECT ${OCCURRENCE_COLUMNS} FROM occurrences
  WHERE job_id IN (SELECT value FROM json_each(?)) AND look_at IS NOT NULL`;
const ANY_OPEN = "SELECT 1 FROM occurrences WHERE job_id = jobs.id AND look_at IS NOT NULL";
const KEY = "job_id = ? AND scheduled_at = ?";
const TO_LOOK_AT = "SELECT 1 FROM occurrences WHERE look_at <= ?1 AND (?2 OR fate <> 'queued') LIMIT 1";
const LOOK = `UPDATE occurrences SET look_at = ?3 WHERE rowid IN (SELECT rowid FROM occurrences
  WHERE look_at <= ?1 AND (?2 OR fate <> 'queued') ORDER BY look_at LIMIT ?4) RETURNING ${OCCURRENCE_COLUMNS}`;
/** One of a job at a time, in the order in which they came. */
const START = `UPDATE occurrences SET fate = 'claimed', holder = ?, look_at = ?
  WHERE ${KEY} AND fate = 'queued' AND look_at IS NOT NULL AND NOT EXISTS
    (SELECT 1 FROM occurrences AS other WHERE other.job_id = occurrences.job_id AND other.look_at IS NOT NULL
      AND (other.fate = 'claimed' OR other.scheduled_at < occurrences.scheduled_at))`;
const HOLD = `UPDATE occurrences SET look_at = ? WHERE ${KEY} AND run_id = ? AND fate = 'claimed'`;
const POSTPONE = `UPDATE occurrences SET look_at = ? WHERE ${KEY} AND look_at IS NOT NULL`;
const BEGUN = `UPDATE occurrences SET session_id = ?, started_at = ? WHERE ${KEY} AND fate = 'claimed'`;
const REQUEUE = `UPDATE occurrences SET fate = 'queued', holder = NULL, look_at = ?, reason = ?, attempts = attempts + 1
  WHERE ${KEY} AND run_id = ? AND fate = 'claimed'`;
const FINISH = `UPDATE occurrences SET fate = ?, reason = ?, session_id = coalesce(?, session_id), tokens = ?, money = ?,
    denied = ?, ended_at = ?, holder = ?, look_at = NULL WHERE ${KEY} AND look_at IS NOT NULL`;
const FINISHED = `SELECT 1 FROM occurrences WHERE ${KEY} AND holder = ?`;
const FAILED_OFTEN = `(?8 = 'failure' AND failures + 1 >= ${FAILURES_LIMIT})`;
const OF_JOB = `UPDATE jobs SET tokens = tokens + ?1, money = money + ?2, last_run_at = ?3, last_fate = ?4,
    failures = CASE ?8 WHEN 'success' THEN 0 WHEN 'failure' THEN failures + 1 ELSE failures END,
    status = CASE WHEN status = 'active' AND (?9 IS NOT NULL OR ${FAILED_OFTEN}) THEN 'paused' ELSE status END,
    reason = CASE WHEN status <> 'active' THEN reason WHEN ?9 IS NOT NULL THEN ?9
      WHEN ${FAILED_OFTEN} THEN 'Paused after ${FAILURES_LIMIT} failures in a row. The last: ' || coalesce(?10, 'it failed.')
      ELSE reason END
  WHERE id = ?5 AND EXISTS (SELECT 1 FROM occurrences WHERE job_id = ?5 AND scheduled_at = ?6 AND holder = ?7)`;
const OF_DAY = `INSERT INTO automation_days (owner, day, tokens, money)
  SELECT owner, ?, tokens, money FROM occurrences WHERE ${KEY} AND holder = ? AND tokens > 0
  ON CONFLICT (owner, day) DO UPDATE SET tokens = tokens + excluded.tokens, money = money + excluded.money`;
const DELIVER = `INSERT INTO deliveries (job_id, scheduled_at, owner, url, sealed_secret, body, status, attempts, next_at,
    created_at)
  SELECT job_id, scheduled_at, owner, ?, ?, ?, 'pending', 0, ?, ? FROM occurrences WHERE ${KEY} AND holder = ?`;
const WAKE = `UPDATE occurrences SET look_at = ? WHERE job_id = ? AND look_at IS NOT NULL AND fate = 'queued'
  AND EXISTS (${FINISHED})`;
/** Of a job's ended ones the newest stay. */
export const PRUNE = `DELETE FROM occurrences WHERE job_id = ?1 AND look_at IS NULL AND scheduled_at <
  (SELECT scheduled_at FROM occurrences WHERE job_id = ?1 ORDER BY scheduled_at DESC LIMIT 1 OFFSET ${KEPT_OCCURRENCES})`;
const SPENT = "SELECT tokens, money FROM automation_days WHERE owner = ? AND day = ?";

export function createOccurrences(reader: Reader, writer: WriteQueue): Occurrences {
  /** Whether the one row that a statement is about was changed. */
  async function changes(sql: string, args: InValue[]): Promise<boolean> {
    const [result] = await writer.batch([{ sql, args }]);
    return result?.rowsAffected === 1;
  }

  const get: Occurrences["get"] = async (owner, key) => {
    if (!isStorable(key.jobId)) return null;
    const [row] = await reader.rows({ sql: GET, args: [...keyOf(key), owner] });
    return row ? toOccurrence(row) : null;
  };

  return {
    get,

    async list(owner, jobId, { limit, cursor }) {
      const from = cursor === undefined ? END_OF_TIME : fromNumberCursor(cursor);
      const id = toStorable(jobId);
      const rows = await reader.page(
        (last, size) => ({
          sql: LIST,
          args: [id, owner, (last?.scheduled_at as number | undefined) ?? from, size],
        }),
        limit + 1,
      );
      const occurrences = rows.slice(0, limit).map(toOccurrence);
      const last = occurrences.at(-1);
      return {
        occurrences,
        next: rows.length > limit && last ? toCursor(last.scheduledAt.getTime()) : null,
      };
    },

    async open(jobIds) {
      if (jobIds.length === 0) return [];
      const rows = await reader.rows({ sql: OPEN, args: [JSON.stringify(jobIds)] });
      return rows.map(toOccurrence);
    },

    async add(owner, jobId, occurrence, { now, alone }) {
      if (!isStorable(jobId)) return null;
      const from = `id = ? AND owner = ?${alone ? ` AND NOT EXISTS (${ANY_OPEN})` : ""}`;
      for (let scheduledAt = occurrence.scheduledAt; ; scheduledAt = new Date(scheduledAt.getTime() + 1)) {
        const options = { from, args: [jobId, owner], holder: "", at: now };
        try {
          const [added] = await writer.batch([insertOccurrence({ ...occurrence, scheduledAt }, options)]);
          return added?.rowsAffected === 1 ? await get(owner, { jobId, scheduledAt }) : null;
        } catch (error) {
          // Two within a millisecond are two.
          if (!isConstraint(error)) throw error;
        }
      }
    },

    async look({ now, until, limit, queued }) {
      const due = [now.getTime(), queued ? 1 : 0];
      const any = await reader.rows({ sql: TO_LOOK_AT, args: due });
      if (any.length === 0) return [];
      const [found] = await writer.batch([{ sql: LOOK, args: [...due, until.getTime(), limit] }]);
      return (found?.rows ?? []).map(toOccurrence);
    },

    start: (key, { holder, until }) => changes(START, [holder, until.getTime(), ...keyOf(key)]),
    hold: (key, runId, until) => changes(HOLD, [until.getTime(), ...keyOf(key), runId]),

    async postpone(key, at) {
      await changes(POSTPONE, [at.getTime(), ...keyOf(key)]);
    },

    async begun(key, sessionId, at) {
      await changes(BEGUN, [sessionId, at.getTime(), ...keyOf(key)]);
    },

    requeue: (key, runId, at, reason) =>
      changes(REQUEUE, [at.getTime(), words(reason), ...keyOf(key), runId]),

    async finish(key, outcome, delivery) {
      const results = await writer.batch(finishStatements(key, outcome, delivery));
      return results[0]?.rowsAffected === 1;
    },

    async spentOn(owner, at) {
      const [row] = await reader.rows({ sql: SPENT, args: [owner, dayOf(at)] });
      return { tokens: (row?.tokens as number) ?? 0, money: (row?.money as number) ?? 0 };
    },
  };
}

/** All behind the first one do something only if that one has. */
function finishStatements(
  key: OccurrenceKey,
  { fate, reason, sessionId, spent, denied, at, counts, pause }: Outcome,
  delivery: NewDelivery | null,
): InStatement[] {
  const [id, scheduledAt] = keyOf(key);
  const { tokens, money } = spent;
  const time = at.getTime();
  const ender = crypto.randomUUID();
  const mine = [id, scheduledAt, ender];
  const why = words(reason);
  const statements: InStatement[] = [
    {
      sql: FINISH,
      args: [fate, why, sessionId, tokens, money, namesJson(denied), time, ender, id, scheduledAt],
    },
    { sql: OF_JOB, args: [tokens, money, time, fate, ...mine, counts, words(pause ?? null), why] },
    { sql: OF_DAY, args: [dayOf(at), ...mine] },
    { sql: WAKE, args: [time, id, ...mine] },
    { sql: PRUNE, args: [id] },
  ];
  if (delivery) {
    const { url, sealedSecret, body } = delivery;
    statements.push({ sql: DELIVER, args: [url, sealedSecret, toStorable(body), time, time, ...mine] });
  }
  return statements;
}

function keyOf({ jobId, scheduledAt }: OccurrenceKey): [string, number] {
  return [jobId, scheduledAt.getTime()];
}

/** Days since 1970, in UTC. */
function dayOf(at: Date): number {
  return Math.floor(at.getTime() / DAY_MS);
}
