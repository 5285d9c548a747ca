/** What has become of the files below a directory of the workspace, by their sizes and times. */
import type { Workspace } from "../core/platform.ts";
import type { Look } from "../core/watch.ts";
import { AppError } from "../errors.ts";
import { wrong } from "./cron-change.ts";
import { digestOf } from "./watch-digest.ts";

/** Files that one watchdog keeps in mind. */
export const FILES_LIMIT = 50_000;
/** Names that a finding lists of each kind, and characters of one. */
const NAMES_SHOWN = 100;
const NAME_SHOWN = 300;

/** Path and what is known of it. Pairs, since a path may be any word, `__proto__` too. */
type Files = [path: string, mark: string][];

/** Throws AppError `invalid_request` for what is outside the workspace, or a file (E2). */
export async function checkDirectory(files: Workspace, directory: string): Promise<void> {
  try {
    const entry = await files.stat(directory);
    if (!entry.directory) throw wrong("directory", `${directory} is a file. Name the directory it is in.`);
  } catch (error) {
    if (!(error instanceof AppError) || error.code === "unavailable") throw error;
    // It may be made later: until then it has no files.
    if (error.code === "not_found") return;
    throw error.param === "directory" ? error : wrong("directory", error.message);
  }
}

export async function lookAtDirectory(
  workspace: Workspace,
  directory: string,
  matches: (path: string) => boolean,
  kept: Record<string, unknown> | null,
  signal: AbortSignal,
): Promise<Look> {
  const files = await filesOf(workspace, directory, matches, signal);
  const digest = await digestOf(JSON.stringify(files));
  const before = new Map((kept?.files as Files | undefined) ?? []);
  // In a directory that is closed to us nothing is seen, and nothing is gone: then this throws.
  if (files.length === 0 && before.size > 0) await workspace.list(directory).catch(passNotFound);
  return { digest, kept: { files }, finding: findingOf(directory, before, files) };
}

async function filesOf(
  workspace: Workspace,
  directory: string,
  matches: (path: string) => boolean,
  signal: AbortSignal,
): Promise<Files> {
  const files: Files = [];
  try {
    const { path: root } = await workspace.stat(directory);
    const skipped = root === "" || root === "." ? 0 : root.length + 1;
    for await (const { path, size, modifiedAt } of workspace.walk(directory, signal)) {
      const name = path.slice(skipped);
      if (!matches(name)) continue;
      if (files.length === FILES_LIMIT)
        throw new AppError(
          "invalid_request",
          `There are more than ${FILES_LIMIT} files below ${directory}. Watch a directory further down, or narrow it with pattern.`,
        );
      files.push([name, `${size.toString(36)}.${modifiedAt.getTime().toString(36)}`]);
    }
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return [];
    throw error;
  }
  signal.throwIfAborted();
  return files;
}

function passNotFound(error: unknown): void {
  if (!(error instanceof AppError) || error.code !== "not_found") throw error;
}

function findingOf(directory: string, before: Map<string, string>, files: Files): string | null {
  const made: string[] = [];
  const changed: string[] = [];
  const gone = new Map(before);
  for (const [path, mark] of files) {
    const old = before.get(path);
    if (old === undefined) made.push(path);
    else if (old !== mark) changed.push(path);
    gone.delete(path);
  }
  const kinds = [
    ["made", made],
    ["changed", changed],
    ["deleted", [...gone.keys()]],
  ] as const;
  const lines = kinds.flatMap(([kind, paths]) => (paths.length === 0 ? [] : [lineOf(kind, paths)]));
  return lines.length === 0 ? null : [`Files below ${directory}:`, ...lines].join("\n");
}

function lineOf(kind: string, paths: readonly string[]): string {
  const shown = paths
    .slice(0, NAMES_SHOWN)
    .map((path) => JSON.stringify(path.slice(0, NAME_SHOWN).toWellFormed()));
  const more = paths.length - shown.length;
  return `${kind} (${paths.length}): ${shown.join(", ")}${more > 0 ? `, and ${more} more` : ""}`;
}
