/** What users have said in sessions, for receipts, for recall and for what is worth keeping. Nothing that others have said. */
import type { Row } from "@libsql/client/web";
import type { MemoryRows, SaidMessage } from "../core/memory-rows.ts";
import { textOf } from "../core/message.ts";
import { MESSAGE_COLUMNS, toStoredMessage } from "./message-rows.ts";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";

/** Messages of a session that are gone through for those of its user. */
const LOOK = 1_000;

const RUN = "SELECT session_id FROM runs WHERE id = ? AND owner = ?";
const ROWS_OF_USER = (order: "DESC" | "") => `SELECT row FROM (SELECT row, role FROM messages
    WHERE session_id = ? AND owner = ? AND seq > ? ORDER BY seq ${order} LIMIT ${LOOK}) WHERE role = 'user' LIMIT ?`;
const NEWEST = `SELECT ${MESSAGE_COLUMNS} FROM messages WHERE row IN (${ROWS_OF_USER("DESC")}) ORDER BY seq DESC`;
const FIRST = `SELECT ${MESSAGE_COLUMNS} FROM messages WHERE row IN (${ROWS_OF_USER("")}) ORDER BY seq`;

export function createMemorySaid(reader: Reader): Pick<MemoryRows, "opening" | "said"> {
  return {
    async opening(owner, sessionId) {
      const rows = await reader.rows({ sql: FIRST, args: [toStorable(sessionId), owner, 0, 1] });
      return (await toSaid(reader, rows))[0]?.text ?? "";
    },

    async said(owner, runId, limit) {
      const [run] = await reader.rows({ sql: RUN, args: [runId, owner] });
      if (!run) return null;
      const sessionId = run.session_id as string;
      return { sessionId, messages: await saidAfter(reader, owner, sessionId, 0, limit) };
    },
  };
}

/** Newest first. */
export async function saidAfter(
  reader: Reader,
  owner: string,
  sessionId: string,
  after: number,
  limit: number,
): Promise<SaidMessage[]> {
  return toSaid(reader, await reader.rows({ sql: NEWEST, args: [sessionId, owner, after, limit] }));
}

async function toSaid(reader: Reader, rows: Row[]): Promise<SaidMessage[]> {
  const said: SaidMessage[] = [];
  for (const row of rows) {
    const { id, seq, message } = await toStoredMessage(reader, row);
    said.push({ id, seq, text: textOf(message) });
  }
  return said;
}
