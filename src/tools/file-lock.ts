/** Changes of one file one after another: a model calls tools in parallel, and an edit reads before it writes. */
import type { Workspace } from "../core/platform.ts";

/** Milliseconds that a change waits for another one. One whose request was cut off may never report its end. */
const MAX_WAIT_MS = 10_000;

const waiting = new Map<string, Promise<void>>();

export async function withFileLock<T>(files: Workspace, path: string, work: () => Promise<T>): Promise<T> {
  const key = `${files.root}\0${plain(files.root, path)}`;
  const before = waiting.get(key);
  const { promise: done, resolve: finish } = Promise.withResolvers<void>();
  const mine = before === undefined ? done : Promise.all([before, done]).then(() => {});
  waiting.set(key, mine);
  try {
    if (before !== undefined) await inTime(before);
    return await work();
  } finally {
    finish();
    if (waiting.get(key) === mine) waiting.delete(key);
  }
}

async function inTime(before: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, MAX_WAIT_MS);
  await Promise.race([before, promise]);
  clearTimeout(timer);
}

/** The usual spellings of one path as one key. A miss costs the lock, not the check: the workspace resolves by itself. */
function plain(root: string, path: string): string {
  const relative = path.startsWith(`${root}/`) ? path.slice(root.length) : path;
  return relative
    .split("/")
    .filter((segment) => segment !== "" && segment !== ".")
    .join("/");
}
