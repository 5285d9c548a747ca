/**
 * The full-text index over messages and titles. A message is found under its row number, a title under the negative of
 * its session's; triggers remove both when their rows go.
 *
 * The index runs behind: writing it with every turn would cost as much as the turn itself. What is missing is indexed in
 * the background once there is enough of it, and before each search, in batches that do not hold up the event loop.
 */
import type { InStatement } from "@libsql/client/web";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Messages of this process that wait before they are indexed in the background. */
const ENOUGH = 1_000;
/** Messages in one batch. */
const ROWS_AT_ONCE = 500;
/** Bytes of messages in one batch, where one alone does not have more. */
const BYTES_AT_ONCE = 128 * 1024;
/** Characters of a message that are searched. */
const SEARCHED_LENGTH = 64 * 1024;
/** The newest matches count; sessions that only older ones would bring up are not found by so common a word. */
const MATCHES_LIMIT = 10_000;
const WORDS_LIMIT = 16;
/** A background run that is out for longer has ended with its request. Milliseconds. */
const LONGEST_OUT_MS = 20_000;

const INDEXED_UP_TO = "coalesce((SELECT max(id) FROM search_index_docsize WHERE id > 0), 0)";
const MISSING = `SELECT row, octet_length(content) AS size FROM messages WHERE row > ${INDEXED_UP_TO}
  ORDER BY row LIMIT ${ROWS_AT_ONCE}`;
/** Every owner is a token of its own, so that a search only ever walks through the owner's matches. */
const OWNER_TOKEN = "'o' || hex(owner)";
const WHOLE_CONTENT = `CASE WHEN pieces = 1 THEN content ELSE content || (SELECT group_concat(content, '') FROM
  (SELECT content FROM message_pieces WHERE message_id = messages.id ORDER BY piece)) END`;
const TEXT = `(SELECT substr(group_concat(value ->> 'text', ' '), 1, ${SEARCHED_LENGTH})
  FROM json_each(${WHOLE_CONTENT}, '$.content') WHERE value ->> 'type' = 'text')`;
const INDEX = `INSERT INTO search_index (rowid, owner, content)
  SELECT row, ${OWNER_TOKEN}, CASE WHEN role IN ('user', 'assistant') THEN coalesce(${TEXT}, '') ELSE '' END
  FROM messages WHERE row > ${INDEXED_UP_TO} AND row <= ? ORDER BY row`;
const FORGET_TITLE = `DELETE FROM search_index
  WHERE rowid = (SELECT -row FROM sessions WHERE id = ? AND owner = ?)`;
const INDEX_TITLE = `INSERT INTO search_index (rowid, owner, content)
  SELECT -row, ${OWNER_TOKEN}, title FROM sessions WHERE id = ? AND owner = ? AND title <> ''`;

/** Ids of the sessions that match; takes the expression of {@link toMatch} twice. */
export const MATCHING_SESSIONS = `SELECT session_id FROM messages WHERE row IN (SELECT rowid FROM search_index
    WHERE search_index MATCH ? AND rowid > 0 ORDER BY rowid DESC LIMIT ${MATCHES_LIMIT})
  UNION SELECT id FROM sessions WHERE row IN (SELECT -rowid FROM search_index
    WHERE search_index MATCH ? AND rowid < 0 ORDER BY rowid LIMIT ${MATCHES_LIMIT})`;

export class SearchIndex {
  readonly #reader: Reader;
  readonly #writer: WriteQueue;
  readonly #background: (work: Promise<unknown>) => void;
  #waiting = 0;
  /** When the background run that is under way was begun. */
  #begun: number | undefined;

  constructor(reader: Reader, writer: WriteQueue, background: (work: Promise<unknown>) => void) {
    this.#reader = reader;
    this.#writer = writer;
    this.#background = background;
  }

  /** Says that messages were stored. */
  stored(messages: number): void {
    this.#waiting += messages;
    if (this.#waiting < ENOUGH) return;
    const begun = performance.now();
    if (this.#begun !== undefined && begun - this.#begun < LONGEST_OUT_MS) return;
    this.#waiting = 0;
    this.#begun = begun;
    this.#background(this.#catchUpQuietly());
  }

  /** What fails here is tried again before the next search. */
  async #catchUpQuietly(): Promise<void> {
    try {
      await this.catchUp();
    } catch {
    } finally {
      this.#begun = undefined;
    }
  }

  /**
   * Indexes all that is stored when it is called. What is stored meanwhile waits for the next time: whoever went after it
   * would index every turn by itself. Any number of processes may do so at once.
   */
  async catchUp(): Promise<void> {
    for (;;) {
      const missing = await this.#reader.rows(MISSING);
      let bytes = 0;
      let count = 0;
      for (const { size } of missing) {
        bytes += size as number;
        if (count > 0 && bytes > BYTES_AT_ONCE) break;
        count++;
      }
      if (count === 0) return;
      await this.#writer.batch([{ sql: INDEX, args: [missing[count - 1]?.row as number] }]);
      if (count === missing.length && count < ROWS_AT_ONCE) return;
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
}

/** To be part of a batch that changes a title, behind that change. */
export function indexTitle(owner: string, sessionId: string): InStatement[] {
  const args = [sessionId, owner];
  return [
    { sql: FORGET_TITLE, args },
    { sql: INDEX_TITLE, args },
  ];
}

/**
 * What a person typed, as an expression: all words, the last one as the beginning of a word. Only letters, digits and
 * marks get through, each word in quotes, so that nothing in it is taken as the index's own syntax. null without words.
 */
export function toMatch(owner: string, query: string): string | null {
  const words = toStorable(query).match(/[\p{L}\p{N}\p{M}\p{Co}]+/gu);
  if (!words) return null;
  const wanted = words.slice(0, WORDS_LIMIT).map((word) => `"${word}"`);
  const token = Array.from(new TextEncoder().encode(owner), (byte) => byte.toString(16).padStart(2, "0"));
  return `owner : "o${token.join("")}" AND content : (${wanted.join(" AND ")} *)`;
}
