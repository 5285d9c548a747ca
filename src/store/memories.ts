/** Memories: writing, listing, their history, deleting. How they are found is in memory-search.ts and memory-vectors.ts. */
import type { InStatement, Row } from "@libsql/client/web";
import type { MemoryRows } from "../core/memory-rows.ts";
import { fromTimeCursor, toCursor } from "./cursor.ts";
import { isConstraint } from "./faults.ts";
import { createMemoryQueue } from "./memory-queue.ts";
import { changeStatements, M_MEMORY_COLUMNS, MEMORY_COLUMNS, toMemory, toStanding } from "./memory-rows.ts";
import { createMemorySaid } from "./memory-said.ts";
import { createMemorySearch } from "./memory-search.ts";
import { createMemoryVectors } from "./memory-vectors.ts";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Rows that a deletion takes at once, so that a large vault does not hold up everybody else. */
const ROWS_AT_ONCE = 100;
const END_OF_TIME = Number.MAX_SAFE_INTEGER;

const ANY = "SELECT 1 FROM memories WHERE owner = ? AND valid_to IS NULL LIMIT 1";
const GET = `SELECT row, slot, value, ${MEMORY_COLUMNS} FROM memories WHERE id = ? AND owner = ?`;
const STANDING = `SELECT row, slot, value, ${MEMORY_COLUMNS} FROM memories
  WHERE owner = ? AND slot IN (SELECT value FROM json_each(?)) AND valid_to IS NULL`;
const PAGE = "AND valid_to IS NULL AND (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?";
const LIST = `SELECT ${MEMORY_COLUMNS} FROM memories WHERE owner = ? ${PAGE}`;
const LIST_CATEGORY = `SELECT ${MEMORY_COLUMNS} FROM memories WHERE owner = ? AND category = ? ${PAGE}`;
const IMPORTANT = `SELECT ${MEMORY_COLUMNS} FROM memories WHERE owner = ? AND valid_to IS NULL AND importance >= ?
  ORDER BY importance DESC, last_seen_at DESC LIMIT ?`;
/** The plus keeps the planner from the index of owners, which has all of an owner's rows. What took its place and so on, and all that each of these took the place of. */
const VERSIONS = `WITH RECURSIVE later (id, next) AS (
    SELECT id, superseded_by FROM memories WHERE id = ?1 AND owner = ?2
    UNION SELECT m.id, m.superseded_by FROM later CROSS JOIN memories AS m ON m.id = later.next AND +m.owner = ?2),
  versions (id) AS (SELECT id FROM later
    UNION SELECT m.id FROM versions CROSS JOIN memories AS m ON m.superseded_by = versions.id AND +m.owner = ?2)
  SELECT ${M_MEMORY_COLUMNS} FROM versions CROSS JOIN memories AS m ON m.id = versions.id
  WHERE (coalesce(m.valid_to, ${END_OF_TIME}), m.id) < (?3, ?4)
  ORDER BY coalesce(m.valid_to, ${END_OF_TIME}) DESC, m.id DESC LIMIT ?5`;
/** A past version hands what it had superseded to what superseded it. */
const RELINK = `UPDATE memories SET superseded_by = (SELECT superseded_by FROM memories WHERE id = ?1)
  WHERE superseded_by = ?1 AND +owner = ?2
  AND EXISTS (SELECT 1 FROM memories WHERE id = ?1 AND owner = ?2 AND valid_to IS NOT NULL)`;
const DELETE = `DELETE FROM memories WHERE id IN (WITH RECURSIVE gone (id) AS (
    SELECT id FROM memories WHERE id = ?1 AND owner = ?2
    UNION SELECT m.id FROM gone CROSS JOIN memories AS m ON m.superseded_by = gone.id AND +m.owner = ?2)
  SELECT id FROM gone)`;
const CLEAR = `DELETE FROM memories WHERE row IN (SELECT row FROM memories WHERE owner = ? LIMIT ${ROWS_AT_ONCE})
  RETURNING valid_to IS NULL AS current`;
const OF_SESSION = `SELECT id, valid_to FROM memories WHERE source_session_id = ? AND owner = ? LIMIT ${ROWS_AT_ONCE}`;
const DUMP = `SELECT row, ${MEMORY_COLUMNS} FROM memories WHERE owner = ? AND row > ? AND valid_to IS NULL
  ORDER BY row LIMIT ?`;
const DUMP_PAST = `WITH RECURSIVE past (head, id) AS (SELECT value, value FROM json_each(?1)
    UNION SELECT past.head, m.id FROM past CROSS JOIN memories AS m ON m.superseded_by = past.id AND +m.owner = ?2)
  SELECT past.head, ${M_MEMORY_COLUMNS} FROM past CROSS JOIN memories AS m ON m.id = past.id
  WHERE m.valid_to IS NOT NULL ORDER BY m.valid_to DESC, m.id DESC`;

export function createMemories(reader: Reader, writer: WriteQueue): MemoryRows {
  const rows: MemoryRows = {
    ...createMemorySearch(reader),
    ...createMemorySaid(reader),
    ...createMemoryQueue(reader, writer),
    vectors: createMemoryVectors(reader, writer),

    async any(owner) {
      return (await reader.rows({ sql: ANY, args: [owner] })).length > 0;
    },

    async apply(owner, changes) {
      const statements = changes.flatMap((change) => changeStatements(owner, change));
      try {
        const results = await writer.batch(statements.map(({ statement }) => statement));
        return statements.every(({ must }, at) => !must || results[at]?.rowsAffected === 1);
      } catch (error) {
        if (isConstraint(error) && String(error).includes("memories.slot")) return false;
        throw error;
      }
    },

    async get(owner, id) {
      const [row] = await reader.rows({ sql: GET, args: [toStorable(id), owner] });
      return row ? toStanding(row) : null;
    },

    async standing(owner, slots) {
      const args = [owner, JSON.stringify(slots.map(toStorable))];
      return (await reader.rows({ sql: STANDING, args })).map(toStanding);
    },

    async list(owner, { category, limit, cursor }) {
      const from = cursor === undefined ? [END_OF_TIME, ""] : fromTimeCursor(cursor);
      const statement: InStatement =
        category === undefined
          ? { sql: LIST, args: [owner, ...from, limit + 1] }
          : { sql: LIST_CATEGORY, args: [owner, toStorable(category), ...from, limit + 1] };
      return toPage(await reader.rows(statement), limit, (row) => row.created_at as number);
    },

    async important(owner, least, limit) {
      return (await reader.rows({ sql: IMPORTANT, args: [owner, least, limit] })).map(toMemory);
    },

    async history(owner, id, { limit, cursor }) {
      // Above every id, so that the current version is among them.
      const from = cursor === undefined ? [END_OF_TIME, "~"] : fromTimeCursor(cursor);
      const found = await reader.rows({ sql: VERSIONS, args: [toStorable(id), owner, ...from, limit + 1] });
      return toPage(found, limit, (row) => (row.valid_to as number | null) ?? END_OF_TIME);
    },

    async delete(owner, id) {
      const args = [toStorable(id), owner];
      const results = await writer.batch([
        { sql: RELINK, args },
        { sql: DELETE, args },
      ]);
      return (results[1]?.rowsAffected ?? 0) > 0;
    },

    async clear(owner) {
      for (let current = 0; ; ) {
        const [result] = await writer.batch([{ sql: CLEAR, args: [owner] }]);
        for (const row of result?.rows ?? []) current += row.current as number;
        if ((result?.rows.length ?? 0) < ROWS_AT_ONCE) return current;
        // A file answers without ever letting go of the event loop.
        await new Promise((resolve) => setTimeout(resolve));
      }
    },

    async deleteOfSession(owner, sessionId) {
      for (let current = 0; ; ) {
        const found = await reader.rows({ sql: OF_SESSION, args: [toStorable(sessionId), owner] });
        if (found.length === 0) return current;
        for (const { id, valid_to: validTo } of found)
          if ((await rows.delete(owner, id as string)) && validTo === null) current++;
      }
    },

    async dump(owner, after, limit) {
      const found = await reader.rows({ sql: DUMP, args: [owner, after, limit] });
      const entries = found.map((row) => ({
        memory: toMemory(row),
        past: [] as ReturnType<typeof toMemory>[],
      }));
      const ids = JSON.stringify(entries.map(({ memory }) => memory.id));
      const byId = new Map(entries.map((entry) => [entry.memory.id, entry]));
      for (const row of await reader.rows({ sql: DUMP_PAST, args: [ids, owner] }))
        byId.get(row.head as string)?.past.push(toMemory(row));
      return { entries, last: (found.at(-1)?.row as number | undefined) ?? null };
    },
  };
  return rows;
}

function toPage(rows: Row[], limit: number, timeOf: (row: Row) => number) {
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return {
    memories: rows.slice(0, limit).map(toMemory),
    next: last ? toCursor(timeOf(last), last.id as string) : null,
  };
}
