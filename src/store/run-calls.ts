/** The calls of runs: finding them, and deciding about them. */
import type { Row } from "@libsql/client/web";
import type { CallRecord, Runs } from "../core/run.ts";
import type { Reader } from "./reader.ts";
import { CALL_COLUMNS, toCalls } from "./run-rows.ts";
import { toStorable, toStorableJson } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Calls read at once: together below what a server answers with. */
const PAGE = 50;

const OF_RUN = `SELECT ${CALL_COLUMNS} FROM run_calls WHERE run_id = ? AND owner = ? ORDER BY step, position
  LIMIT ${PAGE} OFFSET ?`;
const PENDING = `SELECT ${CALL_COLUMNS} FROM run_calls WHERE session_id = ? AND owner = ? AND state = 'pending'
  ORDER BY step, position`;
/** The condition of the index is spelt out, so that it is used. */
const WAITING = `SELECT ${CALL_COLUMNS} FROM run_calls INDEXED BY run_calls_expiry
  WHERE state = 'pending' AND expires_at > ? AND owner = ? ORDER BY expires_at, rowid LIMIT ?`;
const EXPIRE_IN_SESSION = `UPDATE run_calls SET state = 'expired'
  WHERE session_id = ? AND owner = ? AND state = 'pending' AND expires_at <= ?`;
const BY_CODE = `SELECT ${CALL_COLUMNS} FROM run_calls WHERE code_hash = ? AND owner = ?
  ORDER BY run_id, step, position`;
const BY_ID = `SELECT ${CALL_COLUMNS} FROM run_calls WHERE session_id = ? AND owner = ?
  AND call_id IN (SELECT value FROM json_each(?)) ORDER BY rowid`;
const DECIDE = `UPDATE run_calls SET state = ?, decided_at = ? WHERE run_id = ? AND owner = ?
  AND call_id IN (SELECT value FROM json_each(?)) AND state = 'pending' AND (expires_at IS NULL OR expires_at > ?)
  AND EXISTS (SELECT 1 FROM runs WHERE id = run_id AND status IN ('running', 'paused')) RETURNING call_id`;
const THESE = `SELECT ${CALL_COLUMNS} FROM run_calls WHERE run_id = ? AND owner = ?
  AND call_id IN (SELECT value FROM json_each(?)) ORDER BY step, position`;
/** The condition of the index is spelt out, so that it is used. */
const DECIDED = `SELECT c.owner, coalesce(r.root, r.id) AS run_id FROM run_calls AS c INDEXED BY run_calls_decided
  JOIN runs AS r ON r.id = c.run_id AND r.status = 'paused'
  WHERE c.result IS NULL AND c.state IN ('allowed', 'denied') GROUP BY 1, 2 ORDER BY min(c.decided_at) LIMIT ?`;
const EXPIRE = `UPDATE run_calls SET state = 'expired' WHERE rowid IN (SELECT rowid FROM run_calls
  WHERE state = 'pending' AND expires_at <= ? ORDER BY expires_at LIMIT ?)
  RETURNING owner, coalesce((SELECT root FROM runs WHERE id = run_id), run_id) AS run_id`;

type Methods = Pick<
  Runs,
  "calls" | "pending" | "waiting" | "byCode" | "callsById" | "decide" | "decided" | "expire"
>;

export function createRunCalls(reader: Reader, writer: WriteQueue): Methods {
  const ofRun = async (owner: string, runId: string): Promise<CallRecord[]> => {
    const calls: CallRecord[] = [];
    for (let rows: Row[]; ; ) {
      rows = await reader.rows({ sql: OF_RUN, args: [toStorable(runId), owner, calls.length] });
      calls.push(...(await toCalls(reader, rows)));
      if (rows.length < PAGE) return calls;
    }
  };

  return {
    calls: ofRun,

    async pending(owner, sessionId, now) {
      const args = [toStorable(sessionId), owner];
      const rows = await reader.rows({ sql: PENDING, args });
      const at = now.getTime();
      const late = (row: Row) => row.expires_at !== null && (row.expires_at as number) <= at;
      if (rows.some(late)) await writer.batch([{ sql: EXPIRE_IN_SESSION, args: [...args, at] }]);
      return toCalls(
        reader,
        rows.filter((row) => !late(row)),
      );
    },

    async waiting(owner, now, limit) {
      return toCalls(reader, await reader.rows({ sql: WAITING, args: [now.getTime(), owner, limit] }));
    },

    async byCode(owner, codeHash) {
      return toCalls(reader, await reader.rows({ sql: BY_CODE, args: [toStorable(codeHash), owner] }));
    },

    async callsById(owner, sessionId, callIds) {
      const args = [toStorable(sessionId), owner, toStorableJson(callIds)];
      const newest = new Map<string, Row>();
      for (const row of await reader.rows({ sql: BY_ID, args })) newest.set(row.call_id as string, row);
      return toCalls(reader, [...newest.values()]);
    },

    async decide(owner, runId, callIds, decision, now) {
      const at = now.getTime();
      const these = [toStorable(runId), owner, toStorableJson(callIds)];
      const [changed, all] = await writer.batch([
        { sql: DECIDE, args: [decision, at, ...these, at] },
        { sql: THESE, args: these },
      ]);
      return {
        calls: await toCalls(reader, all!.rows),
        decided: changed!.rows.map((row) => row.call_id as string),
      };
    },

    async decided(limit) {
      return (await reader.rows({ sql: DECIDED, args: [limit] })).map(toOwned);
    },

    async expire(now, limit) {
      const [changed] = await writer.batch([{ sql: EXPIRE, args: [now.getTime(), limit] }]);
      const runs = new Map(changed!.rows.map((row) => [row.run_id as string, toOwned(row)]));
      return [...runs.values()];
    },
  };
}

function toOwned(row: Row): { owner: string; runId: string } {
  return { owner: row.owner as string, runId: row.run_id as string };
}
