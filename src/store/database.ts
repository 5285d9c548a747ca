/**
 * The two connections that the store works with, and how they are opened. The platform brings `createClient`, so that
 * the native client is never loaded where there is no file.
 */
import type { Client, Config } from "@libsql/client/web";
import { isBusy, toStoreFault } from "./faults.ts";

export interface Database {
  readonly kind: "file" | "remote";
  /** What one request has sent may end with it, unanswered, and others may not wait for it: on Workers. */
  readonly requestBound?: boolean | undefined;
  /** Used by the write queue alone. */
  readonly write: Connection;
  readonly read: Connection;
}

/** What the store uses of a client. Values of rows are read by name. */
export type Connection = Pick<Client, "execute" | "batch" | "migrate" | "reconnect" | "close" | "closed">;

export type CreateClient = (config: Config) => Connection;

/**
 * How long SQLite itself waits for a lock, in milliseconds. It blocks the event loop meanwhile, so it is short, and the
 * write queue waits the longer time between its attempts.
 */
const LOCK_WAIT_MS = 50;
/** Memory for pages of the file. KiB. */
const CACHE_KIB = 16_384;
/** Pages in the log before they are moved into the file, which waits for the disk; the file keeps the last of each alone. */
const LOG_PAGES = 4_000;
const WAL_ATTEMPTS = 100;
const WAL_PAUSE_MS = 10;
/** A server that has not answered by then counts as unreachable. Milliseconds. */
const ANSWER_WAIT_MS = 15_000;

/**
 * Opens the file, making it when it is not there; its directory has to exist. Throws AppError `unavailable`. One
 * connection for writing, one for reading: more of them gain nothing, since each statement is synchronous.
 */
export async function openFileDatabase(path: string, createClient: CreateClient): Promise<Database> {
  const url = `file:${encodeURI(path).replaceAll("?", "%3F").replaceAll("#", "%23")}`;
  const config: Config = { url, concurrency: 1, timeout: LOCK_WAIT_MS };
  let write: Connection | undefined;
  try {
    write = createClient(config);
    await enterWal(write);
    await tuneWriter(write);
    return { kind: "file", write, read: createClient(config) };
  } catch (error) {
    write?.close();
    throw toStoreFault(error);
  }
}

/** Opens a libSQL server. Nothing is sent before the first statement. `createClient` is that of `@libsql/client/web`. */
export function openRemoteDatabase(
  options: { url: string; authToken?: string | undefined; requestBound?: boolean | undefined },
  createClient: CreateClient,
): Database {
  const client = createClient({
    url: options.url,
    ...(options.authToken ? { authToken: options.authToken } : {}),
    // A limit would make one request wait for another, which workerd does not allow.
    concurrency: Number.POSITIVE_INFINITY,
    fetch: (request: Request) => fetch(request, { signal: AbortSignal.timeout(ANSWER_WAIT_MS) }),
  });
  return { kind: "remote", requestBound: options.requestBound, write: client, read: client };
}

/** Per connection, so it is said again after every reconnect. A killed process loses nothing with NORMAL under WAL. */
export async function tuneWriter(write: Connection): Promise<void> {
  await write.execute("PRAGMA synchronous = NORMAL");
  await write.execute(`PRAGMA cache_size = -${CACHE_KIB}`);
  await write.execute(`PRAGMA wal_autocheckpoint = ${LOG_PAGES}`);
}

/** The journal mode stays with the file. Changing it needs the file for itself and does not wait, so it is tried anew. */
async function enterWal(write: Connection): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { rows } = await write.execute("PRAGMA journal_mode = WAL");
      if (rows[0]?.journal_mode === "wal") return;
      throw new Error(
        `The database file does not take write-ahead logging: ${String(rows[0]?.journal_mode)}.`,
      );
    } catch (error) {
      if (!isBusy(error) || attempt === WAL_ATTEMPTS) throw error;
      await write.reconnect();
      await new Promise((resolve) => setTimeout(resolve, WAL_PAUSE_MS));
    }
  }
}

export function closeDatabase(database: Database): void {
  if (!database.write.closed) database.write.close();
  if (!database.read.closed) database.read.close();
}
