/** What is in a folder of the host, and below it: links are shown for what they lead to, and never walked. */
import type { Stats } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { FileEntry } from "../core/platform.ts";
import { AppError } from "../errors.ts";
import type { LocalPaths, Located } from "./local-paths.ts";
import { failAs, replaced } from "./local-paths.ts";
import {
  compareEntries,
  comparePaths,
  joinPath,
  nameOf,
  notDirectory,
  SKIPPED_DIRECTORIES,
} from "./paths.ts";

/** Entries whose details are asked for at once while walking. */
const STAT_BATCH = 64;
/** Half-written files, which no listing shows. */
export const TEMPORARY_PREFIX = ".dragoman-write-";

function isTemporary(name: string): boolean {
  return name.startsWith(TEMPORARY_PREFIX);
}

export function toEntry(path: string, stats: Stats): FileEntry {
  const directory = stats.isDirectory();
  return {
    path,
    name: nameOf(path),
    directory,
    size: directory ? 0 : stats.size,
    // Node.js rounds it to milliseconds and Bun cuts it off, and both may look at the same file.
    modifiedAt: new Date(Math.floor(stats.mtimeMs)),
  };
}

export async function listDirectory(paths: LocalPaths, path: string): Promise<FileEntry[]> {
  const at = await paths.existing(path);
  if (!(await lstat(at.real).catch(failAs(at.path))).isDirectory()) throw notDirectory(at.path);
  const entries = await paths.pinned(at.real, at.path, async (base) => {
    const names = (await readdir(base)).filter((name) => !isTemporary(name));
    const found: FileEntry[] = [];
    for (let i = 0; i < names.length; i += STAT_BATCH) {
      const batch = names.slice(i, i + STAT_BATCH);
      const details = await Promise.all(batch.map((name) => describe(paths, at, base, name)));
      for (const entry of details) if (entry !== null) found.push(entry);
    }
    return found;
  });
  if (!(await paths.isReal(at.real))) throw replaced(at.path);
  return entries.sort(compareEntries);
}

async function describe(
  paths: LocalPaths,
  at: Located,
  base: string,
  name: string,
): Promise<FileEntry | null> {
  const stats = await lstat(join(base, name)).catch(() => null);
  if (stats === null) return null;
  const path = joinPath(at.path, name);
  if (!stats.isSymbolicLink()) return toEntry(path, stats);
  // A link inside the workspace shows what it leads to; any other is a file without content.
  const target = await paths.existing(path).catch(() => null);
  const behind = target === null ? null : await lstat(target.real).catch(() => null);
  return behind === null ? { ...toEntry(path, stats), size: 0 } : toEntry(path, behind);
}

export async function* walk(
  paths: LocalPaths,
  path: string,
  signal?: AbortSignal,
): AsyncGenerator<FileEntry, void, void> {
  const at = await paths.existing(path);
  if (!(await lstat(at.real).catch(failAs(at.path))).isDirectory()) throw notDirectory(at.path);
  yield* walkDirectory(paths, at, signal);
}

async function* walkDirectory(
  paths: LocalPaths,
  at: Located,
  signal?: AbortSignal,
): AsyncGenerator<FileEntry, void, void> {
  signal?.throwIfAborted();
  let waiting: WalkStep[] = await readForWalk(paths, at);
  while (waiting.length > 0) {
    const batch = waiting.slice(0, STAT_BATCH);
    waiting = waiting.slice(STAT_BATCH);
    const stats = await Promise.all(
      batch.map(({ name, directory }) => (directory ? null : lstat(join(at.real, name)).catch(() => null))),
    );
    for (const [index, { name, directory }] of batch.entries()) {
      signal?.throwIfAborted();
      const path = joinPath(at.path, name);
      const details = stats[index];
      if (directory) {
        const real = join(at.real, name);
        yield* walkDirectory(paths, { path, parent: at.real, real, exists: true }, signal);
      } else if (details?.isFile()) yield toEntry(path, details);
    }
  }
}

interface WalkStep {
  name: string;
  directory: boolean;
}

/** Files and directories to go through, in the order of their whole paths. */
async function readForWalk(paths: LocalPaths, at: Located): Promise<WalkStep[]> {
  try {
    const found = await paths.pinned(at.real, at.path, (base) => readdir(base, { withFileTypes: true }));
    const steps: WalkStep[] = [];
    for (const entry of found) {
      const directory = entry.isDirectory();
      const wanted = directory ? !SKIPPED_DIRECTORIES.has(entry.name) : !isTemporary(entry.name);
      if (wanted && (directory || entry.isFile())) steps.push({ name: entry.name, directory });
    }
    if (!(await paths.isReal(at.real))) return [];
    const key = (step: WalkStep) => (step.directory ? `${step.name}/` : step.name);
    return steps.sort((a, b) => comparePaths(key(a), key(b)));
  } catch (error) {
    // Removed, exchanged or closed to us since it was listed: the rest of the tree is still wanted.
    if (error instanceof AppError && ["not_found", "conflict", "forbidden"].includes(error.code)) return [];
    throw error;
  }
}
