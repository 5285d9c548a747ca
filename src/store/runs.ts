/** Runs: their leases, their turns in a session, and what readers of their streams were given. */
import type { InStatement, Row } from "@libsql/client/web";
import type { Frames, RunRecord, Runs } from "../core/run.ts";
import type { Sessions } from "../core/store.ts";
import { AppError } from "../errors.ts";
import { fromTimeCursor, toCursor } from "./cursor.ts";
import { joinPieces } from "./pieces.ts";
import type { Reader } from "./reader.ts";
import { beginInNewSession, beginStatements } from "./run-begin.ts";
import { createRunCalls } from "./run-calls.ts";
import { cancelPaused } from "./run-cancel.ts";
import { commitStatements } from "./run-commit.ts";
import { partOfFrames, R_RUN_COLUMNS, RUN_COLUMNS, toRun } from "./run-rows.ts";
import type { SearchIndex } from "./search-index.ts";
import { readSession } from "./session-rows.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

const END_OF_TIME = Number.MAX_SAFE_INTEGER;
/** How often a turn that had just ended may be met when the next one begins. */
const ATTEMPTS = 10;
/** Members read at once. */
const MEMBERS_PAGE = 50;

const BY_ID = `SELECT ${RUN_COLUMNS} FROM runs WHERE id = ? AND owner = ?`;
const IN_THE_WAY = `SELECT ${R_RUN_COLUMNS} FROM sessions AS s JOIN runs AS r ON r.id = s.turn
  WHERE s.id = ? AND s.owner = ? AND r.status IN ('running', 'paused')`;
const RESUME = `UPDATE runs SET status = 'running', lease_holder = ?, lease_until = ?, stop = NULL, fault = NULL, updated_at = ?
  WHERE id = ? AND owner = ? AND status = 'paused' RETURNING ${RUN_COLUMNS}`;
const TAKE_OVER = `UPDATE runs SET lease_holder = ?, lease_until = ?, recoveries = recoveries + 1, updated_at = ?
  WHERE id = ? AND status = 'running' AND lease_until <= ? RETURNING ${RUN_COLUMNS}`;
const ABANDONED = `SELECT id FROM runs WHERE status = 'running' AND lease_until <= ? AND root IS NULL
  ORDER BY lease_until LIMIT ?`;
const MEMBERS = `SELECT ${RUN_COLUMNS} FROM runs WHERE root = ? AND owner = ? ORDER BY created_at, id LIMIT ? OFFSET ?`;
/** The condition of the index is spelt out, so that it is used. */
const ORPHANS = `SELECT m.owner, m.id FROM runs AS m INDEXED BY runs_open_members JOIN runs AS r ON r.id = m.root
  WHERE m.root IS NOT NULL AND m.status IN ('running', 'paused') AND (m.lease_until IS NULL OR m.lease_until <= ?)
    AND r.status NOT IN ('running', 'paused') LIMIT ?`;
const RENEW = "UPDATE runs SET lease_until = ? WHERE lease_holder = ? AND status = 'running'";
const RENEW_SOME = `${RENEW} AND id IN (SELECT value FROM json_each(?))`;
const TO_STOP = "SELECT id FROM runs WHERE lease_holder = ? AND status = 'running' AND stop_asked = 1";
const ASK_TO_STOP = "UPDATE runs SET stop_asked = 1 WHERE id = ? AND owner = ? AND status = 'running'";
const NEWEST_FIRST = "AND (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?";
const LIST = `SELECT ${RUN_COLUMNS} FROM runs WHERE owner = ? ${NEWEST_FIRST}`;
const LIST_OF_SESSION = `SELECT ${RUN_COLUMNS} FROM runs WHERE session_id = ? AND owner = ? ${NEWEST_FIRST}`;
/** The last ones may be in the run's own row. */
const FRAMES = `SELECT first, last, content, pieces FROM run_frames WHERE run_id = ? AND owner = ? AND last > ?
  UNION ALL SELECT frames_first, last_event, frames, 1 FROM runs
    WHERE id = ? AND owner = ? AND last_event > ? AND frames IS NOT NULL
  ORDER BY last LIMIT ?`;

export function createRuns(
  reader: Reader,
  writer: WriteQueue,
  sessions: Pick<Sessions, "page">,
  search: SearchIndex,
  now: () => Date,
): Runs {
  const calls = createRunCalls(reader, writer);
  /** The run that a conditional update has changed. */
  const changed = async (statement: InStatement): Promise<RunRecord | null> => {
    const [result] = await writer.batch([statement]);
    const row = result?.rows[0];
    return row ? toRun(reader, row) : null;
  };

  return {
    ...calls,

    /** Throws AppError `not_found` for a session that is not there. */
    async begin(owner, run, messages) {
      if (run.newSession) {
        await writer.batch(beginInNewSession(owner, run, messages, now().getTime()));
        search.stored(messages.length);
        return { historySeq: messages.length };
      }
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const [begun] = await writer.batch(beginStatements(owner, run, messages, now().getTime()));
        const row = begun?.rows[0];
        if (row) {
          search.stored(messages.length);
          return { historySeq: row.history_seq as number };
        }
        const args = [toStorable(run.sessionId), owner];
        const [other] = await reader.rows({ sql: IN_THE_WAY, args });
        if (other) return { inTheWay: await toRun(reader, other) };
        await readSession(reader, owner, run.sessionId);
      }
      throw new AppError("conflict", "Too many runs begin in this session at once. Send this one again.");
    },

    async commit(owner, runId, holder, change) {
      const results = await writer.batch(commitStatements(owner, runId, holder, change, now().getTime()));
      const held = results.at(-1)?.rowsAffected === 1;
      if (held && change.messages) search.stored(change.messages.length);
      return held;
    },

    resume: (owner, runId, holder, leaseUntil) =>
      changed({
        sql: RESUME,
        args: [holder, leaseUntil.getTime(), now().getTime(), toStorable(runId), owner],
      }),

    takeOver: (runId, holder, at, leaseUntil) =>
      changed({
        sql: TAKE_OVER,
        args: [holder, leaseUntil.getTime(), at.getTime(), toStorable(runId), at.getTime()],
      }),

    async abandoned(at, limit) {
      const rows = await reader.rows({ sql: ABANDONED, args: [at.getTime(), limit] });
      return rows.map((row) => row.id as string);
    },

    async members(owner, root) {
      const members: RunRecord[] = [];
      for (let rows: Row[]; ; ) {
        rows = await reader.rows({
          sql: MEMBERS,
          args: [toStorable(root), owner, MEMBERS_PAGE, members.length],
        });
        for (const row of rows) members.push(await toRun(reader, row));
        if (rows.length < MEMBERS_PAGE) return members;
      }
    },

    async orphans(at, limit) {
      const rows = await reader.rows({ sql: ORPHANS, args: [at.getTime(), limit] });
      return rows.map((row) => ({ owner: row.owner as string, runId: row.id as string }));
    },

    async renew(holder, leaseUntil, only) {
      const args = [leaseUntil.getTime(), holder];
      const results = await writer.batch([
        only ? { sql: RENEW_SOME, args: [...args, JSON.stringify(only)] } : { sql: RENEW, args },
        { sql: TO_STOP, args: [holder] },
      ]);
      return results[1]!.rows.map((row) => row.id as string);
    },

    async askToStop(owner, runId) {
      const [result] = await writer.batch([{ sql: ASK_TO_STOP, args: [toStorable(runId), owner] }]);
      return result?.rowsAffected === 1;
    },

    cancelPaused: (owner, runId, result, fault) =>
      cancelPaused(
        { reader, writer, sessions, calls: calls.calls, now },
        owner,
        toStorable(runId),
        result,
        fault,
      ),

    async get(owner, runId) {
      const [row] = await reader.rows({ sql: BY_ID, args: [toStorable(runId), owner] });
      return row ? toRun(reader, row) : null;
    },

    async list(owner, { sessionId, limit, cursor }) {
      const from = cursor === undefined ? [END_OF_TIME, ""] : fromTimeCursor(cursor);
      const sql = sessionId === undefined ? LIST : LIST_OF_SESSION;
      const whose = sessionId === undefined ? [owner] : [toStorable(sessionId), owner];
      const rows = await reader.page((last, size) => {
        const keys = last ? [last.created_at as number, last.id as string] : from;
        return { sql, args: [...whose, ...keys, size] };
      }, limit + 1);
      const runs: RunRecord[] = [];
      for (const row of rows.slice(0, limit)) runs.push(await toRun(reader, row));
      const last = runs.at(-1);
      return { runs, next: rows.length > limit && last ? toCursor(last.createdAt.getTime(), last.id) : null };
    },

    async frames(owner, runId, after, limit) {
      const id = toStorable(runId);
      const rows = await reader.page((last, size) => {
        const from = (last?.last as number) ?? after;
        return { sql: FRAMES, args: [id, owner, from, id, owner, from, size] };
      }, limit);
      const frames: Frames[] = [];
      for (const row of rows) {
        const [last, pieces] = [row.last as number, row.pieces as number];
        let text = row.content as string;
        if (pieces > 1) text = await joinPieces(reader, "run", [id, partOfFrames(last)], text, pieces);
        frames.push({ first: row.first as number, last, text });
      }
      return frames;
    },
  };
}
