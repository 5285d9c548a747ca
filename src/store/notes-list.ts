/** Lists of notes: all of an owner or of a category by time, and searches by rank. */
import type { InValue, Row } from "@libsql/client/web";
import type { NotePage, NoteQuery, Notes } from "../core/notes.ts";
import { fromNumberCursor, fromTimeCursor, toCursor } from "./cursor.ts";
import { toNote } from "./notes-rows.ts";
import { ownerToken, snippetOf, toNoteMatch } from "./notes-search.ts";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";

/** Bytes of the contents of one page, where one alone does not have more. */
const PAGE_BYTES = 1024 * 1024;
/** The newest notes that match are ranked. */
const RANKED = 1_000;
/** Notes whose titles are looked through for what has no words. */
const TITLES_LIMIT = 5_000;
const CATEGORIES_LIMIT = 1_000;
const END_OF_TIME = Number.MAX_SAFE_INTEGER;
/** A word in the title weighs more than one in the text. */
const RANK = "bm25(notes_index, 0, 0, 4, 1)";

const NEWEST_FIRST = "ORDER BY updated_at DESC, id DESC";
const BEFORE = "(updated_at, id) < (?, ?)";
const OF_OWNER = `FROM notes WHERE owner = ? AND ${BEFORE} ${NEWEST_FIRST}`;
const OF_CATEGORY = `FROM notes WHERE owner = ? AND category = ? AND ${BEFORE} ${NEWEST_FIRST}`;
const PLACES = "SELECT row, size, row_number() OVER () AS place";
/** The row numbers of a page in its order, and one more where there is more. */
const PAGE = {
  all: `${PLACES} FROM (SELECT row, size ${OF_OWNER} LIMIT ?)`,
  category: `${PLACES} FROM (SELECT row, size ${OF_CATEGORY} LIMIT ?)`,
  titled: `${PLACES} FROM (SELECT row, size, title ${OF_OWNER} LIMIT ${TITLES_LIMIT}) WHERE instr(title, ?) > 0 LIMIT ? OFFSET ?`,
  titledCategory: `${PLACES} FROM (SELECT row, size, title ${OF_CATEGORY} LIMIT ${TITLES_LIMIT}) WHERE instr(title, ?) > 0 LIMIT ? OFFSET ?`,
  matching: `${PLACES} FROM (SELECT notes.row, size FROM (SELECT rowid AS found, ${RANK} AS score FROM notes_index
    WHERE notes_index MATCH ? ORDER BY rowid DESC LIMIT ${RANKED}) JOIN notes ON notes.row = found
    ORDER BY score, found DESC LIMIT ? OFFSET ?)`,
} as const;
const CATEGORIES = `SELECT category, count(*) AS notes FROM notes WHERE owner = ? GROUP BY category
  ORDER BY category LIMIT ${CATEGORIES_LIMIT}`;

/** The notes themselves, without the contents of those that are too much for this page. */
function withContents(page: string): string {
  return `WITH page AS (${page}), sums AS (SELECT row, place, size,
      sum(size) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING) AS total FROM page)
    SELECT id, title, category, version, created_at, updated_at,
      CASE WHEN total <= ${PAGE_BYTES} OR total = sums.size THEN content END AS content
    FROM sums JOIN notes ON notes.row = sums.row ORDER BY place`;
}

const SQL = Object.fromEntries(Object.entries(PAGE).map(([kind, page]) => [kind, withContents(page)])) as {
  readonly [kind in keyof typeof PAGE]: string;
};

export function createNoteList(reader: Reader): Pick<Notes, "list" | "categories"> {
  return {
    async list(owner, query) {
      const words = query.query?.trim() ?? "";
      return words === "" ? byTime(reader, owner, query) : search(reader, owner, toStorable(words), query);
    },

    async categories(owner) {
      const rows = await reader.rows({ sql: CATEGORIES, args: [owner] });
      return rows.map((row) => ({ category: row.category as string, notes: row.notes as number }));
    },
  };
}

async function byTime(reader: Reader, owner: string, query: NoteQuery): Promise<NotePage> {
  const { limit, cursor } = query;
  const from: InValue[] = cursor === undefined ? [END_OF_TIME, ""] : fromTimeCursor(cursor);
  const category = query.category === undefined ? [] : [toStorable(query.category)];
  const sql = category.length === 0 ? SQL.all : SQL.category;
  const rows = await reader.rows({ sql, args: [owner, ...category, ...from, limit + 1] });
  const notes = shown(rows, limit).map(toNote);
  const last = notes.at(-1);
  const next = last && rows.length > notes.length ? toCursor(last.updatedAt.getTime(), last.id) : null;
  return { notes, next };
}

/** A search has no place in time: its cursor counts what was shown. */
async function search(reader: Reader, owner: string, words: string, query: NoteQuery): Promise<NotePage> {
  const { limit, category } = query;
  const offset = query.cursor === undefined ? 0 : fromNumberCursor(query.cursor);
  const match = toNoteMatch(words, query.anyWord ?? false);
  const rows = await reader.rows(
    match === null
      ? titled(owner, words, query, offset)
      : {
          sql: SQL.matching,
          args: [`${ownerToken(owner, category)} AND ${match.expression}`, limit + 1, offset],
        },
  );
  const notes = shown(rows, limit).map((row) => {
    const note = toNote(row);
    return match === null ? note : { ...note, snippet: snippetOf(note.content, match.words) };
  });
  const next = rows.length > notes.length ? toCursor(offset + notes.length) : null;
  return { notes, next };
}

function titled(owner: string, words: string, { category, limit }: NoteQuery, offset: number) {
  const last: InValue[] = [END_OF_TIME, "", words, limit + 1, offset];
  return category === undefined
    ? { sql: SQL.titled, args: [owner, ...last] }
    : { sql: SQL.titledCategory, args: [owner, toStorable(category), ...last] };
}

/** A page ends with its limit, or before the first note that came without its content. */
function shown(rows: Row[], limit: number): Row[] {
  const end = rows.findIndex((row) => row.content === null);
  return rows.slice(0, end === -1 ? limit : Math.min(end, limit));
}
