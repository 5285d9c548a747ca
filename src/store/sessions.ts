/** Conversations that the server keeps, and their messages. */
import type { InStatement, Row } from "@libsql/client/web";
import { createId } from "../core/id.ts";
import { type Message, textOf } from "../core/message.ts";
import type { Session, Sessions, StoredMessage } from "../core/store.ts";
import { AppError } from "../errors.ts";
import { isTooLarge } from "./faults.ts";
import { joinPieces } from "./pieces.ts";
import type { Reader } from "./reader.ts";
import { toPieces, toStorable, toStorableJson } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Characters of a title. */
const TITLE_LENGTH = 80;
const LABEL = /^[A-Za-z0-9._:-]{1,128}$/;

const COLUMNS = "id, title, last_seq, message_count, created_at, updated_at";
const BY_ID = `SELECT ${COLUMNS} FROM sessions WHERE id = ? AND owner = ?`;
const BY_LABEL = `SELECT ${COLUMNS} FROM sessions WHERE owner = ? AND label = ?`;
/** The update changes nothing; it is there so that the row comes back from whoever made it first. */
const INSERT = `INSERT INTO sessions (id, owner, label, title, last_seq, message_count, created_at, updated_at)
  VALUES (?, ?, ?, '', 0, 0, ?, ?)
  ON CONFLICT (owner, label) DO UPDATE SET label = excluded.label RETURNING ${COLUMNS}`;
const PAGE = `SELECT id, seq, content, pieces, created_at FROM messages
  WHERE session_id = ? AND owner = ? AND seq < ? ORDER BY seq DESC LIMIT ?`;
const INSERT_MESSAGE = `INSERT INTO messages (id, owner, session_id, seq, role, content, pieces, created_at)
  SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ? AND owner = ? AND last_seq = ?)`;
const INSERT_PIECE = `INSERT INTO message_pieces (owner, message_id, piece, content)
  SELECT ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM messages WHERE id = ?)`;
const ADVANCE = `UPDATE sessions SET last_seq = ?, message_count = message_count + ?, updated_at = ?,
  title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ? AND owner = ? AND last_seq = ?`;

type OpenSession = Session & { lastSeq: number };

export function createSessions(reader: Reader, writer: WriteQueue, now: () => Date): Sessions {
  return new SqlSessions(reader, writer, now);
}

class SqlSessions implements Sessions {
  readonly #reader: Reader;
  readonly #writer: WriteQueue;
  readonly #now: () => Date;

  constructor(reader: Reader, writer: WriteQueue, now: () => Date) {
    this.#reader = reader;
    this.#writer = writer;
    this.#now = now;
  }

  async open(owner: string, ref: string): Promise<OpenSession> {
    if (ref === "new") return this.#create(owner, null);
    if (ref.startsWith("ses_")) return this.#byId(owner, ref);
    if (!LABEL.test(ref))
      throw new AppError(
        "invalid_request",
        "A session is named by `new`, by its id (`ses_…`), or by a label of 1 to 128 letters, digits and `.`, `_`, `:`, `-`.",
      );
    const [row] = await this.#reader.rows({ sql: BY_LABEL, args: [owner, ref] });
    return row ? toSession(row) : this.#create(owner, ref);
  }

  async page(
    owner: string,
    sessionId: string,
    options: { before?: number; limit: number },
  ): Promise<StoredMessage[]> {
    const before = options.before ?? Number.MAX_SAFE_INTEGER;
    const rows = await this.#rows(owner, toStorable(sessionId), before, options.limit);
    const messages: StoredMessage[] = [];
    for (const row of rows) messages.push(await this.#toMessage(row));
    return messages;
  }

  async append(
    owner: string,
    sessionId: string,
    expectedSeq: number,
    messages: Message[],
  ): Promise<number | null> {
    const id = toStorable(sessionId);
    const at = this.#now().getTime();
    const guard = [id, owner, expectedSeq];
    const statements: InStatement[] = [];
    messages.forEach((message, index) => {
      const messageId = createId("msg");
      const [first, ...rest] = toPieces(toStorableJson(message));
      const row = [messageId, owner, id, expectedSeq + 1 + index, message.role, first, rest.length + 1, at];
      statements.push({ sql: INSERT_MESSAGE, args: [...row, ...guard] });
      rest.forEach((piece, at) => {
        statements.push({ sql: INSERT_PIECE, args: [owner, messageId, at + 1, piece, messageId] });
      });
    });
    const last = expectedSeq + messages.length;
    statements.push({ sql: ADVANCE, args: [last, messages.length, at, titleOf(messages), ...guard] });
    const results = await this.#writer.batch(statements);
    if (results.at(-1)?.rowsAffected === 1) return last;
    await this.#byId(owner, id);
    return null;
  }

  async #create(owner: string, label: string | null): Promise<OpenSession> {
    const at = this.#now().getTime();
    const [result] = await this.#writer.batch([
      { sql: INSERT, args: [createId("ses"), owner, label, at, at] },
    ]);
    return toSession(result!.rows[0]!);
  }

  async #byId(owner: string, id: string): Promise<OpenSession> {
    const [row] = await this.#reader.rows({ sql: BY_ID, args: [toStorable(id), owner] });
    if (row) return toSession(row);
    throw new AppError(
      "not_found",
      "There is no session with this id. Open one with `new` or with a label of your own.",
    );
  }

  /** A server refuses an answer of more than 10 MB: such a page is read as two halves. */
  async #rows(owner: string, sessionId: string, before: number, limit: number): Promise<Row[]> {
    try {
      return await this.#reader.rows({ sql: PAGE, args: [sessionId, owner, before, limit] });
    } catch (error) {
      if (!isTooLarge(error) || limit <= 1) throw error;
      const half = Math.ceil(limit / 2);
      const newer = await this.#rows(owner, sessionId, before, half);
      const last = newer.at(-1);
      if (last === undefined || newer.length < half) return newer;
      return [...newer, ...(await this.#rows(owner, sessionId, last.seq as number, limit - half))];
    }
  }

  async #toMessage(row: Row): Promise<StoredMessage> {
    const id = row.id as string;
    const pieces = row.pieces as number;
    let json = row.content as string;
    if (pieces > 1)
      json = await joinPieces(this.#reader, { name: "message_pieces", key: "message_id" }, id, json, pieces);
    const message = JSON.parse(json) as Message;
    return { id, seq: row.seq as number, message, createdAt: new Date(row.created_at as number) };
  }
}

function toSession(row: Row): OpenSession {
  return {
    id: row.id as string,
    title: row.title as string,
    lastSeq: row.last_seq as number,
    messageCount: row.message_count as number,
    createdAt: new Date(row.created_at as number),
    updatedAt: new Date(row.updated_at as number),
  };
}

/** The first line of the first thing that the user says, or the empty string. */
function titleOf(messages: Message[]): string {
  for (const message of messages) {
    if (message.role !== "user") continue;
    const start = toStorable(textOf(message).trimStart());
    const line = start.slice(0, 2 * TITLE_LENGTH).split(/[\r\n\u2028\u2029]/, 1)[0]!;
    const characters = Array.from(line.replace(/\s+/g, " ").trimEnd());
    if (characters.length > 0) return characters.slice(0, TITLE_LENGTH).join("").toWellFormed();
  }
  return "";
}
