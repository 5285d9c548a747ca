/** The virtual workspace: an owner's files as rows. Reading, and changing them in one atomic batch. */
import type { Row } from "@libsql/client/web";
import type { FileRows, StoredFile } from "../core/store.ts";
import { AppError } from "../errors.ts";
import { failedStatement, isConstraint } from "./faults.ts";
import { CHUNK_BYTES, type FileBatch, planChanges } from "./file-changes.ts";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Chunks in one answer: a libSQL server sends at most 10 MB. */
const CHUNKS_PER_READ = 8;
/** A file that is overwritten this often while it is read is given up. */
const READ_ATTEMPTS = 10;

const COLUMNS = "path, directory, size, mode, modified_at";
const STAT = `SELECT ${COLUMNS} FROM files WHERE owner = ? AND path = ?`;
const REVISION = "SELECT size, revision FROM files WHERE owner = ? AND path = ? AND directory = 0";
const CHUNKS = `SELECT bytes FROM file_chunks WHERE owner = ? AND path = ? AND chunk >= ? AND chunk < ? ORDER BY chunk`;
const LIST = `SELECT ${COLUMNS} FROM files WHERE owner = ? AND parent = ? ORDER BY directory DESC, path`;
const ALL = `SELECT ${COLUMNS} FROM files WHERE owner = ? AND path > ? ORDER BY path LIMIT ?`;
const BELOW = `SELECT ${COLUMNS} FROM files WHERE owner = ? AND path > ? AND path < ? ORDER BY path LIMIT ?`;

export function createFileRows(reader: Reader, writer: WriteQueue, now: () => Date): FileRows {
  return {
    async stat(owner, path) {
      const [row] = await reader.rows({ sql: STAT, args: [owner, toStorable(path)] });
      return row ? toFile(row) : null;
    },

    read: (owner, path) => readBytes(reader, owner, toStorable(path)),

    async list(owner, path) {
      return (await reader.rows({ sql: LIST, args: [owner, toStorable(path)] })).map(toFile);
    },

    async below(owner, path, after, limit) {
      const directory = toStorable(path);
      const from = toStorable(after ?? "");
      if (directory === "") return (await reader.rows({ sql: ALL, args: [owner, from, limit] })).map(toFile);
      // `0` follows `/`, so that these two hold all that is below the directory and nothing else.
      const args = [owner, from > `${directory}/` ? from : `${directory}/`, `${directory}0`, limit];
      return (await reader.rows({ sql: BELOW, args })).map(toFile);
    },

    async apply(owner, changes) {
      const batch = planChanges(owner, changes, now().getTime());
      if (batch.statements.length === 0) return;
      try {
        await writer.batch(batch.statements);
      } catch (error) {
        throw explain(error, batch);
      }
    },
  };
}

/** All chunks of one revision. What is overwritten between two answers is read from its beginning again. */
async function readBytes(reader: Reader, owner: string, path: string): Promise<Uint8Array | null> {
  for (let attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
    let bytes: Uint8Array | undefined;
    let revision: unknown;
    for (let chunk = 0, filled = 0; ; chunk += CHUNKS_PER_READ) {
      const [head, body] = await reader.batch([
        { sql: REVISION, args: [owner, path] },
        { sql: CHUNKS, args: [owner, path, chunk, chunk + CHUNKS_PER_READ] },
      ]);
      const row = head?.rows[0];
      if (row === undefined) return null;
      if (bytes === undefined) bytes = new Uint8Array(row.size as number);
      else if (row.revision !== revision) break;
      revision = row.revision;
      for (const { bytes: part } of body?.rows ?? []) {
        bytes.set(new Uint8Array(part as ArrayBuffer), filled);
        filled += (part as ArrayBuffer).byteLength;
      }
      if ((chunk + CHUNKS_PER_READ) * CHUNK_BYTES >= bytes.length) return bytes;
    }
  }
  throw new AppError("conflict", `The file ${path} is overwritten faster than it can be read. Try again.`);
}

/** Which of the batch's own conditions was not met. */
function explain(error: unknown, batch: FileBatch): unknown {
  const at = failedStatement(error);
  const reason = isConstraint(error) && at !== undefined ? batch.guards.get(at) : undefined;
  return reason ? new AppError(reason.code, reason.message, { cause: error }) : error;
}

function toFile(row: Row): StoredFile {
  return {
    path: row.path as string,
    directory: row.directory === 1,
    size: row.size as number,
    mode: row.mode as number,
    modifiedAt: new Date(row.modified_at as number),
  };
}
