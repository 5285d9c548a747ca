/** The blob store that is always there: bytes of images in rows of the database. */
import type { BlobStore } from "../core/notes.ts";
import { AppError } from "../errors.ts";
import type { Reader } from "./reader.ts";
import type { WriteQueue } from "./write-queue.ts";

/** One row: a libSQL server takes values of just under 5,000,000 bytes. */
const CHUNK_BYTES = 1024 * 1024;
/** Written at once, so that others have their turn in between. */
const CHUNKS_AT_ONCE = 2;

const WRITE = "INSERT INTO image_chunks (owner, image_id, chunk, bytes) VALUES (?, ?, ?, ?)";
const READ = "SELECT bytes FROM image_chunks WHERE image_id = ? AND chunk = ? AND owner = ?";
const REMOVE = "DELETE FROM image_chunks WHERE image_id = ? AND owner = ?";

export function createImageChunks(reader: Reader, writer: WriteQueue): BlobStore {
  async function chunk(owner: string, id: string, number: number): Promise<Uint8Array> {
    const [row] = await reader.rows({ sql: READ, args: [id, number, owner] });
    if (row) return new Uint8Array(row.bytes as ArrayBuffer);
    throw new AppError("not_found", "The image has been removed while it was read.");
  }

  return {
    name: "database",

    async put(owner, id, bytes) {
      const step = CHUNK_BYTES * CHUNKS_AT_ONCE;
      for (let from = 0; from < bytes.length; from += step) {
        const rows = [];
        for (let at = from; at < Math.min(from + step, bytes.length); at += CHUNK_BYTES)
          rows.push({
            sql: WRITE,
            args: [owner, id, at / CHUNK_BYTES, bytes.subarray(at, at + CHUNK_BYTES)],
          });
        await writer.batch(rows);
      }
    },

    read(owner, id, { start, end }) {
      let at = start;
      return new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            const number = Math.floor(at / CHUNK_BYTES);
            const base = number * CHUNK_BYTES;
            const bytes = await chunk(owner, id, number);
            const piece = bytes.subarray(at - base, end - base);
            controller.enqueue(piece);
            at += piece.length;
            if (at >= end) controller.close();
          },
        },
        { highWaterMark: 0 },
      );
    },

    async remove(owner, id) {
      await writer.batch([{ sql: REMOVE, args: [id, owner] }]);
    },
  };
}
