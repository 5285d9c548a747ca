import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { UsageRow } from "../../src/core/store.ts";
import { closeDatabase, type Database } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { createUsageLog } from "../../src/store/usage.ts";
import { WriteQueue } from "../../src/store/write-queue.ts";
import { BACKENDS, type Backend, createFileBackend, MIGRATIONS } from "./backends.ts";

const row = (owner: string, more: Partial<UsageRow> = {}): UsageRow => ({
  owner,
  runId: "run_1",
  door: "messages",
  provider: "openai",
  model: "gpt",
  outcome: "completed",
  steps: 2,
  usage: { input: 10, output: 5 },
  durationMs: 12.6,
  ...more,
});
const now = () => new Date(1_000);
const rowsOf = async (database: Database, owner: string) =>
  (await database.read.execute({ sql: "SELECT * FROM usage WHERE owner = ? ORDER BY rowid", args: [owner] }))
    .rows;

describe.each(BACKENDS)("usage on $name", ({ available, create }) => {
  let backend: Backend;
  let database: Database;
  beforeAll(async () => {
    if (!available) return;
    backend = await create();
    database = await backend.open();
    await migrate(database, MIGRATIONS);
  });
  afterAll(async () => {
    if (database) closeDatabase(database);
    await backend?.close();
  });

  it.runIf(available)("writes what was recorded, together and in the background", async () => {
    const works: Promise<unknown>[] = [];
    const queue = new WriteQueue(database);
    const batch = vi.spyOn(queue, "batch");
    const log = createUsageLog(queue, { log: () => {}, now, background: (work) => works.push(work) });
    for (let index = 0; index < 3; index++) log.record(row("ann", { runId: `run_${index}` }));
    log.record(row("bob", { usage: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, reasoning: 5 } }));
    await Promise.all(works);
    expect(batch).toHaveBeenCalledTimes(1);
    expect((await rowsOf(database, "ann")).map((stored) => stored.run_id)).toEqual([
      "run_0",
      "run_1",
      "run_2",
    ]);
    const [stored] = await rowsOf(database, "bob");
    expect({ ...stored }).toEqual({
      id: expect.any(String),
      owner: "bob",
      run_id: "run_1",
      door: "messages",
      provider: "openai",
      model: "gpt",
      outcome: "completed",
      steps: 2,
      input_tokens: 1,
      output_tokens: 2,
      cache_read_tokens: 3,
      cache_write_tokens: 4,
      reasoning_tokens: 5,
      duration_ms: 13,
      created_at: 1_000,
    });
  });

  it.runIf(available)("does not wait once there are many, and takes odd counts and names", async () => {
    const works: Promise<unknown>[] = [];
    const background = (work: Promise<unknown>) => void works.push(work);
    const queue = new WriteQueue(database);
    const log = createUsageLog(queue, { log: () => {}, now, background, waitMs: 2 ** 30 });
    for (let index = 0; index < 450; index++)
      log.record(
        row("eve", { model: `\0\ud800${"m".repeat(5_000)}`, usage: { input: Number.NaN, output: 1.5 } }),
      );
    await Promise.all(works.filter((_, index) => index % 200 === 199));
    await log.flush();
    const stored = await rowsOf(database, "eve");
    expect(stored).toHaveLength(450);
    expect(stored[0]).toMatchObject({ model: `\ufffd${"m".repeat(198)}`, input_tokens: 0, output_tokens: 2 });
  });
});

it("keeps the newest rows while the database fails, says so once, and goes on by itself", async () => {
  const backend = await createFileBackend();
  const database = await backend.open();
  const entries: unknown[] = [];
  const options = {
    now,
    background: (work: Promise<unknown>) => void work,
    log: (...entry: unknown[]) => entries.push(entry),
    waitMs: 2 ** 30,
  };
  const log = createUsageLog(new WriteQueue(database), options);
  for (let index = 0; index < 10_300; index++) log.record(row("ann", { steps: index }));
  await log.flush();
  await log.flush();
  expect(entries).toEqual([["warning", expect.any(String), { reason: expect.stringContaining("tables") }]]);
  await migrate(database, MIGRATIONS);
  log.record(row("ann", { steps: 99 }));
  await log.flush();
  await log.flush();
  const stored = (await rowsOf(database, "ann")).map((one) => one.steps);
  expect(entries[1]).toEqual(["info", "Usage is recorded again.", { lost: 10_301 - stored.length }]);
  expect(stored).toHaveLength(10_000);
  expect(stored).toContain(99);
  closeDatabase(database);
  await backend.close();
});

it("a wait whose row has been written leaves younger rows to theirs, so that they are written together", async () => {
  vi.useFakeTimers();
  try {
    const batch = vi.fn(async () => []);
    const options = { log: () => {}, now, background: (work: Promise<unknown>) => void work, waitMs: 100 };
    const log = createUsageLog({ batch } as unknown as WriteQueue, options);
    log.record(row("a"));
    await vi.advanceTimersByTimeAsync(60);
    log.record(row("b"));
    await vi.advanceTimersByTimeAsync(50);
    expect(batch).toHaveBeenCalledTimes(1);
    log.record(row("c"));
    await vi.advanceTimersByTimeAsync(60);
    log.record(row("d"));
    expect(batch).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(40);
    expect(batch).toHaveBeenCalledTimes(2);
  } finally {
    vi.useRealTimers();
  }
});
