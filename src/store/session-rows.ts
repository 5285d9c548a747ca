/** A session's own row, and how it is found by its id. */
import type { Row } from "@libsql/client/web";
import type { Session } from "../core/store.ts";
import { AppError } from "../errors.ts";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";

export type OpenSession = Session & { lastSeq: number };

export const SESSION_COLUMNS = "id, title, last_seq, message_count, created_at, updated_at";
const BY_ID = `SELECT ${SESSION_COLUMNS} FROM sessions WHERE id = ? AND owner = ?`;

/** Throws AppError `not_found`. */
export async function readSession(reader: Reader, owner: string, id: string): Promise<OpenSession> {
  const [row] = await reader.rows({ sql: BY_ID, args: [toStorable(id), owner] });
  if (row) return toSession(row);
  throw noSession();
}

export function toSession(row: Row): OpenSession {
  return {
    id: row.id as string,
    title: row.title as string,
    lastSeq: row.last_seq as number,
    messageCount: row.message_count as number,
    createdAt: new Date(row.created_at as number),
    updatedAt: new Date(row.updated_at as number),
  };
}

export function noSession(): AppError {
  return new AppError(
    "not_found",
    "There is no session with this id. Open one with `new` or with a label of your own.",
  );
}
