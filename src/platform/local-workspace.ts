/**
 * The workspace on a host: a folder that no path leads out of. A path is resolved through its symlinks first. Its
 * directory is then held open, and what is opened in it is compared with what lies there, so that a link swapped in
 * between is noticed before a byte is read or written.
 */
import type { Stats } from "node:fs";
import { constants, fstatSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { lstat, open, rename, rm, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { FileEntry, Workspace } from "../core/platform.ts";
import { AppError } from "../errors.ts";
import { listDirectory, TEMPORARY_PREFIX, toEntry, walk } from "./local-listing.ts";
import type { LocalPaths, Located } from "./local-paths.ts";
import { createLocalPaths, replaced, statsAt } from "./local-paths.ts";
import { isDirectory, notFound, outside, quote } from "./paths.ts";

/** Bytes that one read without a `limit` returns at most; a larger file is read in ranges. */
const MAX_READ_BYTES = 64 * 1024 * 1024;
const NEW_FILE_MODE = 0o666;
const PERMISSION_BITS = 0o777;

/** Makes the folder where it is missing. */
export function createLocalWorkspace(root: string): Workspace {
  const paths = createLocalPaths(root);
  return {
    root: paths.root,
    stat: (path) => statPath(paths, path),
    read: (path, range) => readFile(paths, path, range ?? {}),
    write: (path, bytes) => writeFile(paths, path, bytes),
    list: (path) => listDirectory(paths, path),
    walk: (path, signal) => walk(paths, path, signal),
    remove: (path) => remove(paths, path),
  };
}

async function statPath(paths: LocalPaths, path: string): Promise<FileEntry> {
  const at = await paths.existing(path);
  const stats = statsAt(at.real);
  if (stats === null) throw notFound(at.path);
  // Resolved a moment ago, so a link here now was put there since.
  if (stats.isSymbolicLink()) throw outside(path);
  return toEntry(at.path, stats);
}

async function readFile(
  paths: LocalPaths,
  path: string,
  { offset = 0, limit }: { offset?: number; limit?: number },
): Promise<Uint8Array> {
  const at = await paths.existing(path);
  if (at.real === paths.root) throw isDirectory(at.path);
  return await paths.pinned(at.parent, at.path, async (base) => {
    const place = join(base, basename(at.real));
    // O_NONBLOCK: opening a FIFO must not wait for its writer.
    const handle = await open(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = fstatSync(handle.fd);
      await confirm(paths, at, stats, place);
      if (stats.isDirectory()) throw isDirectory(at.path);
      if (!stats.isFile()) throw notRegular(at.path);
      const length = Math.max(0, Math.min(stats.size - offset, limit ?? Number.POSITIVE_INFINITY));
      if (length > MAX_READ_BYTES) {
        throw new AppError(
          "payload_too_large",
          `${quote(at.path)} has ${stats.size} bytes; read at most ${MAX_READ_BYTES} at once.`,
        );
      }
      return await readExactly(handle, offset, length);
    } finally {
      await handle.close();
    }
  });
}

async function readExactly(handle: FileHandle, offset: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, offset + filled);
    if (bytesRead === 0) return bytes.subarray(0, filled);
    filled += bytesRead;
  }
  return bytes;
}

/** The opened file must be the one at the place it was opened at, and its directory still inside the root. */
async function confirm(paths: LocalPaths, at: Located, opened: Stats, place: string): Promise<void> {
  const there = statsAt(place);
  const same = there !== null && there.ino === opened.ino && there.dev === opened.dev;
  if (!same || !(await paths.isReal(at.parent))) throw replaced(at.path);
}

function notRegular(path: string): AppError {
  return new AppError("invalid_request", `${quote(path)} is not a regular file.`);
}

async function writeFile(paths: LocalPaths, path: string, bytes: Uint8Array): Promise<FileEntry> {
  const at = await paths.locate(path).catch(async (error) => {
    if (!(error instanceof AppError) || error.code !== "not_found") throw error;
    await paths.makeParents(path);
    return paths.locate(path);
  });
  if (at.real === paths.root) throw isDirectory(at.path);
  return await paths.pinned(at.parent, at.path, async (base) => {
    const place = join(base, basename(at.real));
    const before = at.exists ? await lstat(place) : null;
    if (before?.isDirectory()) throw isDirectory(at.path);
    if (before !== null && !before.isFile()) throw notRegular(at.path);
    const mode = before === null ? null : before.mode & PERMISSION_BITS;
    return toEntry(at.path, await replace(paths, at, base, place, bytes, mode));
  });
}

/** A complete file beside the old one, then the name moves over. */
async function replace(
  paths: LocalPaths,
  at: Located,
  base: string,
  place: string,
  bytes: Uint8Array,
  mode: number | null,
): Promise<Stats> {
  const temporary = join(base, `${TEMPORARY_PREFIX}${crypto.randomUUID()}`);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await open(temporary, flags, NEW_FILE_MODE);
  let renamed = false;
  try {
    await confirm(paths, at, await handle.stat(), temporary);
    await handle.writeFile(bytes);
    if (mode !== null) await handle.chmod(mode);
    // Without it a power cut after the rename can leave an empty file where there was a full one.
    await handle.datasync();
    await rename(temporary, place);
    renamed = true;
    return await handle.stat();
  } finally {
    await handle.close();
    if (!renamed) await unlink(temporary).catch(() => {});
  }
}

async function remove(paths: LocalPaths, path: string): Promise<void> {
  const normal = paths.normalize(path);
  if (normal === "") throw new AppError("invalid_request", "The workspace itself cannot be removed.");
  const place = await paths.entry(normal);
  await paths.pinned(dirname(place), normal, async (base) => {
    const entry = join(base, basename(place));
    await lstat(entry);
    await rm(entry, { recursive: true });
  });
}
