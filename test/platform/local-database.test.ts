/** The client of a database file keeps to what the store knows of the other client, and never to what has failed. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { InStatement } from "@libsql/client/web";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createClient, type FileClient } from "../../src/platform/local-database.ts";

let folder: string;
let client: FileClient;
const open = () =>
  createClient({ url: pathToFileURL(join(folder, "ä 100%?.db")).href.replace("file://", "file:") });
const insert = (id: number, text: string | null = "x"): InStatement => ({
  sql: "INSERT INTO things VALUES (?, ?)",
  args: [id, text],
});
const ids = async (from = client) =>
  (await from.execute("SELECT id FROM things ORDER BY id")).rows.map((row) => row.id);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "dragoman file "));
  client = open();
  await client.execute("PRAGMA journal_mode = WAL");
  await client.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, content)");
});
afterEach(async () => {
  client.close();
  await rm(folder, { recursive: true });
});

test("gives back what it was given, however often a statement is used", async () => {
  const value = fc.oneof(
    fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0")),
    fc.integer({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.constant(null),
    fc.uint8Array({ maxLength: 100_000 }),
    fc.constant("long ".repeat(50_000)),
  );
  let id = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 20 }), async (values) => {
      const first = id + 1;
      const statements = values.map((each) => ({
        sql: "INSERT INTO things VALUES (?, ?)",
        args: [++id, each],
      }));
      const results = await client.batch(statements, "write");
      expect(results.map(({ rowsAffected }) => rowsAffected)).toEqual(values.map(() => 1));
      const sql = "SELECT content FROM things WHERE id >= ? ORDER BY id";
      const { rows } = await client.execute({ sql, args: [first] });
      const found = rows.map(({ content }) =>
        content instanceof ArrayBuffer ? new Uint8Array(content) : content,
      );
      expect(found).toEqual(values);
    }),
    { numRuns: 50 },
  );
});

test("a batch that fails leaves nothing, says where, and the next one works", async () => {
  await client.batch([insert(1)], "write");
  for (let attempt = 0; attempt < 3; attempt++)
    await expect(client.batch([insert(2), insert(3), insert(1)], "write")).rejects.toMatchObject({
      code: expect.stringMatching(/^SQLITE_CONSTRAINT/),
      statementIndex: 2,
    });
  expect(await ids()).toEqual([1]);
  await client.batch([insert(2)], "write");
  const other = open();
  expect(await ids(other)).toEqual([1, 2]);
  other.close();
});

test("waits for nobody longer than it was told, and has lost nothing when the other is gone", async () => {
  const other = open();
  await other.execute("BEGIN IMMEDIATE");
  for (let attempt = 0; attempt < 3; attempt++)
    await expect(client.batch([insert(1)], "write")).rejects.toMatchObject({ code: "SQLITE_BUSY" });
  await other.execute("COMMIT");
  await client.batch([insert(2)], "write");
  expect(await ids(other)).toEqual([2]);
  other.close();
});

test("sees what others have written, with statements that it has compiled before", async () => {
  const other = open();
  expect(await ids()).toEqual([]);
  for (let id = 1; id < 250; id++) {
    await other.batch([insert(id)], "write");
    expect((await ids()).length).toBe(id);
  }
  await other.execute("ALTER TABLE things ADD COLUMN later");
  expect(await ids()).toHaveLength(249);
  other.close();
});

test("foreign keys hold, but not while it migrates", async () => {
  await client.execute("PRAGMA foreign_keys = on");
  await client.execute("CREATE TABLE parts (thing INTEGER REFERENCES things(id))");
  const orphan: InStatement = { sql: "INSERT INTO parts VALUES (?)", args: [7] };
  await expect(client.batch([orphan], "write")).rejects.toThrow("FOREIGN KEY");
  await expect(client.migrate([orphan, "no sql"])).rejects.toMatchObject({ statementIndex: 1 });
  await client.migrate([orphan]);
  await expect(client.batch([orphan], "write")).rejects.toThrow("FOREIGN KEY");
  expect((await client.execute("SELECT thing FROM parts")).rows).toEqual([{ thing: 7 }]);
});

test("a closed client says so until it is opened anew", async () => {
  client.close();
  for (const use of [() => client.execute("SELECT 1"), () => client.batch([]), () => client.migrate([])])
    await expect(use()).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
  client.reconnect();
  expect(await ids()).toEqual([]);
});

test("refuses what the database would change in silence", async () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, undefined])
    await expect(
      client.execute({ sql: "INSERT INTO things VALUES (1, ?)", args: [value as unknown as number] }),
    ).rejects.toThrow("stored");
  expect(await ids()).toEqual([]);
});
