/** Messages as rows: how they are appended to a session inside a larger batch, and how they are read back. */
import type { InStatement, InValue, Row } from "@libsql/client/web";
import { createId } from "../core/id.ts";
import { type Message, textOf } from "../core/message.ts";
import type { StoredMessage } from "../core/store.ts";
import { joinPieces } from "./pieces.ts";
import type { Reader } from "./reader.ts";
import { toPieces, toStorable, toStorableJson } from "./text.ts";

/** Characters of a title. */
const TITLE_LENGTH = 80;

export const MESSAGE_COLUMNS = "id, seq, content, pieces, created_at";

const INSERT_PIECE = `INSERT INTO message_pieces (owner, message_id, piece, content)
  SELECT owner, id, ?, ? FROM messages WHERE id = ?`;

const INSERT_FIRST = `INSERT INTO messages (id, owner, session_id, seq, role, content, pieces, created_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;

/** Statements that append to the session `s` which a condition finds, behind its last position, or do nothing. */
export interface Appender {
  insert: string;
  advance: string;
}

/**
 * `condition` finds at most one session and says under which circumstances; its parameters come last. `turn` is what
 * the session's turn becomes: an expression with at most one parameter.
 */
export function createAppender(condition: string, turn = "turn"): Appender {
  return {
    insert: `INSERT INTO messages (id, owner, session_id, seq, role, content, pieces, created_at)
      SELECT ?, s.owner, s.id, s.last_seq + ?, ?, ?, ?, ? FROM sessions AS s WHERE ${condition}`,
    advance: `UPDATE sessions AS s SET last_seq = last_seq + ?, message_count = message_count + ?, updated_at = ?,
      title = CASE WHEN title = '' THEN ? ELSE title END, turn = ${turn} WHERE ${condition}`,
  };
}

/** All rows, then the session's own, which is the last statement. `ids`: of the messages, where they have any already. */
export function appendStatements(
  appender: Appender,
  messages: readonly Message[],
  at: number,
  values: { turn?: InValue[]; condition: InValue[]; ids?: readonly string[] | undefined },
): InStatement[] {
  const statements: InStatement[] = [];
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!;
    const id = values.ids?.[index] ?? createId("msg");
    const [first, ...rest] = toPieces(toStorableJson(message));
    const row = [id, index + 1, message.role, first, rest.length + 1, at];
    statements.push({ sql: appender.insert, args: [...row, ...values.condition] });
    pushPieces(statements, id, rest);
  }
  const { length } = messages;
  const session = [length, length, at, titleOf(messages), ...(values.turn ?? []), ...values.condition];
  statements.push({ sql: appender.advance, args: session });
  return statements;
}

/** The messages of a session that the same batch makes, with what its row says of them. */
export function firstStatements(
  owner: string,
  sessionId: string,
  messages: readonly Message[],
  at: number,
): InStatement[] {
  const statements: InStatement[] = [];
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!;
    const id = createId("msg");
    const [first, ...rest] = toPieces(toStorableJson(message));
    const args = [id, owner, sessionId, index + 1, message.role, first, rest.length + 1, at];
    statements.push({ sql: INSERT_FIRST, args });
    pushPieces(statements, id, rest);
  }
  return statements;
}

function pushPieces(statements: InStatement[], id: string, rest: readonly string[]): void {
  for (let piece = 0; piece < rest.length; piece++)
    statements.push({ sql: INSERT_PIECE, args: [piece + 1, rest[piece]!, id] });
}

export async function toStoredMessage(reader: Reader, row: Row): Promise<StoredMessage> {
  const id = row.id as string;
  const pieces = row.pieces as number;
  let json = row.content as string;
  if (pieces > 1) json = await joinPieces(reader, "message", [id], json, pieces);
  const message = JSON.parse(json) as Message;
  return { id, seq: row.seq as number, message, createdAt: new Date(row.created_at as number) };
}

/** The first line of the first thing that the user says, or the empty string. */
export function titleOf(messages: readonly Message[]): string {
  for (const message of messages) {
    if (message.role !== "user") continue;
    const start = toStorable(textOf(message).trimStart());
    const line = start.slice(0, 2 * TITLE_LENGTH).split(/[\r\n\u2028\u2029]/, 1)[0]!;
    const words = line.replace(/\s+/g, " ").trimEnd();
    if (words !== "" && words.length <= TITLE_LENGTH) return words.toWellFormed();
    const characters = Array.from(words);
    if (characters.length > 0) return characters.slice(0, TITLE_LENGTH).join("").toWellFormed();
  }
  return "";
}
