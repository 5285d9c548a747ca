/** R3: any number of processes on one database, and jobs whose runs there are once. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createClient as createWebClient } from "@libsql/client/web";
import { afterEach, describe, expect, test } from "vitest";
import { closeDatabase, type Database, openRemoteDatabase } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { newSpec } from "../automation/records.ts";
import { hasSqld, sqldNote, startSqld } from "../sqld.ts";
import { createFileBackend, MIGRATIONS, storeOver } from "../store/backends.ts";
import { LIMIT_MS, times } from "./extent.ts";

const PROCESSES = 8;
const JOBS = times(80, 1_000);
/** With a process killed in the middle. */
const JOBS_KILLED = times(40, 400);
const TICKER = fileURLToPath(new URL("ticker.ts", import.meta.url));
/** Seconds; what a dead process has claimed is looked at after it. */
const LONG_LEASE = 60;
const SHORT_LEASE = 2;

/** Of the runs on a server, so many may lose their end at most. */
const UNSTORED_SHARE = 0.02;

/** Jobs made at once. */
const MADE_AT_ONCE = 20;

interface Place {
  kind: "file" | "server";
  name: string;
  available: boolean;
  create(): Promise<{ where: string; open(): Promise<Database>; close(): Promise<void> }>;
}

const PLACES: Place[] = [
  {
    ...{ kind: "file", name: "a file", available: true },
    async create() {
      const backend = await createFileBackend();
      return { where: backend.path, open: () => backend.open(), close: () => backend.close() };
    },
  },
  {
    ...{ kind: "server", name: `a libSQL server${sqldNote}`, available: hasSqld },
    async create() {
      const sqld = await startSqld();
      const open = async () => openRemoteDatabase({ url: sqld.url }, createWebClient);
      return { where: sqld.url, open, close: () => sqld.close() };
    },
  },
];

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

/** `asked`: the commands that models were given, one entry for each call. */
function ticker(where: string, lease: number, asked: string[], onAsked?: (child: ChildProcess) => void) {
  const child = spawn(process.execPath, [TICKER, where, String(lease)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  createInterface({ input: child.stdout }).on("line", (line) => {
    asked.push(line);
    onAsked?.(child);
  });
  return once(child, "close");
}

async function due(database: Database, count: number): Promise<void> {
  await migrate(database, MIGRATIONS);
  const store = storeOver(database);
  store.clock.now = new Date();
  const at = new Date(Date.now() - 1_000);
  const spec = (n: number) =>
    newSpec({ name: `job ${n}`, command: `command ${n}`, schedule: { kind: "once", at } });
  for (let from = 0; from < count; from += MADE_AT_ONCE)
    await Promise.all(
      Array.from({ length: Math.min(MADE_AT_ONCE, count - from) }, (_, n) =>
        store.automation.jobs.create("local", spec(from + n), { fingerprint: `f${from + n}`, nextAt: at }),
      ),
    );
}

async function rowsOf(database: Database, sql: string) {
  return (await database.read.execute(sql)).rows.map((row) => ({ ...row }));
}

describe.each(PLACES.filter(({ available }) => available))("R3: on $name", ({ kind, create }) => {
  test(
    `${PROCESSES} processes, ${JOBS} occurrences that are due: as many runs, each once`,
    async () => {
      const place = await create();
      const database = await place.open();
      await due(database, JOBS);
      const asked: string[] = [];
      const ended = await Promise.all(
        Array.from({ length: PROCESSES }, () => ticker(place.where, LONG_LEASE, asked)),
      );
      expect(ended.map(([code]) => code)).toEqual(Array(PROCESSES).fill(0));
      expect(asked.toSorted()).toEqual(Array.from({ length: JOBS }, (_, n) => `command ${n}`).toSorted());
      const [counts] = await rowsOf(
        database,
        `SELECT count(*) AS occurrences, count(DISTINCT o.job_id) AS jobs, count(DISTINCT r.id) AS runs,
          sum(o.fate IN ('ran', 'late') AND r.status = 'completed') AS ran,
          sum(o.fate = 'failed' AND r.status = 'failed' AND o.reason LIKE '%database%') AS unstored
          FROM occurrences AS o LEFT JOIN runs AS r ON r.id = o.run_id`,
      );
      expect(counts).toMatchObject({ occurrences: JOBS, jobs: JOBS, runs: JOBS });
      // A server with too much to do may refuse the end of a run: that is told, and it is not run again.
      const unstored = kind === "server" ? Number(counts?.unstored) : 0;
      expect(Number(counts?.ran) + unstored).toBe(JOBS);
      expect(unstored).toBeLessThanOrEqual(JOBS * UNSTORED_SHARE);
      expect(await rowsOf(database, "SELECT count(*) AS n FROM runs")).toEqual([{ n: JOBS }]);
      closeDatabase(database);
      await place.close();
    },
    LIMIT_MS,
  );

  test(
    `one of four killed among ${JOBS_KILLED}: every occurrence has one fate, and what was given up is reported`,
    async () => {
      const place = await create();
      const database = await place.open();
      await due(database, JOBS_KILLED);
      const asked: string[] = [];
      const doomed = ticker(place.where, SHORT_LEASE, asked, (child) => child.kill("SIGKILL"));
      const ended = await Promise.all([1, 2, 3].map(() => ticker(place.where, SHORT_LEASE, asked)));
      await doomed;
      expect(ended.map(([code]) => code)).toEqual([0, 0, 0]);
      const fates = await rowsOf(
        database,
        `SELECT o.fate, o.reason, o.look_at, r.status, r.recoveries FROM occurrences AS o
          LEFT JOIN runs AS r ON r.id = o.run_id`,
      );
      expect(fates).toHaveLength(JOBS_KILLED);
      for (const { fate, reason, look_at, status } of fates) {
        expect(look_at).toBeNull();
        if (fate === "failed") expect(String(reason)).toContain("The service stopped between");
        else expect([["ran", "late"].includes(String(fate)), status]).toEqual([true, "completed"]);
        if (fate === "failed") expect(status).toBeNull();
      }
      expect(fates.filter(({ fate }) => fate !== "failed").length).toBeGreaterThanOrEqual(JOBS_KILLED - 8);
      expect(await rowsOf(database, "SELECT count(*) AS n FROM runs WHERE status <> 'completed'")).toEqual([
        { n: 0 },
      ]);
      closeDatabase(database);
      await place.close();
    },
    LIMIT_MS,
  );
});
