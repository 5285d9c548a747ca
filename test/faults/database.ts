/** The databases that service processes share in the fault suites, looked at from outside. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Client, createClient as createFileClient } from "@libsql/client/sqlite3";
import { createClient as createWebClient } from "@libsql/client/web";
import { hasSqld, type Sqld, sqldNote, startSqld } from "../sqld.ts";

export interface SharedDatabase {
  kind: "file" | "server";
  /** A folder for DATA_DIR, WORKSPACE and what else a test leaves. */
  folder: string;
  env: Record<string, string>;
  sqld?: Sqld;
  /** A connection of the test's own; the caller closes it. */
  connect(): Client;
  /** Whatever is wrong with the database itself. */
  faults(): Promise<string[]>;
  /** As if all leases had run out. */
  expireLeases(): Promise<void>;
  close(): Promise<void>;
}

export interface DatabaseKind {
  name: string;
  available: boolean;
  create(): Promise<SharedDatabase>;
}

export const DATABASES: DatabaseKind[] = [
  { name: "a file", available: true, create: () => create(undefined) },
  { name: `a libSQL server${sqldNote}`, available: hasSqld, create: async () => create(await startSqld()) },
];

async function create(sqld: Sqld | undefined): Promise<SharedDatabase> {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-faults-"));
  const file = join(folder, "data", "dragoman.db");
  const connect = (): Client =>
    sqld
      ? createWebClient({ url: sqld.url })
      : createFileClient({ url: pathToFileURL(file).href, timeout: 5_000 });
  const using = async <T>(work: (client: Client) => Promise<T>): Promise<T> => {
    const client = connect();
    try {
      return await work(client);
    } finally {
      client.close();
    }
  };
  return {
    kind: sqld ? "server" : "file",
    ...{ folder, sqld, connect },
    env: {
      DATA_DIR: join(folder, "data"),
      WORKSPACE: join(folder, "workspace"),
      SECRET_KEY: "a-secret-that-all-processes-of-the-test-share",
      ...(sqld ? { LIBSQL_URL: sqld.url } : {}),
    },
    faults: () =>
      using(async (client) => {
        const found: string[] = [];
        for (const check of ["integrity_check", "foreign_key_check"]) {
          // A server keeps this to itself.
          if (sqld && check === "integrity_check") continue;
          for (const row of (await client.execute(`PRAGMA ${check}`)).rows)
            if (row[0] !== "ok") found.push(`${check}: ${JSON.stringify(row)}`);
        }
        return found;
      }),
    async expireLeases() {
      if (!sqld && !existsSync(file)) return;
      await using((client) => client.execute("UPDATE runs SET lease_until = 0 WHERE status = 'running'"));
    },
    async close() {
      await sqld?.close();
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}
