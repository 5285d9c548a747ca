/** Vectors of memories: which are missing, storing them, and the nearest ones, by comparing all of an owner's in parts. */
import type { MemoryVectors } from "../core/memory-rows.ts";
import { M_MEMORY_COLUMNS, toMemory } from "./memory-rows.ts";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Numbers compared in one statement, which holds up the event loop where the database is a file. */
const NUMBERS_AT_ONCE = 1_000_000;

const MISSING = (side: "<" | ">") => `SELECT row FROM (SELECT row FROM memories
  WHERE valid_to IS NULL AND embedded ${side} ?1 AND embedding_until <= ?2 LIMIT ?4)`;
const CLAIM = `UPDATE memories SET embedding_until = ?3 WHERE row IN (${MISSING("<")} UNION ALL ${MISSING(">")})
  RETURNING row, document`;
const STORE = `INSERT INTO memory_vectors (memory_row, owner, model, vector)
  SELECT row, owner, ?1, ?2 FROM memories WHERE row = ?3 AND document = ?4 AND valid_to IS NULL
  ON CONFLICT (memory_row) DO UPDATE SET model = excluded.model, vector = excluded.vector`;
const STORED = `UPDATE memories SET embedded = ?, embedding_until = 0
  WHERE row = ? AND document = ? AND valid_to IS NULL`;
const END = `SELECT memory_row FROM memory_vectors WHERE owner = ? AND model = ? AND memory_row > ?
  ORDER BY memory_row LIMIT 1 OFFSET ?`;
const NEAREST = `SELECT memory_row, vector_distance_cos(vector, ?1) AS distance FROM memory_vectors
  WHERE owner = ?2 AND model = ?3 AND memory_row > ?4 AND memory_row <= ?5 AND length(vector) = ?6
  AND (?7 IS NULL OR EXISTS (SELECT 1 FROM memories AS m WHERE m.row = memory_row AND m.category = ?7))
  ORDER BY distance LIMIT ?8`;
const BY_ROW = `SELECT m.row, ${M_MEMORY_COLUMNS} FROM json_each(?) AS j CROSS JOIN memories AS m ON m.row = j.value
  WHERE m.owner = ? AND m.valid_to IS NULL`;
const PROGRESS = `SELECT count(*) AS total, coalesce(sum(embedded = ?), 0) AS done FROM memories
  WHERE owner = ? AND valid_to IS NULL`;

export function createMemoryVectors(reader: Reader, writer: WriteQueue): MemoryVectors {
  return {
    async claim(model, now, until, limit) {
      const args = [model, now.getTime(), until.getTime(), limit];
      const [result] = await writer.batch([{ sql: CLAIM, args }]);
      return (result?.rows ?? []).map(({ row, document }) => ({
        row: row as number,
        document: document as string,
      }));
    },

    async store(model, vectors) {
      const statements = vectors.flatMap(({ row, document, vector }) => [
        { sql: STORE, args: [model, toBytes(vector), row, document] },
        { sql: STORED, args: [model, row, document] },
      ]);
      if (statements.length > 0) await writer.batch(statements);
    },

    async nearest(owner, model, vector, { category, limit }) {
      const query = toBytes(vector);
      const step = Math.max(1, Math.floor(NUMBERS_AT_ONCE / vector.length));
      const kind = category === undefined ? null : toStorable(category);
      let best: { row: number; distance: number }[] = [];
      for (let after = 0; ; ) {
        const [end] = await reader.rows({ sql: END, args: [owner, model, after, step - 1] });
        const last = (end?.memory_row as number | undefined) ?? Number.MAX_SAFE_INTEGER;
        const args = [query, owner, model, after, last, query.byteLength, kind, limit];
        for (const row of await reader.rows({ sql: NEAREST, args }))
          best.push({ row: row.memory_row as number, distance: row.distance as number });
        best = best.toSorted((a, b) => a.distance - b.distance).slice(0, limit);
        if (end === undefined) break;
        after = last;
        // A file answers without ever letting go of the event loop.
        await new Promise((resolve) => setTimeout(resolve));
      }
      const found = await reader.rows({
        sql: BY_ROW,
        args: [JSON.stringify(best.map(({ row }) => row)), owner],
      });
      const memories = new Map(found.map((row) => [row.row as number, toMemory(row)]));
      return best.flatMap(({ row, distance }) => {
        const memory = memories.get(row);
        return memory ? [{ memory, similarity: 1 - distance }] : [];
      });
    },

    async progress(owner, model) {
      const [row] = await reader.rows({ sql: PROGRESS, args: [model, owner] });
      return { done: row?.done as number, total: row?.total as number };
    },
  };
}

/** As `vector32` has them: four bytes a number, little-endian, which is what all runtimes run on. */
function toBytes(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength).slice();
}
