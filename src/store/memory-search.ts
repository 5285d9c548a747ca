/** How memories are found by their words. */
import type { InValue } from "@libsql/client/web";
import type { MemoryRows } from "../core/memory-rows.ts";
import { M_MEMORY_COLUMNS, MEMORY_COLUMNS, toMemory } from "./memory-rows.ts";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";

/** A term is counted up to here: beyond it is in too many memories to tell them apart. */
export const COUNTED = 2_000;
/** Matches that are ranked, the newest of them. */
const RANKED = 4_000;
/** Memories whose texts are looked through for what has no words. */
const LOOK = 10_000;

const COUNT = `(SELECT count(*) FROM (SELECT 1 FROM memory_index WHERE memory_index MATCH ? LIMIT ${COUNTED}))`;
const MATCHING = `SELECT ${M_MEMORY_COLUMNS}, -best.rank AS rank FROM (SELECT rowid AS row, rank FROM
    (SELECT rowid, bm25(memory_index, 0, 1) AS rank FROM memory_index WHERE memory_index MATCH ?
      ORDER BY rowid DESC LIMIT ${RANKED}) ORDER BY rank LIMIT ?) AS best
  CROSS JOIN memories AS m ON m.row = best.row WHERE m.owner = ? AND m.valid_to IS NULL ORDER BY best.rank`;
const NEWEST = `WHERE owner = ? AND valid_to IS NULL AND (? IS NULL OR category = ?)
  ORDER BY created_at DESC, id DESC LIMIT ${LOOK}`;
const CONTAINING = `SELECT ${MEMORY_COLUMNS} FROM (SELECT ${MEMORY_COLUMNS} FROM memories ${NEWEST})
  WHERE instr(lower(document), lower(?)) > 0 LIMIT ?`;

export function createMemorySearch(reader: Reader): Pick<MemoryRows, "counts" | "matching" | "containing"> {
  return {
    async counts(owner, terms) {
      if (terms.length === 0) return [];
      const columns = terms.map((_, at) => `${COUNT} AS n${at}`).join(", ");
      const args = terms.map((term) => matchOf(owner, undefined, [term]));
      const [row] = await reader.rows({ sql: `SELECT ${columns}`, args });
      return terms.map((_, at) => row?.[`n${at}`] as number);
    },

    async matching(owner, terms, { category, prefix, limit }) {
      const match = matchOf(owner, category, terms, prefix);
      const rows = await reader.rows({ sql: MATCHING, args: [match, limit, owner] });
      return rows.map((row) => ({ memory: toMemory(row), rank: row.rank as number }));
    },

    async containing(owner, text, { category, limit }) {
      const wanted: InValue = category === undefined ? null : toStorable(category);
      const args = [owner, wanted, wanted, toStorable(text), limit];
      return (await reader.rows({ sql: CONTAINING, args })).map(toMemory);
    },
  };
}

/** Terms are letters and digits alone; in quotes nothing in them is taken as the index's own syntax. */
function matchOf(
  owner: string,
  category: string | undefined,
  terms: readonly string[],
  prefix?: string | undefined,
): string {
  const wanted = terms.map((term) => `"${term.replaceAll('"', "")}"`);
  if (prefix !== undefined) wanted.push(`"${prefix.replaceAll('"', "")}" *`);
  const kind = category === undefined ? "" : ` AND owner : "c${toHex(toStorable(category))}"`;
  return `owner : "o${toHex(owner)}"${kind} AND content : (${wanted.join(" OR ")})`;
}

function toHex(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
