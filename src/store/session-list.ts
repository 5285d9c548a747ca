/** Lists of sessions, newest activity first, whole or by what is said in them. */
import type { InValue } from "@libsql/client/web";
import type { SessionPage, Sessions } from "../core/store.ts";
import { fromTimeCursor, toCursor } from "./cursor.ts";
import type { Reader } from "./reader.ts";
import { MATCHING_SESSIONS, type SearchIndex, toMatch } from "./search-index.ts";
import { SESSION_COLUMNS, toSession } from "./session-rows.ts";
import { toStorable } from "./text.ts";

/** Sessions whose titles are looked through for what has no words. */
const TITLES_LIMIT = 10_000;
const END_OF_TIME = Number.MAX_SAFE_INTEGER;

const LISTED = "owner = ? AND unlisted = 0 AND (updated_at, id) < (?, ?)";
const NEWEST_FIRST = "ORDER BY updated_at DESC, id DESC LIMIT ?";
const ALL = `SELECT ${SESSION_COLUMNS} FROM sessions WHERE ${LISTED} ${NEWEST_FIRST}`;
const MATCHING = `SELECT ${SESSION_COLUMNS} FROM sessions WHERE ${LISTED} AND id IN (${MATCHING_SESSIONS})
  ${NEWEST_FIRST}`;
const TITLED = `SELECT ${SESSION_COLUMNS} FROM (SELECT ${SESSION_COLUMNS} FROM sessions WHERE ${LISTED}
  ORDER BY updated_at DESC, id DESC LIMIT ${TITLES_LIMIT}) WHERE instr(title, ?) > 0 ${NEWEST_FIRST}`;

export function createSessionList(reader: Reader, search: SearchIndex): Pick<Sessions, "list"> {
  return {
    async list(owner, { query, limit, cursor }): Promise<SessionPage> {
      const from = cursor === undefined ? [END_OF_TIME, ""] : fromTimeCursor(cursor);
      const listed: InValue[] = [owner, ...from];
      const rows = await found(reader, search, owner, query?.trim() ?? "", listed, limit + 1);
      const sessions = rows.slice(0, limit).map((row) => {
        const { lastSeq: _, ...session } = toSession(row);
        return session;
      });
      const last = sessions.at(-1);
      const next = rows.length > limit && last ? toCursor(last.updatedAt.getTime(), last.id) : null;
      return { sessions, next };
    },
  };
}

async function found(
  reader: Reader,
  search: SearchIndex,
  owner: string,
  query: string,
  listed: InValue[],
  limit: number,
) {
  if (query === "") return reader.rows({ sql: ALL, args: [...listed, limit] });
  const match = toMatch(owner, query);
  if (match === null) return reader.rows({ sql: TITLED, args: [...listed, toStorable(query), limit] });
  await search.catchUp();
  return reader.rows({ sql: MATCHING, args: [...listed, match, match, limit] });
}
