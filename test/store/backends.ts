/** The two kinds of database that every repository has to behave alike on. */
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient as createWebClient } from "@libsql/client/web";
import type { Log } from "../../src/core/platform.ts";
import type { Store } from "../../src/core/store.ts";
import { createClient as createFileClient } from "../../src/platform/local-database.ts";
import { type Database, openFileDatabase, openRemoteDatabase } from "../../src/store/database.ts";
import { type Migration, migrate } from "../../src/store/migrations.ts";
import { createStore } from "../../src/store/store.ts";
import { hasSqld, sqldNote, startSqld } from "../sqld.ts";

const FOLDER = new URL("../../migrations/", import.meta.url);

export const MIGRATIONS: Migration[] = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".sql"))
  .map((name) => ({ name: name.slice(0, -".sql".length), sql: readFileSync(new URL(name, FOLDER), "utf8") }));

export interface Backend {
  /** Another pair of connections to the same database, as another process would have it. */
  open(): Promise<Database>;
  close(): Promise<void>;
}

export interface BackendKind {
  name: string;
  available: boolean;
  create(): Promise<Backend>;
}

export const BACKENDS: BackendKind[] = [
  { name: "a file", available: true, create: createFileBackend },
  { name: `a libSQL server${sqldNote}`, available: hasSqld, create: createServerBackend },
];

export async function createFileBackend(): Promise<Backend & { path: string }> {
  const folder = await mkdtemp(join(tmpdir(), "dragoman store #1 "));
  const path = join(folder, "dragoman.db");
  return {
    path,
    open: () => openFileDatabase(path, createFileClient),
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

export async function createServerBackend(): Promise<Backend> {
  const sqld = await startSqld();
  return {
    open: async () => openRemoteDatabase({ url: sqld.url }, createWebClient),
    close: () => sqld.close(),
  };
}

export interface TestStore extends Store {
  logged: Parameters<Log>[];
  clock: { now: Date };
}

/** A store on a migrated database with a clock that stands still until it is set. */
export async function openStore(backend: Backend): Promise<TestStore> {
  const database = await backend.open();
  await migrate(database, MIGRATIONS);
  return storeOver(database);
}

export function storeOver(database: Database): TestStore {
  const logged: Parameters<Log>[] = [];
  const clock = { now: new Date("2026-11-20T10:00:00.000Z") };
  const store = createStore({
    database,
    log: (...entry) => logged.push(entry),
    now: () => clock.now,
    background: (work) => void work,
  });
  return { ...store, logged, clock };
}
