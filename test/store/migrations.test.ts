import { readdirSync } from "node:fs";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { closeDatabase, type Database } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { BACKENDS, type Backend, MIGRATIONS, storeOver } from "./backends.ts";

const STORE = new URL("../../src/store/", import.meta.url);
const schemas = await Promise.all(
  readdirSync(STORE)
    .filter((name) => /^schema[a-z-]*\.ts$/.test(name))
    .map((name) => import(new URL(name, STORE).href) as Promise<Record<string, SQLiteTable>>),
);

const first = {
  name: "0000_a",
  sql: "CREATE TABLE a (x);--> statement-breakpoint\nINSERT INTO a VALUES (1);",
};
const second = { name: "0001_b", sql: "INSERT INTO a VALUES (2);" };

describe.each(BACKENDS)("migrations on $name", ({ available, create }) => {
  let backend: Backend;
  let database: Database;
  beforeEach(async () => {
    if (!available) return;
    backend = await create();
    database = await backend.open();
  });
  afterEach(async () => {
    if (database) closeDatabase(database);
    await backend?.close();
  });
  const rows = async (sql: string) => (await database.read.execute(sql)).rows.map((row) => ({ ...row }));

  it.runIf(available)("applies each once, in order, and later ones later", async () => {
    expect(await migrate(database, [first])).toEqual(["0000_a"]);
    expect(await migrate(database, [first])).toEqual([]);
    expect(await migrate(database, [second, first])).toEqual(["0001_b"]);
    expect(await rows("SELECT x FROM a")).toMatchObject([{ x: 1 }, { x: 2 }]);
    expect(await migrate(database, [{ ...first, sql: first.sql.replaceAll("\n", "\r\n") }, second])).toEqual(
      [],
    );
  });

  it.runIf(available)("undoes a migration that fails half-way, and can apply its repair", async () => {
    const broken = {
      name: first.name,
      sql: `${first.sql}--> statement-breakpoint\nINSERT INTO a VALUES (1, 2);`,
    };
    await expect(migrate(database, [broken])).rejects.toThrow("has 1 column");
    expect(await migrate(database, [first])).toEqual(["0000_a"]);
    expect(await rows("SELECT x FROM a")).toMatchObject([{ x: 1 }]);
  });

  it.runIf(available)("refuses one that was changed after it had been applied", async () => {
    await migrate(database, [first]);
    const changed = { ...first, sql: `${first.sql} ` };
    await expect(migrate(database, [changed])).rejects.toThrow("0000_a was changed");
  });

  it.runIf(available)("keeps the rows that refer to a table while it is rebuilt", async () => {
    const linked = {
      name: "0000_linked",
      sql: `CREATE TABLE p (id PRIMARY KEY);--> statement-breakpoint
        CREATE TABLE c (p REFERENCES p(id) ON DELETE CASCADE);--> statement-breakpoint
        INSERT INTO p VALUES (1);--> statement-breakpoint
        INSERT INTO c VALUES (1);`,
    };
    const rebuild = {
      name: "0001_rebuild",
      sql: `CREATE TABLE p2 (id PRIMARY KEY, more);--> statement-breakpoint
        INSERT INTO p2 SELECT id, 0 FROM p;--> statement-breakpoint
        DROP TABLE p;--> statement-breakpoint
        ALTER TABLE p2 RENAME TO p;`,
    };
    await migrate(database, [linked, rebuild]);
    expect(await rows("SELECT p FROM c")).toMatchObject([{ p: 1 }]);
    await expect(database.write.execute("INSERT INTO c VALUES (7)")).rejects.toThrow("FOREIGN KEY");
  });

  it.runIf(available)("is done once when many start at the same time", async () => {
    const others = await Promise.all(Array.from({ length: 4 }, () => backend.open()));
    const applied = await Promise.all(others.map((other) => migrate(other, [first, second])));
    expect(applied.flat().toSorted()).toEqual(["0000_a", "0001_b"]);
    expect(await rows("SELECT x FROM a")).toHaveLength(2);
    for (const other of others) closeDatabase(other);
  });

  it.runIf(available)(
    "keeps sessions and messages from before there were runs, and finds what they say",
    async () => {
      const [store0] = MIGRATIONS.filter((migration) => migration.name.startsWith("0000"));
      await migrate(database, [store0!]);
      const json = JSON.stringify({ role: "user", content: [{ type: "text", text: "hello world" }] });
      await database.write.batch([
        "INSERT INTO sessions VALUES ('ses_1', 'ann', 'mine', 'hello', 2, 2, 5, 6)",
        `INSERT INTO messages VALUES ('msg_1', 'ann', 'ses_1', 1, 'user', '${json}', 1, 5)`,
        `INSERT INTO messages VALUES ('msg_2', 'ann', 'ses_1', 2, 'user', '${json.slice(0, 30)}', 2, 6)`,
        `INSERT INTO message_pieces VALUES ('ann', 'msg_2', 1, '${json.slice(30)}')`,
      ]);
      await migrate(database, MIGRATIONS);
      const store = storeOver(database);
      const session = { id: "ses_1", title: "hello", messageCount: 2, lastSeq: 2 };
      expect(await store.sessions.open("ann", "mine")).toMatchObject(session);
      const page = await store.sessions.page("ann", "ses_1", { limit: 9 });
      expect(page.map(({ id, message }) => [id, JSON.stringify(message)])).toEqual([
        ["msg_2", json],
        ["msg_1", json],
      ]);
      const { sessions } = await store.sessions.list("ann", { query: "wor", limit: 9 });
      expect(sessions).toMatchObject([{ id: "ses_1" }]);
      await expect(
        database.write.execute(
          "INSERT INTO messages SELECT 9, 'x', owner, 'none', 1, role, content, 1, 1 FROM messages LIMIT 1",
        ),
      ).rejects.toThrow("FOREIGN KEY");
      await store.sessions.delete("ann", "ses_1");
      expect(await rows("SELECT 1 FROM message_pieces")).toEqual([]);
    },
  );

  it.runIf(available)("makes exactly the tables of the schema, each with an owner", async () => {
    await migrate(database, MIGRATIONS);
    const tables = schemas.flatMap(Object.values).map((table) => getTableConfig(table));
    const found = await rows(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    );
    const names = found
      .map((row) => row.name)
      .filter((name) => name !== "migrations" && !/libsql|_index(_|$)/.test(String(name)));
    expect(names.toSorted()).toEqual(tables.map((table) => table.name).toSorted());
    for (const table of tables) {
      const columns = await rows(
        `SELECT name, "notnull" AS required FROM pragma_table_info('${table.name}')`,
      );
      const expected = table.columns.map((column) => ({
        name: column.name,
        required: column.notNull || column.primary ? 1 : 0,
      }));
      expect(columns.map(({ name, required }) => ({ name, required }))).toEqual(expected);
      expect(columns).toContainEqual(expect.objectContaining({ name: "owner", required: 1 }));
    }
  });
});
