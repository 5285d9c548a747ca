/** Workspace paths: one spelling for each file, and no spelling for anything outside the root. */
import { AppError } from "../errors.ts";

/** What Linux and macOS take for one name; virtual workspaces keep to it so that files can move between both. */
const MAX_NAME_BYTES = 255;
const MAX_PATH_CHARS = 1_024;

/** Directories that {@link Workspace.walk} does not enter: large, and not written by anyone who reads them. */
export const SKIPPED_DIRECTORIES: ReadonlySet<string> = new Set([".git", "node_modules"]);

const encoder = new TextEncoder();

/**
 * The relative, `/`-separated form of a path; the empty string is the root. An absolute path counts when it is one
 * of `roots` or lies below one. Symlinks are not looked at.
 * @throws AppError `invalid_request` for NUL, lone surrogates, names that are too long, and paths that leave the root.
 */
export function normalizePath(path: string, roots: readonly string[]): string {
  if (path.includes("\0")) throw new AppError("invalid_request", "A path must not hold a NUL character.");
  if (!path.isWellFormed()) throw new AppError("invalid_request", "A path must be valid Unicode.");
  if (!path.startsWith("/")) return joinSegments(path);
  const absolute = `/${joinSegments(path)}`;
  for (const root of roots) {
    if (absolute === root) return "";
    const prefix = root.endsWith("/") ? root : `${root}/`;
    if (absolute.startsWith(prefix)) return absolute.slice(prefix.length);
  }
  throw outside(path);
}

function joinSegments(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "" || segment === ".") continue;
    if (segment === "..") {
      if (kept.pop() === undefined) throw outside(path);
      continue;
    }
    if (segment.length * 3 > MAX_NAME_BYTES && encoder.encode(segment).length > MAX_NAME_BYTES) {
      throw new AppError("invalid_request", `A file name must not be longer than ${MAX_NAME_BYTES} bytes.`);
    }
    kept.push(segment);
  }
  const joined = kept.join("/");
  if (joined.length > MAX_PATH_CHARS) {
    throw new AppError("invalid_request", `A path must not be longer than ${MAX_PATH_CHARS} characters.`);
  }
  return joined;
}

export function outside(path: string): AppError {
  return new AppError(
    "invalid_request",
    `The path ${quote(path)} leads out of the workspace. Use a path inside it.`,
  );
}

export function notFound(path: string): AppError {
  return new AppError("not_found", `There is no file or directory ${quote(path)} in the workspace.`);
}

export function isDirectory(path: string): AppError {
  return new AppError("invalid_request", `${quote(path)} is a directory; a file is needed here.`);
}

export function notDirectory(path: string): AppError {
  return new AppError("invalid_request", `${quote(path)} is not a directory.`);
}

/** A path as it stands in a sentence: the root as `.`, and nothing so long that it hides the sentence. */
export function quote(path: string): string {
  const shown = path === "" ? "." : path;
  return JSON.stringify(shown.length > 200 ? `${shown.slice(0, 200)}…` : shown);
}

export function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function joinPath(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}

/** The order of paths everywhere: by code point, which is the order of their UTF-8 bytes and so of a database. */
export function comparePaths(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // UTF-16 puts surrogates below U+E000 to U+FFFF; code points put them above.
    const xHigh = x >= 0xd800 && x <= 0xdfff;
    const yHigh = y >= 0xd800 && y <= 0xdfff;
    if (xHigh !== yHigh) return xHigh ? 1 : -1;
    return x - y;
  }
  return a.length - b.length;
}

/** Folders first, then by name. */
export function compareEntries(
  a: { name: string; directory: boolean },
  b: { name: string; directory: boolean },
): number {
  if (a.directory !== b.directory) return a.directory ? -1 : 1;
  return comparePaths(a.name, b.name);
}
