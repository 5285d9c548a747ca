/** The workspace where no machine is: an owner's files as rows of the store, seen as if below `/workspace`. */
import type { FileEntry, Workspace } from "../core/platform.ts";
import type { FileRows, StoredFile } from "../core/store.ts";
import { AppError } from "../errors.ts";
import {
  compareEntries,
  isDirectory,
  nameOf,
  normalizePath,
  notDirectory,
  notFound,
  parentOf,
  quote,
  SKIPPED_DIRECTORIES,
} from "./paths.ts";

export const VIRTUAL_ROOT = "/workspace";
/** Bytes of one virtual file: a row travels to the database in one piece. */
export const MAX_VIRTUAL_FILE_BYTES = 10 * 1024 * 1024;
/** Rows fetched at once while walking. */
const WALK_PAGE = 500;
/** Sorts after every path below the directory it is appended to. */
const AFTER_ALL = "/\u{10ffff}";

const ROOT_ENTRY: FileEntry = { path: "", name: "", directory: true, size: 0, modifiedAt: new Date(0) };

export function createVirtualWorkspace(rows: FileRows, owner: string): Workspace {
  const normalize = (path: string) => normalizePath(path, [VIRTUAL_ROOT]);
  return {
    root: VIRTUAL_ROOT,
    async stat(path) {
      return await find(rows, owner, normalize(path));
    },
    async read(path, { offset = 0, limit } = {}) {
      const entry = await find(rows, owner, normalize(path));
      if (entry.directory) throw isDirectory(entry.path);
      const bytes = await rows.read(owner, entry.path);
      if (bytes === null) throw notFound(entry.path);
      return bytes.subarray(offset, limit === undefined ? undefined : offset + limit);
    },
    async write(path, bytes) {
      return await write(rows, owner, normalize(path), bytes);
    },
    async list(path) {
      const entry = await find(rows, owner, normalize(path));
      if (!entry.directory) throw notDirectory(entry.path);
      return (await rows.list(owner, entry.path)).map(toEntry).sort(compareEntries);
    },
    async *walk(path, signal) {
      yield* walk(rows, owner, normalize(path), signal);
    },
    async remove(path) {
      const entry = await find(rows, owner, normalize(path));
      if (entry.path === "") {
        throw new AppError("invalid_request", "The workspace itself cannot be removed.");
      }
      await rows.apply(owner, { remove: [entry.path], write: [], makeDirectories: [] });
    },
  };
}

function toEntry(row: StoredFile): FileEntry {
  const { path, directory, size, modifiedAt } = row;
  return { path, name: nameOf(path), directory, size: directory ? 0 : size, modifiedAt };
}

async function find(rows: FileRows, owner: string, path: string): Promise<FileEntry> {
  if (path === "") return ROOT_ENTRY;
  const row = await rows.stat(owner, path);
  if (row !== null) return toEntry(row);
  await refuseFileAbove(rows, owner, path);
  throw notFound(path);
}

/** A path that goes through a file is a mistake of another kind than a path that is not there. */
async function refuseFileAbove(rows: FileRows, owner: string, path: string): Promise<void> {
  for (let above = parentOf(path); above !== ""; above = parentOf(above)) {
    const row = await rows.stat(owner, above);
    if (row === null) continue;
    if (!row.directory) throw notDirectory(above);
    return;
  }
}

async function write(rows: FileRows, owner: string, path: string, bytes: Uint8Array): Promise<FileEntry> {
  if (path === "") throw isDirectory(path);
  refuseTooLarge(path, bytes.length);
  const before = await rows.stat(owner, path);
  if (before?.directory) throw isDirectory(path);
  if (before === null) await refuseFileAbove(rows, owner, path);
  const change = before === null ? { path, bytes } : { path, bytes, mode: before.mode };
  await rows.apply(owner, { remove: [], write: [change], makeDirectories: [] });
  return await find(rows, owner, path);
}

export function refuseTooLarge(path: string, size: number): void {
  if (size <= MAX_VIRTUAL_FILE_BYTES) return;
  throw new AppError(
    "payload_too_large",
    `${quote(path)} would have ${size} bytes; a file of this workspace may have ${MAX_VIRTUAL_FILE_BYTES}.`,
  );
}

async function* walk(
  rows: FileRows,
  owner: string,
  path: string,
  signal?: AbortSignal,
): AsyncGenerator<FileEntry, void, void> {
  const start = await find(rows, owner, path);
  if (!start.directory) throw notDirectory(path);
  let after: string | null = null;
  while (true) {
    signal?.throwIfAborted();
    const page: StoredFile[] = await rows.below(owner, path, after, WALK_PAGE);
    let jumped = false;
    for (const row of page) {
      after = row.path;
      const skipped = skippedAbove(row, path);
      if (skipped !== null) {
        after = skipped + AFTER_ALL;
        jumped = true;
        break;
      }
      if (row.directory) continue;
      yield toEntry(row);
      signal?.throwIfAborted();
    }
    if (!jumped && page.length < WALK_PAGE) return;
    // A database in a local file answers without ever leaving the event loop's turn.
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

/** The directory between `start` and a row that is not walked into, if there is one. */
function skippedAbove(row: StoredFile, start: string): string | null {
  let end = start.length === 0 ? -1 : start.length;
  while (true) {
    const next = row.path.indexOf("/", end + 1);
    if (next === -1) return null;
    if (SKIPPED_DIRECTORIES.has(row.path.slice(end + 1, next))) return row.path.slice(0, next);
    end = next;
  }
}
