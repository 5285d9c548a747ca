/** Jobs, and the claims by which one process of many does what is due. */
import type { InStatement, InValue } from "@libsql/client/web";
import type { Jobs } from "../core/automation.ts";
import { createId } from "../core/id.ts";
import { AppError } from "../errors.ts";
import { fromTimeCursor, toCursor } from "./cursor.ts";
import { isConstraint } from "./faults.ts";
import { DUE_JOB_COLUMNS, JOB_COLUMNS, jobColumns, toDueJob, toJob, watchColumns } from "./job-rows.ts";
import { insertOccurrence, isOpen } from "./occurrence-rows.ts";
import { PRUNE } from "./occurrences.ts";
import type { Reader } from "./reader.ts";
import { isStorable, toStorableJson } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Jobs of one owner that are not done. */
const JOBS_LIMIT = 10_000;
const END_OF_TIME = Number.MAX_SAFE_INTEGER;

const GET = `SELECT ${JOB_COLUMNS} FROM jobs WHERE id = ?1 AND owner = ?2 AND (?3 IS NULL OR kind = ?3)`;
const SAME = `SELECT ${JOB_COLUMNS} FROM jobs WHERE owner = ? AND fingerprint = ?`;
/** Without what watchdogs have in mind, which may be large and is shown nowhere. */
const SHOWN = JOB_COLUMNS.replace("check_state", "NULL AS check_state");
const LIST = `SELECT ${SHOWN} FROM jobs WHERE owner = ? AND kind = ? AND (created_at, id) < (?, ?)
  ORDER BY created_at DESC, id DESC LIMIT ?`;
const DELETE = "DELETE FROM jobs WHERE id = ? AND owner = ? AND kind = ?";
/** A claim that has run out is nobody's: whoever had it can no longer settle it. */
const CLAIM = `UPDATE jobs SET claimed_by = ?, claim_until = ? WHERE id IN
  (SELECT id FROM jobs WHERE kind = ? AND status = 'active' AND next_at <= ?
    AND (claim_until IS NULL OR claim_until <= ?) ORDER BY next_at LIMIT ?)
  RETURNING ${DUE_JOB_COLUMNS}`;
/** Of those that were to be written the ones that were. */
const RUNS_AMONG = `SELECT count(*) FROM occurrences WHERE job_id = jobs.id
  AND scheduled_at IN (SELECT value FROM json_each(?)) AND run_id IN (SELECT value FROM json_each(?))`;
const REST = `UPDATE jobs SET next_at = look.next_at, claimed_by = NULL, claim_until = NULL,
    last_checked_at = look.checked_at, last_fired_at = look.fired_at, last_error = look.error
  FROM (SELECT value ->> 0 AS id, value ->> 1 AS next_at, value ->> 2 AS checked_at, value ->> 3 AS fired_at,
    value ->> 4 AS error FROM json_each(?)) AS look
  WHERE jobs.id = look.id AND claimed_by = ?`;
/** Asked first on the reading side: nearly always nothing is due, and nothing has to be written. */
const DUE = "SELECT 1 FROM jobs WHERE kind = ? AND status = 'active' AND next_at <= ? LIMIT 1";

export function createJobs(reader: Reader, writer: WriteQueue, now: () => Date): Jobs {
  return {
    async create(owner, spec, { fingerprint, nextAt }) {
      const at = now().getTime();
      const columns: Record<string, InValue> = {
        ...{ id: createId(spec.kind === "cron" ? "job" : "wdg"), owner },
        ...jobColumns({ ...spec, status: "active", nextAt, fingerprint, failures: 0 }),
        ...{ runs_made: 0, tokens: 0, money: 0, created_at: at, updated_at: at },
      };
      const names = Object.keys(columns);
      const sql = `INSERT INTO jobs (${names.join(", ")}) SELECT ${names.map(() => "?").join(", ")}
        WHERE (SELECT count(*) FROM jobs WHERE owner = ? AND status <> 'done') < ${JOBS_LIMIT}
        ON CONFLICT (owner, fingerprint) WHERE fingerprint IS NOT NULL DO NOTHING RETURNING ${JOB_COLUMNS}`;
      const [made] = await writer.batch([{ sql, args: [...Object.values(columns), owner] }]);
      if (made?.rows[0]) return { job: toJob(made.rows[0]), created: true };
      const [same] = await reader.rows({ sql: SAME, args: [owner, fingerprint] });
      if (same) return { job: toJob(same), created: false };
      throw new AppError(
        "conflict",
        `You have ${JOBS_LIMIT} jobs already. Delete some with DELETE /api/cron/{id} or /api/watchdog/{id} first.`,
      );
    },

    async get(owner, kind, id) {
      if (!isStorable(id)) return null;
      const [row] = await reader.rows({ sql: GET, args: [id, owner, kind] });
      return row ? toJob(row) : null;
    },

    async list(owner, kind, { limit, cursor }) {
      const from = cursor === undefined ? [END_OF_TIME, ""] : fromTimeCursor(cursor);
      const rows = await reader.page((last, size) => {
        const keys = last ? [last.created_at as number, last.id as string] : from;
        return { sql: LIST, args: [owner, kind, ...keys, size] };
      }, limit + 1);
      const jobs = rows.slice(0, limit).map(toJob);
      const last = jobs.at(-1);
      return { jobs, next: rows.length > limit && last ? toCursor(last.createdAt.getTime(), last.id) : null };
    },

    async update(owner, kind, id, change) {
      if (!isStorable(id)) return null;
      const columns: Record<string, InValue> = {
        ...jobColumns(change),
        ...{ updated_at: now().getTime(), claimed_by: null, claim_until: null },
      };
      // One that has ended meanwhile stays without: the same again is then a new one.
      const unlessDone = (name: string) => name === "fingerprint" && change.status === undefined;
      const set = Object.keys(columns).map((name) =>
        unlessDone(name) ? `${name} = CASE status WHEN 'done' THEN NULL ELSE ? END` : `${name} = ?`,
      );
      const sql = `UPDATE jobs SET ${set.join(", ")} WHERE id = ? AND owner = ? AND kind = ? RETURNING ${JOB_COLUMNS}`;
      try {
        const [changed] = await writer.batch([{ sql, args: [...Object.values(columns), id, owner, kind] }]);
        return changed?.rows[0] ? toJob(changed.rows[0]) : null;
      } catch (error) {
        if (!isConstraint(error)) throw error;
        throw new AppError(
          "conflict",
          "You have another job that is just the same. Change or delete that one.",
        );
      }
    },

    async delete(owner, kind, id) {
      if (!isStorable(id)) return false;
      const [result] = await writer.batch([{ sql: DELETE, args: [id, owner, kind] }]);
      return result?.rowsAffected === 1;
    },

    async claim({ kind, claim, now: at, until, limit }) {
      const time = at.getTime();
      const due = await reader.rows({ sql: DUE, args: [kind, time] });
      if (due.length === 0) return [];
      const [claimed] = await writer.batch([
        { sql: CLAIM, args: [claim, until.getTime(), kind, time, time, limit] },
      ]);
      const jobs = (claimed?.rows ?? []).map(toDueJob);
      return jobs.sort((a, b) => (a.nextAt?.getTime() ?? 0) - (b.nextAt?.getTime() ?? 0));
    },

    async settle(jobId, claim, { records, nextAt, done, watchState }, { holder, at }) {
      const columns: Record<string, InValue> = {
        ...{ next_at: nextAt?.getTime() ?? null, claimed_by: null, claim_until: null },
        ...(done === null ? {} : { status: "done", reason: done, fingerprint: null }),
        ...(watchState ? watchColumns(watchState) : {}),
      };
      const set = Object.keys(columns).map((name) => `${name} = ?`);
      const mine = { from: "id = ? AND claimed_by = ?", args: [jobId, claim], holder, at };
      const statements: InStatement[] = records.map((record) =>
        // What a watchdog has found is told all the same, at the next look.
        insertOccurrence(record, { ...mine, onlyNew: record.trigger === "schedule" }),
      );
      const runs = records.filter(isOpen);
      const counted: string[] = [];
      // A look that has found nothing is by far the most frequent.
      if (runs.length > 0) {
        set.unshift(`runs_made = runs_made + (${RUNS_AMONG})`);
        counted.push(JSON.stringify(runs.map(({ scheduledAt }) => scheduledAt.getTime())));
        counted.push(JSON.stringify(runs.map(({ runId }) => runId)));
      }
      statements.push({
        sql: `UPDATE jobs SET ${set.join(", ")} WHERE id = ? AND claimed_by = ?`,
        args: [...counted, ...Object.values(columns), jobId, claim],
      });
      // A run that waits for days may leave out very many times before its own end clears them away.
      if (runs.length < records.length) statements.push({ sql: PRUNE, args: [jobId] });
      const results = await writer.batch(statements);
      if (results[records.length]?.rowsAffected !== 1) return null;
      return records.filter((_, i) => results[i]?.rowsAffected === 1);
    },

    async rest(claim, looks) {
      const rows = looks.map(({ id, nextAt, lastCheckedAt, lastFiredAt, lastError }) => [
        ...[
          id,
          nextAt.getTime(),
          lastCheckedAt?.getTime() ?? null,
          lastFiredAt?.getTime() ?? null,
          lastError,
        ],
      ]);
      await writer.batch([{ sql: REST, args: [toStorableJson(rows), claim] }]);
    },
  };
}
