/** Batches that come together share a transaction; each still stands or falls by itself. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { closeDatabase, type Database } from "../../src/store/database.ts";
import { Reader } from "../../src/store/reader.ts";
import { WriteQueue } from "../../src/store/write-queue.ts";
import { BACKENDS, type Backend } from "./backends.ts";

const insert = (id: number, word = "x") => ({
  sql: "INSERT INTO things (id, word) VALUES (?, ?) RETURNING id",
  args: [id, word],
});

describe.each(BACKENDS.filter(({ available }) => available))("the write queue on $name", ({ create }) => {
  let backend: Backend;
  let database: Database;
  let queue: WriteQueue;
  /** How many statements each transaction had. */
  let sizes: number[];
  /** Thrown in place of the next transaction, once. */
  let fault: Error | undefined;
  /** What the next transactions wait for. */
  let gate: Promise<void> | undefined;
  let openQueue: (more?: { requestBound?: boolean; patienceMs?: number }) => WriteQueue;

  beforeEach(async () => {
    backend = await create();
    database = await backend.open();
    sizes = [];
    fault = undefined;
    gate = undefined;
    const { batch } = database.write;
    const write = new Proxy(database.write, {
      get(target, name) {
        if (name !== "batch") {
          const value = Reflect.get(target, name);
          return typeof value === "function" ? value.bind(target) : value;
        }
        return async (...args: Parameters<typeof batch>) => {
          sizes.push(args[0].length);
          const thrown = fault;
          fault = undefined;
          if (thrown) throw thrown;
          await gate;
          return batch.apply(target, args);
        };
      },
    });
    openQueue = ({ requestBound, patienceMs } = {}) =>
      new WriteQueue({ ...database, write, requestBound }, patienceMs);
    queue = openQueue();
    await queue.batch(["CREATE TABLE things (id integer PRIMARY KEY, word text NOT NULL)"]);
    sizes.length = 0;
  });
  afterEach(async () => {
    await queue.drain();
    closeDatabase(database);
    await backend.close();
  });

  const ids = async () =>
    (await new Reader(database).rows("SELECT id FROM things ORDER BY id")).map((row) => row.id);

  test("those that come together are one transaction, and each gets its own results", async () => {
    const results = await Promise.all([
      queue.batch([insert(1), insert(2)]),
      queue.batch([insert(3)]),
      queue.batch([insert(4), insert(5)]),
    ]);
    expect(sizes).toEqual([5]);
    expect(results.map((sets) => sets.map((set) => set.rows[0]?.id))).toEqual([[1, 2], [3], [4, 5]]);
    expect(await ids()).toEqual([1, 2, 3, 4, 5]);
  });

  test("one that breaks a constraint leaves nothing behind and does not take the others along", async () => {
    const outcomes = await Promise.allSettled([
      queue.batch([insert(1)]),
      queue.batch([insert(2), insert(1)]),
      queue.batch([insert(3)]),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await ids()).toEqual([1, 3]);
  });

  test("order is kept: of two that want the same id the first has it", async () => {
    const outcomes = await Promise.allSettled([
      queue.batch([insert(1, "first")]),
      queue.batch([insert(1, "second")]),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(await new Reader(database).rows("SELECT word FROM things")).toMatchObject([{ word: "first" }]);
  });

  test("a transaction that failed before its end is written again, batch by batch", async () => {
    fault = Object.assign(new Error("disk I/O error"), { statementIndex: 1 });
    await Promise.all([queue.batch([insert(1)]), queue.batch([insert(2)])]);
    expect(sizes).toEqual([2, 1, 1]);
    expect(await ids()).toEqual([1, 2]);
  });

  test("R8: one whose commit failed is not repeated, and nothing in it is acknowledged", async () => {
    fault = new Error("disk I/O error");
    const outcomes = await Promise.allSettled([queue.batch([insert(1)]), queue.batch([insert(2)])]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(sizes).toEqual([2]);
    await queue.batch([insert(3)]);
    expect(await ids()).toEqual([3]);
  });

  test("those that come while one is written are the next transaction", async () => {
    const first = queue.batch([insert(1)]);
    while (sizes.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const others = [2, 3, 4].map((id) => queue.batch([insert(id)]));
    await Promise.all([first, ...others]);
    expect(sizes).toEqual([1, 3]);
    expect(await ids()).toEqual([1, 2, 3, 4]);
  });

  test("a shared transaction that meets another writer is tried again as one", async () => {
    fault = Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY", statementIndex: 0 });
    await Promise.all([queue.batch([insert(1)]), queue.batch([insert(2)])]);
    expect(sizes).toEqual([2, 2]);
    expect(await ids()).toEqual([1, 2]);
  });

  test("R8: one that has waited for too long is refused, and nothing of it is stored", async () => {
    const impatient = openQueue({ patienceMs: 20 });
    let open = () => {};
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const first = impatient.batch([insert(1)]);
    while (sizes.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const second = impatient.batch([insert(2)]);
    const refused = expect(second).rejects.toMatchObject({ code: "unavailable", retryAfter: 1 });
    await new Promise((resolve) => setTimeout(resolve, 40));
    open();
    await first;
    await refused;
    expect(sizes).toEqual([1]);
    expect(await ids()).toEqual([1]);
  });

  test("where a connection belongs to a request, each is sent alone, one at a time and in order", async () => {
    const bound = openQueue({ requestBound: true });
    let open = () => {};
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const all = [1, 2, 3].map((id) => bound.batch([insert(id), insert(id + 10)]));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(sizes).toEqual([2]);
    open();
    await Promise.all(all);
    expect(sizes).toEqual([2, 2, 2]);
    expect(await ids()).toEqual([1, 2, 3, 11, 12, 13]);
  });

  test("long ones do not share", async () => {
    const long = "x".repeat(200_000);
    await Promise.all([1, 2, 3].map((id) => queue.batch([insert(id, long)])));
    expect(sizes).toEqual([1, 1, 1]);
  });

  test("many are shared out over several transactions, and none is lost", async () => {
    await Promise.all(Array.from({ length: 1_000 }, (_, id) => queue.batch([insert(id)])));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(200);
    expect(sizes.length).toBeLessThan(20);
    expect((await ids()).length).toBe(1_000);
  });
});
