/** No statement about memories reads a table from end to end, and none reads all of an owner's rows to find one. */
import type { InStatement } from "@libsql/client/web";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Connection, closeDatabase, type Database } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { vaultOver, wordEmbedder } from "../knowledge/vault.ts";
import { createFileBackend, MIGRATIONS, storeOver, type TestStore } from "./backends.ts";
import { begin } from "./run-records.ts";

let backend: Awaited<ReturnType<typeof createFileBackend>>;
let database: Database;
let store: TestStore;
const sent = new Set<string>();

beforeAll(async () => {
  backend = await createFileBackend();
  database = await backend.open();
  await migrate(database, MIGRATIONS);
  store = storeOver({ ...database, write: recording(database.write), read: recording(database.read) });
});
afterAll(async () => {
  await store.close();
  await backend.close();
});

function recording(client: Connection): Connection {
  const note = (statement: InStatement) =>
    sent.add(typeof statement === "string" ? statement : statement.sql);
  const own: Partial<Connection> = {
    execute: (statement: InStatement) => {
      note(statement);
      return client.execute(statement);
    },
    batch: ((statements: InStatement[], mode: "read" | "write") => {
      for (const statement of statements) note(statement);
      return client.batch(statements, mode);
    }) as Connection["batch"],
  };
  return new Proxy(client, {
    get(target, key) {
      if (key in own) return own[key as keyof Connection];
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function useAll(): Promise<void> {
  const { vault, embeddings } = vaultOver(store, wordEmbedder());
  const { memories } = store;
  const say = (document: string) => vault.remember("ann", { document, origin: "user" });
  const { memory } = await say("The user lives in Rome");
  await say("I'm based in Rome");
  await say("The user moved to Bonn");
  const { memory: dog } = await say("The user has a dog");
  await vault.edit("ann", dog.id, { document: "The user has a cat" });
  await embeddings?.catchUp();
  for (const category of [undefined, "general"]) {
    await vault.list("ann", { category, limit: 5 });
    await vault.search("ann", "who has a cat in Bonn", { category, limit: 5, prefix: true });
    await vault.search("ann", "?!", { category, limit: 5 });
  }
  await vault.history("ann", memory.id, { limit: 5 });
  await vault.embedding("ann");
  for await (const _ of vault.dump("ann"));
  await memories.any("ann");
  await memories.important("ann", 0.8, 5);
  const run = await begin(store, "ann");
  await vault.receipt("ann", { runId: run.id, quote: "hello" });
  await memories.opening("ann", run.sessionId);
  const { now } = store.clock;
  const later = new Date(now.getTime() + 60_000);
  await memories.recalls.set("ann", run.sessionId, { text: "x", ids: [memory.id] }, now);
  await memories.recalls.get("ann", run.sessionId);
  await memories.recalls.fresh("ann", [memory.id], now);
  const model = { provider: "openai", model: "m", sealedKey: null, callersKey: false };
  await memories.extractions.note("ann", run.sessionId, model, now);
  await memories.extractions.claim("h", now, later);
  await memories.extractions.said("ann", run.sessionId, 0, 5);
  await memories.extractions.postpone(run.sessionId, "h", later, 0);
  await memories.extractions.finish(run.sessionId, "h", 1);
  await vault.deleteOfSession("ann", run.sessionId);
  await vault.delete("ann", dog.id);
  await vault.clear("ann");
}

it("finds every row by an index, and versions by theirs", async () => {
  await useAll();
  const statements = [...sent].filter((sql) => /memor/.test(sql));
  // Explaining a write leaves a connection in what it saw then.
  const explaining = await backend.open();
  expect(statements.length).toBeGreaterThan(35);
  const wrong: string[] = [];
  for (const sql of statements) {
    const numbered = [...sql.matchAll(/\?(\d+)/g)].map(([, number]) => Number(number));
    const parameters = numbered.length > 0 ? Math.max(...numbered) : sql.split("?").length - 1;
    const args = Array.from({ length: parameters }, () => null);
    const { rows } = await explaining.read.execute({ sql: `EXPLAIN QUERY PLAN ${sql}`, args });
    for (const { detail } of rows) {
      const step = String(detail);
      const scan =
        /^SCAN /.test(step) &&
        !/^SCAN (j|json_each|\(|CONSTANT|best|past|gone|versions|later|memory_index VIRTUAL)/.test(step);
      const slow = /^SEARCH m USING (COVERING )?INDEX memories_(owner|progress)/.test(step);
      if (scan || slow) wrong.push(`${step}: ${sql}`);
    }
  }
  closeDatabase(explaining);
  expect(wrong).toEqual([]);
});

it("a large vault is searched, listed and cleared in parts", async () => {
  const { vault } = vaultOver(store);
  const drafts = Array.from({ length: 3_000 }, (_, at) => ({
    document: `Friend number${at} plays ${at % 2 ? "chess" : "go"} in town${at % 50}`,
    origin: "user" as const,
  }));
  for (let at = 0; at < drafts.length; at += 500) await vault.rememberAll("ann", drafts.slice(at, at + 500));
  sent.clear();
  const { found } = await vault.search("ann", "who plays chess in town7, number1007?", { limit: 5 });
  expect(found[0]?.memory.document).toBe("Friend number1007 plays chess in town7");
  expect(found).toHaveLength(5);
  expect(sent.size).toBe(2);
  sent.clear();
  expect((await vault.list("ann", { limit: 50 })).memories).toHaveLength(50);
  expect(sent.size).toBe(1);
  let turns = 0;
  let going = true;
  const next = () => {
    turns++;
    if (going) setImmediate(next);
  };
  setImmediate(next);
  expect(await vault.clear("ann")).toBe(3_000);
  going = false;
  expect(turns).toBeGreaterThanOrEqual(30);
});
