/** Notes and the rows of their images, on a file and on a server; and that no statement reads a table from end to end. */
import type { InStatement } from "@libsql/client/web";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Connection, Database } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import {
  BACKENDS,
  type Backend,
  createFileBackend,
  MIGRATIONS,
  openStore,
  storeOver,
  type TestStore,
} from "./backends.ts";

const draft = (content: string, title = "Note", category = "General") => ({ title, content, category });
const IMAGE = { type: "image/png", size: 1, width: 1, height: 1, sha256: "0", store: "database" } as const;

describe.each(BACKENDS.filter((kind) => kind.available))("on $name", (kind) => {
  let backend: Backend;
  let store: TestStore;
  beforeAll(async () => {
    backend = await kind.create();
    store = await openStore(backend);
  });
  afterAll(async () => {
    await store.close();
    await backend.close();
  });

  test("of many writers with one version one wins, in whatever process", async () => {
    const { id } = await store.notes.create("writers", draft("none"));
    const other = await openStore(backend);
    const all = await Promise.allSettled(
      Array.from({ length: 10 }, (_, n) =>
        [store, other][n % 2]?.notes.update("writers", id, { content: `of ${n}` }, 1),
      ),
    );
    expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const each of all)
      if (each.status === "rejected") expect(each.reason).toMatchObject({ code: "conflict", status: 412 });
    expect((await store.notes.get("writers", id)).version).toBe(2);
    await other.close();
  });

  test("a refused change leaves the images of the note as they were", async () => {
    const image = await store.images.begin("ann", IMAGE);
    await store.images.publish("ann", image);
    const { id } = await store.notes.create("ann", draft(`![](${image})`));
    await expect(store.notes.update("ann", id, { content: "without" }, 7)).rejects.toThrow("changed since");
    await expect(store.notes.delete("ann", id, 7)).rejects.toThrow("changed since");
    await expect(store.notes.update("bob", id, { content: "without" })).rejects.toThrow("no note");
    await expect(store.notes.delete("bob", id)).rejects.toThrow("no note");
    expect(await store.images.condemn(new Date("2100-01-01"), 10)).toEqual([]);
    await store.notes.update("ann", id, { title: "Another" });
    expect(await store.images.condemn(new Date("2100-01-01"), 10)).toEqual([]);
  });

  test("an image that is condemned cannot be taken into a note, nor seen", async () => {
    const image = await store.images.begin("ann", IMAGE);
    expect(await store.images.get("ann", image)).toBeNull();
    await store.images.publish("ann", image);
    expect(await store.images.get("ann", image)).toMatchObject({ id: image, owner: "ann" });
    expect(await store.images.get("bob", image)).toBeNull();
    expect(await store.images.among("bob", [image])).toEqual([]);
    const condemned = await store.images.condemn(new Date("2100-01-01"), 10);
    expect(condemned).toEqual([{ id: image, owner: "ann", store: "database" }]);
    await store.notes.create("ann", draft(`![](${image})`));
    expect(await store.images.linked(image)).toBeNull();
    // Whoever took it may have gone: it is offered again until its row is removed.
    expect(await store.images.condemn(new Date("2100-01-01"), 10)).toHaveLength(1);
    await store.images.remove([image]);
    expect(await store.images.condemn(new Date("2100-01-01"), 10)).toEqual([]);
  });

  test("pages show each note once, in order, whatever their size and limit", async () => {
    let n = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ size: fc.constantFrom(1, 5_000, 400_000), gap: fc.nat(2) }), {
          minLength: 1,
          maxLength: 8,
        }),
        fc.integer({ min: 1, max: 5 }),
        fc.constantFrom(undefined, "word", "General"),
        async (notes, limit, way) => {
          const owner = `pages ${n++}`;
          const made: { id: string; at: number }[] = [];
          for (const { size, gap } of notes) {
            store.clock.now = new Date(store.clock.now.getTime() + gap);
            const { id, updatedAt } = await store.notes.create(owner, draft(`word ${"x".repeat(size)}`));
            made.push({ id, at: updatedAt.getTime() });
          }
          const seen: string[] = [];
          for (let cursor: string | undefined; ; ) {
            const query = way === "word" ? { query: way } : { category: way };
            const page = await store.notes.list(owner, { ...query, limit, cursor });
            expect(page.notes.length).toBeGreaterThan(0);
            expect(page.notes.length).toBeLessThanOrEqual(limit);
            seen.push(...page.notes.map(({ id }) => id));
            if (page.next === null) break;
            cursor = page.next;
          }
          expect(new Set(seen)).toEqual(new Set(made.map(({ id }) => id)));
          expect(seen).toHaveLength(made.length);
          if (way !== "word")
            expect(seen).toEqual(
              made.toSorted((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1)).map(({ id }) => id),
            );
        },
      ),
      { numRuns: 12 },
    );
  });

  test("a search keeps to its owner and its category, and never fails for what is typed", async () => {
    await store.notes.create("ann", draft("zebra crossing", "Street", "City"));
    await store.notes.create("bob", draft("zebra", "Zoo", "City"));
    const titles = async (owner: string, query: string, category?: string) =>
      (await store.notes.list(owner, { query, category, limit: 10 })).notes.map(({ title }) => title);
    expect(await titles("ann", "zebra")).toEqual(["Street"]);
    expect(await titles("ann", "zebra", "city")).toEqual([]);
    expect(await titles("ann", "cross zebra")).toEqual([]);
    expect(await titles("ann", "zebra cross", "City")).toEqual(["Street"]);
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", maxLength: 30 }), async (query) => {
        for (const title of await titles("ann", query)) expect(title).not.toBe("Zoo");
      }),
      { numRuns: 50 },
    );
  });
});

describe("statements", () => {
  let backend: Awaited<ReturnType<typeof createFileBackend>>;
  let database: Database;
  beforeAll(async () => {
    backend = await createFileBackend();
    database = await backend.open();
    await migrate(database, MIGRATIONS);
  });
  afterAll(() => backend.close());

  test("R10: find every row by an index", async () => {
    const sent = new Set<string>();
    const recording = (client: Connection): Connection =>
      new Proxy(client, {
        get(target, key) {
          const value = Reflect.get(target, key, target);
          if (typeof value !== "function") return value;
          return (...args: unknown[]) => {
            const statements = (
              key === "execute" ? [args[0]] : key === "batch" ? args[0] : []
            ) as InStatement[];
            for (const each of statements) sent.add(typeof each === "string" ? each : each.sql);
            return value.apply(target, args);
          };
        },
      });
    const store = storeOver({
      ...database,
      write: recording(database.write),
      read: recording(database.read),
    });
    const image = await store.images.begin("ann", IMAGE);
    await store.imageChunks.put("ann", image, new Uint8Array(3_000_000), "image/png");
    await new Response(
      store.imageChunks.read("ann", image, { start: 0, end: 3_000_000 }) as ReadableStream<
        Uint8Array<ArrayBuffer>
      >,
    ).arrayBuffer();
    await store.images.publish("ann", image);
    const { id } = await store.notes.create("ann", draft(image));
    await store.notes.update("ann", id, { content: image }, 1);
    await store.notes.get("ann", id);
    for (const query of [undefined, "note", "🎉"])
      for (const category of [undefined, "General"])
        await store.notes.list("ann", { query, category, limit: 5 });
    await store.notes.categories("ann");
    await store.images.get("ann", image);
    await store.images.linked(image);
    await store.images.among("ann", [image]);
    await store.notes.delete("ann", id);
    await store.images.condemn(new Date("2100-01-01"), 5);
    await store.imageChunks.remove("ann", image);
    await store.images.remove([image]);
    expect(sent.size).toBeGreaterThan(20);
    const scans: string[] = [];
    for (const sql of sent) {
      const { rows } = await database.read.execute({
        sql: `EXPLAIN QUERY PLAN ${sql}`,
        args: Array.from({ length: sql.split("?").length - 1 }, () => null),
      });
      for (const { detail } of rows) {
        const step = String(detail);
        // Pages, parameters and matches are short.
        if (/^SCAN (json_each|notes_index VIRTUAL TABLE|page|sums|\(|CONSTANT)/.test(step)) continue;
        if (/^SCAN /.test(step)) scans.push(`${step}: ${sql}`);
      }
    }
    expect(scans).toEqual([]);
    await store.close();
  });
});
