/**
 * A set of file changes as one batch of statements. Pure.
 *
 * What must hold afterwards is checked inside the batch: a guard is an update that matches only a row that breaks the
 * rule, and sets a column to NULL that may not be NULL, so that the whole batch is undone.
 */
import type { InStatement, InValue } from "@libsql/client/web";
import type { FileChanges } from "../core/store.ts";
import { AppError, type ErrorCode } from "../errors.ts";

/** One virtual file. */
export const FILE_LIMIT_BYTES = 10 * 1024 * 1024;
/** All virtual files of an owner. */
export const OWNER_LIMIT_BYTES = 256 * 1024 * 1024;
/** One row of content: a libSQL server takes values of just under 5,000,000 bytes. */
export const CHUNK_BYTES = 1024 * 1024;
const PATH_LIMIT = 1024;
/** Paths in one parameter. */
const PATHS_AT_ONCE = 1000;

const FILE_MODE = 0o644;
const DIRECTORY_MODE = 0o755;

export interface FileBatch {
  statements: InStatement[];
  /** Statement number -> what is wrong when it fails. */
  guards: Map<number, { code: ErrorCode; message: string }>;
}

const REMOVE_ALL = "DELETE FROM files WHERE owner = ?";
const REMOVE = "DELETE FROM files WHERE owner = ? AND path = ?";
const REMOVE_BELOW = "DELETE FROM files WHERE owner = ? AND path > ? AND path < ?";
const MAKE_DIRECTORIES = `INSERT INTO files (owner, path, parent, directory, size, mode, revision, modified_at)
  SELECT ?, value ->> 0, value ->> 1, 1, 0, ${DIRECTORY_MODE}, '', ? FROM json_each(?) WHERE true
  ON CONFLICT (owner, path) DO NOTHING`;
const ONLY_DIRECTORIES = `UPDATE files SET size = NULL WHERE owner = ? AND directory = 0
  AND path IN (SELECT value ->> 0 FROM json_each(?))`;
const WRITE = `INSERT INTO files (owner, path, parent, directory, size, mode, revision, modified_at)
  VALUES (?, ?, ?, 0, ?, coalesce(?, ${FILE_MODE}), ?, ?)
  ON CONFLICT (owner, path) DO UPDATE SET size = excluded.size, mode = coalesce(?, mode),
  revision = excluded.revision, modified_at = excluded.modified_at`;
const ONLY_FILE = "UPDATE files SET size = NULL WHERE owner = ? AND path = ? AND directory = 1";
const REMOVE_CHUNKS = "DELETE FROM file_chunks WHERE owner = ? AND path = ?";
const WRITE_CHUNK = "INSERT INTO file_chunks (owner, path, chunk, bytes) VALUES (?, ?, ?, ?)";
const WITHIN_LIMIT = `UPDATE files SET size = NULL WHERE owner = ? AND path = ?
  AND (SELECT sum(size) FROM files WHERE owner = ?) > ${OWNER_LIMIT_BYTES}`;

/** Throws AppError `invalid_request` for a path that is none, or for changes that contradict each other. */
export function planChanges(owner: string, changes: FileChanges, at: number): FileBatch {
  const plan = new Plan(owner);
  const files = new Map<string, FileChanges["write"][number]>();
  for (const file of changes.write)
    files.set(file.path, { ...file, mode: file.mode ?? files.get(file.path)?.mode });
  const directories = directoriesOf(changes);
  for (const path of files.keys()) if (directories.has(path)) throw wrongKind(path);
  removals(changes.remove, plan);
  makeDirectories(directories, at, plan);
  for (const file of files.values()) writeFile(file, at, plan);
  const last = changes.write.at(-1);
  if (last !== undefined)
    plan.guard(WITHIN_LIMIT, [last.path, owner], {
      code: "storage_full",
      message:
        "The workspace is full: all files together may have 256 MiB. Remove some; nothing was changed.",
    });
  return plan;
}

class Plan implements FileBatch {
  readonly owner: string;
  readonly statements: InStatement[] = [];
  readonly guards: FileBatch["guards"] = new Map();

  constructor(owner: string) {
    this.owner = owner;
  }

  /** Every statement has the owner as its first parameter. */
  add(sql: string, args: InValue[]): void {
    this.statements.push({ sql, args: [this.owner, ...args] });
  }

  guard(sql: string, args: InValue[], otherwise: { code: ErrorCode; message: string }): void {
    this.guards.set(this.statements.length, otherwise);
    this.add(sql, args);
  }
}

function removals(paths: string[], plan: Plan): void {
  const everything = paths.includes("");
  if (everything) plan.add(REMOVE_ALL, []);
  for (const path of everything ? [] : new Set(paths)) {
    checkPath(path);
    plan.add(REMOVE, [path]);
    // `0` follows `/`.
    plan.add(REMOVE_BELOW, [`${path}/`, `${path}0`]);
  }
}

function makeDirectories(directories: Set<string>, at: number, plan: Plan): void {
  const rows = Array.from(directories, (path) => [path, parentOf(path)]);
  for (let from = 0; from < rows.length; from += PATHS_AT_ONCE) {
    const json = JSON.stringify(rows.slice(from, from + PATHS_AT_ONCE));
    plan.add(MAKE_DIRECTORIES, [at, json]);
    plan.guard(ONLY_DIRECTORIES, [json], {
      code: "invalid_request",
      message: "A file has the name that a folder needs. Remove it first, or choose another path.",
    });
  }
}

function writeFile(file: FileChanges["write"][number], at: number, plan: Plan): void {
  const { path, bytes } = file;
  checkPath(path);
  if (bytes.byteLength > FILE_LIMIT_BYTES)
    throw new AppError("payload_too_large", `${path} is larger than the 10 MiB that a file here may have.`);
  const mode = file.mode === undefined ? null : file.mode & 0o7777;
  plan.add(WRITE, [path, parentOf(path), bytes.byteLength, mode, crypto.randomUUID(), at, mode]);
  plan.guard(ONLY_FILE, [path], { code: "invalid_request", message: wrongKind(path).message });
  plan.add(REMOVE_CHUNKS, [path]);
  for (let from = 0; from < bytes.byteLength; from += CHUNK_BYTES)
    plan.add(WRITE_CHUNK, [path, from / CHUNK_BYTES, bytes.subarray(from, from + CHUNK_BYTES)]);
}

/** What has to be a directory afterwards: those asked for, and every ancestor. */
function directoriesOf(changes: FileChanges): Set<string> {
  const out = new Set<string>();
  const addUp = (path: string) => {
    for (let at = path; at !== "" && !out.has(at); at = parentOf(at)) out.add(at);
  };
  for (const path of changes.makeDirectories) {
    if (path === "") continue;
    checkPath(path);
    addUp(path);
  }
  for (const file of changes.write) addUp(parentOf(file.path));
  return out;
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}

function checkPath(path: string): void {
  const proper =
    path.length <= PATH_LIMIT &&
    !path.includes("\0") &&
    path.isWellFormed() &&
    path.split("/").every((name) => name !== "" && name !== "." && name !== "..");
  if (!proper)
    throw new AppError(
      "invalid_request",
      "A path here is relative, without `.`, `..` or NUL, and at most 1,024 characters long.",
    );
}

function wrongKind(path: string): AppError {
  return new AppError("invalid_request", `${path} is a folder. Remove it first, or choose another path.`);
}
