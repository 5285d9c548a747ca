import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StoredAnswer } from "../../src/core/store.ts";
import { closeDatabase } from "../../src/store/database.ts";
import { BACKENDS, type Backend, openStore, type TestStore } from "./backends.ts";

const at = (seconds: number) => new Date(1_800_000_000_000 + seconds * 1_000);
const answer: StoredAnswer = { status: 201, headers: { "x-run-id": "run_1" }, body: '{"a":"ü"}' };

describe.each(BACKENDS)("idempotency keys on $name", ({ available, create }) => {
  let backend: Backend;
  let store: TestStore;
  beforeAll(async () => {
    if (!available) return;
    backend = await create();
    store = await openStore(backend);
  });
  afterAll(async () => {
    await store?.close();
    await backend?.close();
  });
  const take = (key: string, seconds: number, print = "f", owner = "ann", from = store) =>
    from.idempotency.take(owner, key, print, at(seconds), at(seconds + 60));

  it.runIf(available)("gives the stored answer to the same request, until it expires", async () => {
    expect(await take("a", 0)).toEqual({ state: "new" });
    expect(await take("a", 1)).toEqual({ state: "busy" });
    expect(await take("a", 1, "g")).toEqual({ state: "other" });
    expect(await take("a", 1, "g", "bob")).toEqual({ state: "new" });
    await store.idempotency.finish("ann", "a", answer, at(100));
    await store.idempotency.finish("ann", "a", { ...answer, body: "second" }, at(900));
    expect(await take("a", 99)).toEqual({ state: "done", answer });
    expect(await take("a", 99, "g")).toEqual({ state: "other" });
    expect(await take("a", 2, "g", "bob")).toEqual({ state: "busy" });
    expect(await take("a", 100, "g")).toEqual({ state: "new" });
    expect(await take("a", 101, "g")).toEqual({ state: "busy" });
  });

  it.runIf(available)(
    "frees a key that was released or whose hold ran out, and never an answered one",
    async () => {
      await take("b", 0);
      await store.idempotency.release("bob", "b");
      expect(await take("b", 1)).toEqual({ state: "busy" });
      await store.idempotency.release("ann", "b");
      expect(await take("b", 1)).toEqual({ state: "new" });
      expect(await take("b", 61)).toEqual({ state: "new" });
      await store.idempotency.finish("bob", "b", answer, at(999));
      expect(await take("b", 62)).toEqual({ state: "busy" });
      await store.idempotency.finish("ann", "b", answer, at(999));
      await store.idempotency.release("ann", "b");
      expect(await take("b", 63)).toEqual({ state: "done", answer });
    },
  );

  it.runIf(available)("has one first among 50", async () => {
    const other = await openStore(backend);
    const taken = await Promise.all(
      Array.from({ length: 50 }, (_, n) => take("c", 0, "f", "ann", n % 2 ? other : store)),
    );
    expect(taken.filter(({ state }) => state === "new")).toHaveLength(1);
    expect(taken.filter(({ state }) => state === "busy")).toHaveLength(49);
    await other.close();
  });

  it.runIf(available)(
    "keeps answers larger than a value, and clears expired ones away with them",
    async () => {
      const body = `${"x".repeat(749_999)}${"😀".repeat(900_000)}`;
      await take("d\0", 0);
      await store.idempotency.finish("ann", "d\0", { ...answer, body }, at(100));
      const again = await take("d\0", 1);
      expect(again.state === "done" && again.answer.body === body).toBe(true);
      await take("e", 100 + 3_600);
      const database = await backend.open();
      for (const table of ["idempotency_keys", "idempotency_pieces"]) {
        const { rows } = await database.read.execute(`SELECT count(*) AS n FROM ${table} WHERE key = 'd'`);
        expect([table, rows[0]?.n]).toEqual([table, 0]);
      }
      closeDatabase(database);
    },
  );
});
