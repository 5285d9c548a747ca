/** Copies of sessions: made out of sight, in batches that do not hold up the event loop, and shown when complete. */
import type { Row } from "@libsql/client/web";
import { createId } from "../core/id.ts";
import type { Sessions } from "../core/store.ts";
import { AppError } from "../errors.ts";
import type { Reader } from "./reader.ts";
import { indexTitle, type SearchIndex } from "./search-index.ts";
import { readGroup } from "./session-messages.ts";
import { readSession, SESSION_COLUMNS, toSession } from "./session-rows.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Messages in one batch. */
const ROWS_AT_ONCE = 250;
/** Bytes of messages in one batch, where one alone does not have more. */
const BYTES_AT_ONCE = 2 * 1024 * 1024;

const MESSAGE = "SELECT id, seq, role FROM messages WHERE id = ? AND session_id = ? AND owner = ?";
const INSERT = `INSERT INTO sessions (id, owner, title, last_seq, message_count, created_at, updated_at, unlisted)
  SELECT ?, owner, title, ?, 0, ?, ?, 1 FROM sessions WHERE id = ? AND owner = ?`;
const SIZES = `SELECT id, seq, octet_length(content) * pieces AS size FROM messages
  WHERE session_id = ? AND owner = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ${ROWS_AT_ONCE}`;
/** `j` pairs the id of a message with that of its copy. */
const COPY = `INSERT INTO messages (id, owner, session_id, seq, role, content, pieces, created_at)
  SELECT j.value ->> 1, m.owner, ?, m.seq, m.role, m.content, m.pieces, m.created_at
  FROM json_each(?) AS j CROSS JOIN messages AS m ON m.id = j.value ->> 0 AND m.owner = ?`;
const COPY_PIECES = `INSERT INTO message_pieces (owner, message_id, piece, content)
  SELECT p.owner, j.value ->> 1, p.piece, p.content
  FROM json_each(?) AS j CROSS JOIN message_pieces AS p ON p.message_id = j.value ->> 0
  WHERE EXISTS (SELECT 1 FROM messages WHERE id = j.value ->> 1)`;
const COPY_SUMMARIES = `INSERT INTO session_summaries (owner, session_id, up_to, content)
  SELECT owner, ?, up_to, content FROM session_summaries WHERE session_id = ? AND owner = ? AND up_to <= ?`;
const COPY_DIRECTORY = `INSERT INTO session_directories (owner, session_id, path)
  SELECT owner, ?, path FROM session_directories WHERE session_id = ? AND owner = ?`;
const SHOW = `UPDATE sessions SET unlisted = 0,
  message_count = (SELECT count(*) FROM messages WHERE session_id = sessions.id)
  WHERE id = ? AND owner = ? RETURNING ${SESSION_COLUMNS}`;

export function createForks(
  reader: Reader,
  writer: WriteQueue,
  search: SearchIndex,
  now: () => Date,
): Pick<Sessions, "fork"> {
  /** The next messages to copy, and the ids of their copies. */
  async function next(owner: string, from: string, after: number, end: number): Promise<[Row[], string]> {
    const rows = await reader.rows({ sql: SIZES, args: [from, owner, after, end] });
    let bytes = 0;
    let count = 0;
    while (count < rows.length && (count === 0 || bytes < BYTES_AT_ONCE))
      bytes += rows[count++]!.size as number;
    const taken = rows.slice(0, count);
    return [taken, JSON.stringify(taken.map((row) => [row.id, createId("msg")]))];
  }

  return {
    async fork(owner, sessionId, messageId) {
      const { id: from, lastSeq } = await readSession(reader, owner, sessionId);
      const end = messageId === undefined ? lastSeq : await endOf(reader, owner, from, messageId);
      const id = createId("ses");
      const at = now().getTime();
      await writer.batch([{ sql: INSERT, args: [id, end, at, at, from, owner] }]);
      for (let after = 0; ; ) {
        const [rows, pairs] = await next(owner, from, after, end);
        if (rows.length === 0) break;
        await writer.batch([
          { sql: COPY, args: [id, pairs, owner] },
          { sql: COPY_PIECES, args: [pairs] },
        ]);
        search.stored(rows.length);
        after = rows.at(-1)!.seq as number;
        await new Promise((resolve) => setTimeout(resolve));
      }
      const results = await writer.batch([
        { sql: COPY_SUMMARIES, args: [id, from, owner, end] },
        { sql: COPY_DIRECTORY, args: [id, from, owner] },
        ...indexTitle(owner, id),
        { sql: SHOW, args: [id, owner] },
      ]);
      const row = results.at(-1)?.rows[0];
      if (!row) throw new AppError("not_found", "The session was deleted while it was copied.");
      const { lastSeq: _, ...session } = toSession(row);
      return session;
    },
  };
}

/** The position of a message, or of the last result of its calls: a call is not copied without its results. */
async function endOf(reader: Reader, owner: string, sessionId: string, messageId: string): Promise<number> {
  const [row] = await reader.rows({ sql: MESSAGE, args: [toStorable(messageId), sessionId, owner] });
  if (!row) throw new AppError("not_found", "There is no message with this id in the session.");
  return (await readGroup(reader, owner, sessionId, row)).at(-1)!.seq as number;
}
