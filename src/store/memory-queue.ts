/** What sessions' prompts say of the memories, and the line of sessions that wait to be looked through. */
import type { DueExtraction, MemoryRows } from "../core/memory-rows.ts";
import { saidAfter } from "./memory-said.ts";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Of the ids in a JSON array, those of current memories that nobody has changed since. */
const STANDING = (ids: string, owner: string, since: string) => `(SELECT count(*) FROM json_each(${ids}) AS j
  CROSS JOIN memories AS m ON m.id = j.value WHERE m.owner = ${owner} AND m.valid_to IS NULL AND m.updated_at <= ${since})`;
const GET = `SELECT content, memory_ids, json_array_length(memory_ids) = ${STANDING("memory_ids", "r.owner", "made_at")}
  AS fresh FROM memory_recalls AS r WHERE r.session_id = ? AND r.owner = ?`;
const SET = `INSERT INTO memory_recalls (session_id, owner, content, memory_ids, made_at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (session_id) DO UPDATE SET content = excluded.content, memory_ids = excluded.memory_ids,
  made_at = excluded.made_at WHERE owner = excluded.owner`;
const FRESH = `SELECT json_array_length(?1) = ${STANDING("?1", "?2", "?3")} AS fresh`;

/** The key is that of the last turn. */
const NOTE = `INSERT INTO memory_extractions
  (session_id, owner, up_to, provider, model, sealed_key, callers_key, attempts, due_at) VALUES (?, ?, 0, ?, ?, ?, ?, 0, ?)
  ON CONFLICT (session_id) DO UPDATE SET provider = excluded.provider, model = excluded.model,
  sealed_key = excluded.sealed_key, callers_key = excluded.callers_key, attempts = 0, due_at = excluded.due_at,
  holder = NULL WHERE owner = excluded.owner`;
/** The claim moves the time on: whoever dies with it leaves it to be claimed again then. */
const CLAIM = `UPDATE memory_extractions SET holder = ?, due_at = ?, attempts = attempts + 1 WHERE session_id =
  (SELECT session_id FROM memory_extractions WHERE due_at IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT 1)
  RETURNING *`;
const POSTPONE = `UPDATE memory_extractions SET due_at = ?, attempts = ?, holder = NULL
  WHERE session_id = ? AND holder = ?`;
const FINISH = `UPDATE memory_extractions SET up_to = ?, due_at = NULL, sealed_key = NULL, attempts = 0, holder = NULL
  WHERE session_id = ? AND holder = ?`;
const SESSION = `SELECT updated_at, last_seq, EXISTS (SELECT 1 FROM runs AS r WHERE r.id = s.turn
  AND r.status = 'running') AS busy FROM sessions AS s WHERE s.id = ? AND s.owner = ?`;

export function createMemoryQueue(
  reader: Reader,
  writer: WriteQueue,
): Pick<MemoryRows, "recalls" | "extractions"> {
  return {
    recalls: {
      async get(owner, sessionId) {
        const [row] = await reader.rows({ sql: GET, args: [toStorable(sessionId), owner] });
        if (!row) return null;
        const ids = JSON.parse(row.memory_ids as string) as string[];
        return { text: row.content as string, ids, fresh: row.fresh === 1 };
      },
      async set(owner, sessionId, { text, ids }, at) {
        const args = [toStorable(sessionId), owner, toStorable(text), JSON.stringify(ids), at.getTime()];
        await writer.batch([{ sql: SET, args }]);
      },
      async fresh(owner, ids, since) {
        const [row] = await reader.rows({ sql: FRESH, args: [JSON.stringify(ids), owner, since.getTime()] });
        return row?.fresh === 1;
      },
    },

    extractions: {
      async note(owner, sessionId, { provider, model, sealedKey, callersKey }, dueAt) {
        const args = [sessionId, owner, provider, model, sealedKey, callersKey ? 1 : 0, dueAt.getTime()];
        await writer.batch([{ sql: NOTE, args }]);
      },
      async claim(holder, now, until) {
        const args = [holder, until.getTime(), now.getTime()];
        const [result] = await writer.batch([{ sql: CLAIM, args }]);
        const row = result?.rows[0];
        return row
          ? ({
              owner: row.owner as string,
              sessionId: row.session_id as string,
              upTo: row.up_to as number,
              provider: row.provider as string,
              model: row.model as string,
              sealedKey: row.sealed_key as string | null,
              callersKey: row.callers_key === 1,
              attempts: row.attempts as number,
            } satisfies DueExtraction)
          : null;
      },
      async postpone(sessionId, holder, dueAt, attempts) {
        await writer.batch([{ sql: POSTPONE, args: [dueAt.getTime(), attempts, sessionId, holder] }]);
      },
      async finish(sessionId, holder, upTo) {
        await writer.batch([{ sql: FINISH, args: [upTo, sessionId, holder] }]);
      },
      async said(owner, sessionId, after, limit) {
        const [row] = await reader.rows({ sql: SESSION, args: [sessionId, owner] });
        if (!row) return null;
        return {
          updatedAt: new Date(row.updated_at as number),
          busy: row.busy === 1,
          lastSeq: row.last_seq as number,
          messages: await saidAfter(reader, owner, sessionId, after, limit),
        };
      },
    },
  };
}
