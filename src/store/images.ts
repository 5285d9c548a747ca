/** The rows of images: seen once their bytes are stored, until they are condemned. */
import type { Row } from "@libsql/client/web";
import { createId } from "../core/id.ts";
import type { ImageRecord, ImageRows, ImageType } from "../core/notes.ts";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

const COLUMNS = "id, owner, type, size, width, height, sha256, store, created_at";
const BEGIN = `INSERT INTO images (id, owner, state, type, size, width, height, sha256, store, created_at, unused_since)
  VALUES (?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?)`;
const PUBLISH = "UPDATE images SET state = 'ready' WHERE id = ? AND owner = ? AND state = 'pending'";
const LINKED = `SELECT ${COLUMNS} FROM images WHERE id = ? AND state = 'ready'`;
const GET = `${LINKED} AND owner = ?`;
const AMONG = `SELECT ${COLUMNS} FROM images WHERE id IN (SELECT value FROM json_each(?))
  AND owner = ? AND state = 'ready'`;
const CONDEMN = `UPDATE images SET state = 'condemned' WHERE id IN
  (SELECT id FROM images WHERE unused_since < ? ORDER BY unused_since LIMIT ?) AND unused_since < ?
  RETURNING id, owner, store`;
const REMOVE = "DELETE FROM images WHERE id = ? AND state = 'condemned'";

export function createImageRows(reader: Reader, writer: WriteQueue, now: () => Date): ImageRows {
  return {
    async begin(owner, { type, size, width, height, sha256, store }) {
      const id = createId("img");
      const at = now().getTime();
      const args = [id, owner, type, size, width, height, sha256, store, at, at];
      await writer.batch([{ sql: BEGIN, args }]);
      return id;
    },

    async publish(owner, id) {
      await writer.batch([{ sql: PUBLISH, args: [id, owner] }]);
    },

    async get(owner, id) {
      const [row] = await reader.rows({ sql: GET, args: [toStorable(id), owner] });
      return row ? toImage(row) : null;
    },

    async linked(id) {
      const [row] = await reader.rows({ sql: LINKED, args: [toStorable(id)] });
      return row ? toImage(row) : null;
    },

    async among(owner, ids) {
      if (ids.length === 0) return [];
      const rows = await reader.rows({ sql: AMONG, args: [JSON.stringify(ids), owner] });
      return rows.map(toImage).sort((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id));
    },

    async condemn(before, limit) {
      const at = before.getTime();
      // Asked first on the reading side: nearly always there is nothing to write.
      if (!(await any(reader, at))) return [];
      const [result] = await writer.batch([{ sql: CONDEMN, args: [at, limit, at] }]);
      return (result?.rows ?? []).map((row) => ({
        id: row.id as string,
        owner: row.owner as string,
        store: row.store as string,
      }));
    },

    async remove(ids) {
      // One by one: each takes its chunks along, and others want to write too.
      for (const id of ids) await writer.batch([{ sql: REMOVE, args: [id] }]);
    },
  };
}

const ANY = "SELECT 1 FROM images WHERE unused_since < ? LIMIT 1";

async function any(reader: Reader, before: number): Promise<boolean> {
  return (await reader.rows({ sql: ANY, args: [before] })).length > 0;
}

function toImage(row: Row): ImageRecord {
  return {
    id: row.id as string,
    owner: row.owner as string,
    type: row.type as ImageType,
    size: row.size as number,
    width: row.width as number,
    height: row.height as number,
    sha256: row.sha256 as string,
    store: row.store as string,
    createdAt: new Date(row.created_at as number),
  };
}
