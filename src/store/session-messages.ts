/** The messages of sessions: reading them in pages, appending, deleting. */
import type { InValue, Row } from "@libsql/client/web";
import type { MessagePage, Sessions, StoredMessage } from "../core/store.ts";
import { AppError } from "../errors.ts";
import { fromNumberCursor, toCursor } from "./cursor.ts";
import { appendStatements, createAppender, MESSAGE_COLUMNS, toStoredMessage } from "./message-rows.ts";
import type { Reader } from "./reader.ts";
import { indexTitle, type SearchIndex } from "./search-index.ts";
import { readSession } from "./session-rows.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Messages of a turn that are looked through at once for where it begins or ends. */
const LOOK = 50;
const ATTEMPTS = 10;

const BEFORE = `SELECT ${MESSAGE_COLUMNS} FROM messages
  WHERE session_id = ? AND owner = ? AND seq < ? ORDER BY seq DESC LIMIT ?`;
const AFTER = `SELECT ${MESSAGE_COLUMNS} FROM messages
  WHERE session_id = ? AND owner = ? AND seq > ? ORDER BY seq LIMIT ?`;
const AT_POSITION = createAppender("s.id = ? AND s.owner = ? AND s.last_seq = ?");
const ROLES_BEFORE = `SELECT id, seq, role FROM messages
  WHERE session_id = ? AND owner = ? AND seq < ? ORDER BY seq DESC LIMIT ?`;
const ROLES_AFTER = `SELECT id, seq, role FROM messages
  WHERE session_id = ? AND owner = ? AND seq > ? ORDER BY seq LIMIT ?`;
const WHERE_IT_IS = `SELECT m.id, m.seq, m.role, m.session_id, s.last_seq FROM messages AS m
  JOIN sessions AS s ON s.id = m.session_id AND s.owner = m.owner WHERE m.id = ? AND m.owner = ?`;
/** What a run under way has said may not go from under it. */
const DELETE = `DELETE FROM messages WHERE owner = ? AND id IN (SELECT value FROM json_each(?))
  AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = ? AND s.owner = ? AND s.last_seq = ?
    AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.id = s.turn AND r.history_seq < ?
      AND r.status IN ('running', 'paused')))`;
const RECOUNT = `UPDATE sessions SET message_count = (SELECT count(*) FROM messages WHERE session_id = sessions.id)
  WHERE id = ? AND owner = ?`;
/** A summary tells of what it stands for: it goes with the message, and is made anew when it is needed. */
const FORGET_SUMMARIES = `DELETE FROM session_summaries WHERE session_id = ? AND owner = ? AND up_to >= ?
  AND NOT EXISTS (SELECT 1 FROM messages WHERE id = ?)`;

type Methods = Pick<Sessions, "page" | "messages" | "append" | "deleteMessage">;

export function createSessionMessages(
  reader: Reader,
  writer: WriteQueue,
  search: SearchIndex,
  now: () => Date,
): Methods {
  const toMessages = async (rows: Row[]): Promise<StoredMessage[]> => {
    const messages: StoredMessage[] = [];
    for (const row of rows) messages.push(await toStoredMessage(reader, row));
    return messages;
  };

  return {
    async page(owner, sessionId, { before = Number.MAX_SAFE_INTEGER, limit }) {
      const id = toStorable(sessionId);
      const rows = await reader.page(
        (last, size) => ({ sql: BEFORE, args: [id, owner, (last?.seq as number) ?? before, size] }),
        limit,
      );
      return toMessages(rows);
    },

    async messages(owner, sessionId, { limit, cursor }): Promise<MessagePage> {
      const from = cursor === undefined ? 0 : fromNumberCursor(cursor);
      const { id } = await readSession(reader, owner, sessionId);
      const rows = await reader.page(
        (last, size) => ({ sql: AFTER, args: [id, owner, (last?.seq as number) ?? from, size] }),
        limit + 1,
      );
      const messages = await toMessages(rows.slice(0, limit));
      return { messages, next: rows.length > limit ? toCursor(messages.at(-1)?.seq ?? from) : null };
    },

    async append(owner, sessionId, expectedSeq, messages) {
      const id = toStorable(sessionId);
      const condition = [id, owner, expectedSeq];
      const results = await writer.batch(
        appendStatements(AT_POSITION, messages, now().getTime(), { condition }),
      );
      if (results.at(-1)?.rowsAffected === 1) {
        search.stored(messages.length);
        return expectedSeq + messages.length;
      }
      await readSession(reader, owner, id);
      return null;
    },

    async deleteMessage(owner, messageId) {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const [row] = await reader.rows({ sql: WHERE_IT_IS, args: [toStorable(messageId), owner] });
        if (!row) throw new AppError("not_found", "There is no message with this id.");
        const sessionId = row.session_id as string;
        const group = await readGroup(reader, owner, sessionId, row);
        const ids = group.map((member) => member.id as string);
        const first = group[0]!;
        const condition: InValue[] = [sessionId, owner, row.last_seq as number, group.at(-1)!.seq as number];
        const [deleted] = await writer.batch([
          { sql: DELETE, args: [owner, JSON.stringify(ids), ...condition] },
          { sql: RECOUNT, args: [sessionId, owner] },
          {
            sql: FORGET_SUMMARIES,
            args: [sessionId, owner, first.seq as number, first.id as string],
          },
          ...indexTitle(owner, sessionId),
        ]);
        if (deleted!.rowsAffected > 0) return ids;
      }
      throw new AppError(
        "conflict",
        "The message belongs to a run that is under way. Wait until it has ended, or stop it first.",
      );
    },
  };
}

/**
 * A message with what cannot stand without it, in order: calls and their results, which follow them directly. `row` needs
 * `id`, `seq` and `role`.
 */
export async function readGroup(reader: Reader, owner: string, sessionId: string, row: Row): Promise<Row[]> {
  const beside = (sql: string, seq: number) => reader.rows({ sql, args: [sessionId, owner, seq, LOOK] });
  let head = row;
  while (head.role === "tool") {
    const earlier = await beside(ROLES_BEFORE, head.seq as number);
    const next = earlier.find((message) => message.role !== "tool") ?? earlier.at(-1);
    // A result without a call stands alone.
    if (!next || next.role === "user" || next.role === "system") return [row];
    head = next;
  }
  const group = [head];
  while (head.role === "assistant") {
    const later = await beside(ROLES_AFTER, group.at(-1)!.seq as number);
    const end = later.findIndex((message) => message.role !== "tool");
    group.push(...(end === -1 ? later : later.slice(0, end)));
    if (end !== -1 || later.length < LOOK) break;
  }
  return group;
}
