/** Several processes on one file, and the violent end of one of them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text as readAll } from "node:stream/consumers";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { text } from "../../src/core/message.ts";
import { findPairingFault } from "../../src/core/pairing.ts";
import { closeDatabase } from "../../src/store/database.ts";
import { WriteQueue } from "../../src/store/write-queue.ts";
import { createFileBackend, openStore, type TestStore } from "./backends.ts";
import { history, resultOf } from "./run-records.ts";

const KILLS = 5;

let backend: Awaited<ReturnType<typeof createFileBackend>>;
let children: ChildProcess[];
beforeEach(async () => {
  backend = await createFileBackend();
  children = [];
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  await backend.close();
});

function run(script: string, ...args: string[]) {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [file, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  return child;
}

/** Collects the lines until it has as many, then kills the child and takes what was still on its way. */
async function killAfter(child: ReturnType<typeof run>, lines: number): Promise<string[]> {
  const seen: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    seen.push(line);
    if (seen.length === lines) child.kill("SIGKILL");
  }
  return seen;
}

async function said(store: TestStore, label: string) {
  const { id, lastSeq, messageCount } = await store.sessions.open("ann", label);
  const page = await store.sessions.page("ann", id, { limit: 100_000 });
  return { lastSeq, messageCount, seqs: page.map((entry) => entry.seq).reverse() };
}

it(`loses nothing that was acknowledged when a process is killed, ${KILLS} times`, async () => {
  const store = await openStore(backend);
  for (let kill = 0; kill < KILLS; kill++) {
    const acknowledged = await killAfter(run("appender.ts", backend.path, "crash"), 20 + 13 * kill);
    const { lastSeq, messageCount, seqs } = await said(store, "crash");
    expect(lastSeq).toBeGreaterThanOrEqual(Number(acknowledged.at(-1)));
    expect(messageCount).toBe(lastSeq);
    expect(seqs).toEqual(Array.from({ length: lastSeq }, (_, index) => index + 1));
  }
  const database = await backend.open();
  expect((await database.read.execute("PRAGMA integrity_check")).rows[0]?.integrity_check).toBe("ok");
  expect((await database.read.execute("PRAGMA foreign_key_check")).rows).toEqual([]);
  closeDatabase(database);
  await store.close();
});

it(`goes on with the run of a process that was killed, ${KILLS} times, with all that was acknowledged`, async () => {
  const store = await openStore(backend);
  store.clock.now = new Date();
  const soon = new Date(Date.now() + 60_000);
  for (let kill = 0; kill < KILLS; kill++) {
    const lines = await killAfter(run("runner.ts", backend.path, "runs", `p${kill}`), 20 + 7 * kill);
    const { lastSeq, messageCount, seqs } = await said(store, "runs");
    expect(messageCount).toBe(lastSeq);
    expect(seqs).toEqual(Array.from({ length: lastSeq }, (_, index) => index + 1));
    for (const line of lines) {
      const [what, id = "", seq] = line.split(" ");
      expect(lastSeq).toBeGreaterThanOrEqual(Number(seq));
      const record = await store.runs.get("ann", id);
      expect(record).not.toBeNull();
      const [call] = await store.runs.calls("ann", id);
      if (what === "called") expect(["started", "done"]).toContain(call?.state);
      if (what === "ended")
        expect([record?.status, record?.lastEvent, call?.state]).toEqual(["completed", 2, "done"]);
    }
    for (const id of await store.runs.abandoned(new Date(), 10)) {
      const record = await store.runs.takeOver(id, "survivor", new Date(), soon);
      expect(record).toMatchObject({ status: "running", recoveries: 1 });
      const missing = lastSeq - record!.historySeq === 1 ? [resultOf("c")] : [];
      const end = { status: "failed", stop: "stop" } as const;
      expect(await store.runs.commit("ann", id, "survivor", { messages: missing, end })).toBe(true);
    }
    const { id } = await store.sessions.open("ann", "runs");
    expect(findPairingFault(await history(store, "ann", id))).toBeNull();
  }
  expect((await store.sessions.list("ann", { query: "turn", limit: 5 })).sessions).toHaveLength(1);
  const database = await backend.open();
  for (const check of ["integrity_check", "foreign_key_check"]) {
    const { rows } = await database.read.execute(`PRAGMA ${check}`);
    expect([check, rows[0]?.[0] ?? "ok"]).toEqual([check, "ok"]);
  }
  await database.write.execute("INSERT INTO search_index (search_index) VALUES ('integrity-check')");
  closeDatabase(database);
  await store.close();
});

it("lets several processes write at once, itself among them", async () => {
  const store = await openStore(backend);
  const others = [run("appender.ts", backend.path, "p1"), run("appender.ts", backend.path, "p2")];
  const counts = Promise.all(others.map((child) => killAfter(child, 100)));
  const { id } = await store.sessions.open("ann", "own");
  for (let seq = 0; seq < 100; seq++)
    expect(await store.sessions.append("ann", id, seq, [{ role: "user", content: [text("x")] }])).toBe(
      seq + 1,
    );
  await counts;
  for (const label of ["p1", "p2"]) expect((await said(store, label)).lastSeq).toBeGreaterThanOrEqual(100);
  expect((await said(store, "own")).seqs).toHaveLength(100);
  await store.close();
});

it("waits for a writer in another process, keeps reading, and keeps all it acknowledged", async () => {
  const store = await openStore(backend);
  const { id } = await store.sessions.open("ann", "mine");
  const locker = run("locker.ts", pathToFileURL(backend.path).href);
  await once(locker.stdout, "data");
  const appends = Promise.all(
    [0, 1, 2].map((seq) => store.sessions.append("ann", id, seq, [{ role: "user", content: [text("x")] }])),
  );
  const meanwhile = await store.sessions.open("ann", id);
  expect(meanwhile.lastSeq).toBe(0);
  locker.stdin.end();
  expect(await appends).toEqual([1, 2, 3]);
  await store.close();
  const again = await openStore(backend);
  expect((await said(again, "mine")).seqs).toEqual([1, 2, 3]);
  await again.close();
});

it("gives up after its patience with a fault to retry on, stores nothing then, and recovers by itself", async () => {
  await (await openStore(backend)).close();
  const database = await backend.open();
  const queue = new WriteQueue(database, 100);
  const insert = (name: string) => ({
    sql: "INSERT INTO files VALUES ('ann', ?, '', 1, 0, 0, '', 0)",
    args: [name],
  });
  const locker = run("locker.ts", pathToFileURL(backend.path).href);
  await once(locker.stdout, "data");
  const results = await Promise.allSettled(["a", "b", "c"].map((name) => queue.batch([insert(name)])));
  for (const result of results)
    expect(result).toMatchObject({
      status: "rejected",
      reason: { code: "unavailable", status: 503, retryAfter: 1 },
    });
  locker.stdin.end();
  await once(locker, "exit");
  await queue.batch([insert("d")]);
  await expect(queue.batch([insert("e"), insert("d")])).rejects.toMatchObject({
    code: expect.stringMatching(/^SQLITE_CONSTRAINT/),
  });
  await queue.batch([insert("f")]);
  closeDatabase(database);
  const after = await backend.open();
  const { rows } = await after.read.execute("SELECT path FROM files ORDER BY path");
  expect(rows.map((row) => row.path)).toEqual(["d", "f"]);
  closeDatabase(after);
});

it("is migrated once by four processes that start together", async () => {
  const applied = await Promise.all(
    Array.from({ length: 4 }, () => readAll(run("migrator.ts", backend.path).stdout)),
  );
  const all = applied.flatMap((output) => JSON.parse(output) as string[]);
  expect(all.length).toBe(new Set(all).size);
  const store = await openStore(backend);
  await store.sessions.open("ann", "works");
  await store.close();
});
