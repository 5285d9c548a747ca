/** No statement of the store reads a table from end to end, and long sessions are read and copied in parts. */
import type { InStatement } from "@libsql/client/web";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Connection, Database } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { createFileBackend, MIGRATIONS, storeOver, type TestStore } from "./backends.ts";
import {
  begin,
  CANCELLED,
  LATER,
  MUCH_LATER,
  NOW,
  newCall,
  newRun,
  park,
  reply,
  resultOf,
  user,
} from "./run-records.ts";

let backend: Awaited<ReturnType<typeof createFileBackend>>;
let database: Database;
let store: TestStore;
let sent: Set<string>;
beforeEach(async () => {
  backend = await createFileBackend();
  database = await backend.open();
  await migrate(database, MIGRATIONS);
  sent = new Set();
  store = storeOver({ ...database, write: recording(database.write), read: recording(database.read) });
});
afterEach(async () => {
  await store.close();
  await backend.close();
});

/** The client, noting every statement that goes through it. */
function recording(client: Connection): Connection {
  const note = (statement: InStatement) =>
    sent.add(typeof statement === "string" ? statement : statement.sql);
  return new Proxy(client, {
    get(target, key) {
      if (key === "execute")
        return (statement: InStatement) => {
          note(statement);
          return target.execute(statement);
        };
      if (key === "batch")
        return (statements: InStatement[], mode: "read" | "write") => {
          for (const statement of statements) note(statement);
          return target.batch(statements, mode);
        };
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Uses every method, so that every statement is sent. */
async function useAll(): Promise<void> {
  const { sessions, runs, idempotency } = store;
  const { id } = await sessions.open("ann", "label");
  await sessions.open("ann", id);
  const long = "ü".repeat(800_000);
  await sessions.append("ann", id, 0, [user("hello"), reply(long)]);
  await sessions.publish("ann", (await sessions.createUnlisted("ann")).id);
  for (const query of [undefined, "hello wor", "?"]) await sessions.list("ann", { query, limit: 5 });
  await sessions.rename("ann", id, "new");
  await sessions.page("ann", id, { limit: 5 });
  const { messages } = await sessions.messages("ann", id, { limit: 5 });
  await sessions.grant("ann", id, [{ tool: "x", decision: "allow" }]);
  await sessions.grants("ann", id);
  await sessions.summarise("ann", id, { upTo: 1, text: "s" });
  await sessions.summary("ann", id);
  await sessions.setDirectory("ann", id, "src");
  await sessions.directory("ann", id);
  const fork = await sessions.fork("ann", id, messages[0]!.id);
  await sessions.fork("ann", id, undefined);
  await sessions.deleteMessage("ann", messages[1]!.id);
  const run = await begin(store, "ann", { spec: { ...newRun("").spec, agent: long } });
  await runs.begin("ann", newRun(run.sessionId), []);
  const frames = { first: 1, last: 1, text: long };
  const calls = [newCall(run, "a", { args: long })];
  await runs.commit("ann", run.id, "h1", { messages: [reply("x")], calls, frames });
  await runs.commit("ann", run.id, "h1", { end: { status: "paused", stop: "stop" } });
  await runs.resume("ann", run.id, "h1", LATER);
  await runs.takeOver(run.id, "h2", MUCH_LATER, MUCH_LATER);
  await runs.commit("ann", run.id, "h2", { end: { status: "completed", stop: "stop" } });
  const parked = await park(store, "ann", ["a"], { codeHash: "c", expiresAt: LATER });
  await runs.get("ann", run.id);
  await runs.list("ann", { limit: 5 });
  await runs.list("ann", { limit: 5, sessionId: run.sessionId });
  await runs.calls("ann", run.id);
  await runs.frames("ann", run.id, 0, 5);
  await runs.byCode("ann", "c");
  await runs.callsById("ann", parked.sessionId, ["a"]);
  await runs.decide("ann", parked.id, ["a"], "allowed", NOW);
  await runs.decided(5);
  await runs.cancelPaused("ann", parked.id, (call) => resultOf(call.callId, long), CANCELLED);
  await runs.pending("ann", (await park(store, "ann", ["b"], { expiresAt: LATER })).sessionId, MUCH_LATER);
  await runs.waiting("ann", NOW, 5);
  await runs.expire(MUCH_LATER, 5);
  await runs.abandoned(NOW, 5);
  await runs.members("ann", run.id);
  await runs.orphans(NOW, 5);
  const { agents } = store;
  const draft = { name: "a", description: "", instructions: "", provider: null, model: null, tools: null };
  await agents.create("ann", { ...draft, policy: [], subAgents: [] });
  await agents.get("ann", "a");
  await agents.update("ann", "a", { name: "b" });
  await agents.list("ann", { limit: 5 });
  await agents.names("ann");
  await agents.delete("ann", "b");
  await runs.renew("h1", LATER);
  await runs.askToStop("ann", run.id);
  const answer = { status: 200, headers: {}, body: long };
  for (const now of [NOW, LATER]) await idempotency.take("ann", "k", "f", now, MUCH_LATER);
  await idempotency.finish("ann", "k", answer, MUCH_LATER);
  await idempotency.take("ann", "k", "f", LATER, MUCH_LATER);
  await idempotency.release("ann", "k");
  await sessions.delete("ann", fork.id);
}

it("finds every row by an index", async () => {
  await useAll();
  const statements = [...sent].filter((sql) => /^\s*(SELECT|INSERT|UPDATE|DELETE)/i.test(sql));
  expect(statements.length).toBeGreaterThan(60);
  const scans: string[] = [];
  for (const sql of statements) {
    const { rows } = await database.read.execute({
      sql: `EXPLAIN QUERY PLAN ${sql}`,
      args: Array.from({ length: sql.split("?").length - 1 }, () => null),
    });
    for (const { detail } of rows) {
      const step = String(detail);
      // Parameters and results of a subquery are short, and so are the indexes of what goes on right now.
      if (!/^SCAN /.test(step) || /^SCAN (j|json_each|search_index VIRTUAL TABLE|\(|CONSTANT)/.test(step))
        continue;
      if (!/USING (COVERING )?INDEX (runs_lease|runs_open_members|run_calls_decided)/.test(step))
        scans.push(`${step}: ${sql}`);
    }
  }
  expect(scans).toEqual([]);
});

it("reads, copies and deletes a session of 10,000 messages in parts", async () => {
  const { id } = await store.sessions.open("ann", "long");
  for (let seq = 0; seq < 10_000; seq += 1_000) {
    const messages = Array.from({ length: 1_000 }, (_, at) => user(`message ${seq + at + 1}`));
    await store.sessions.append("ann", id, seq, messages);
  }
  sent.clear();
  const page = await store.sessions.page("ann", id, { limit: 50 });
  expect(page.map((message) => message.seq)).toEqual(Array.from({ length: 50 }, (_, at) => 10_000 - at));
  expect(sent.size).toBe(1);
  const run = newRun(id);
  expect(await store.runs.begin("ann", run, [user("next")])).toEqual({ historySeq: 10_001 });
  expect([...sent].filter((sql) => /SELECT id, seq, content\b.* FROM messages/s.test(sql))).toHaveLength(1);
  const turns = await countTurns(async () => {
    const fork = await store.sessions.fork("ann", id, undefined);
    expect(fork.messageCount).toBe(10_001);
    const found = await store.sessions.list("ann", { query: "message 7777", limit: 5 });
    expect(found.sessions.map((session) => session.id).toSorted()).toEqual([fork.id, id].toSorted());
    await store.sessions.delete("ann", id);
    const seqs: number[] = [];
    for (let cursor: string | undefined; ; ) {
      const part = await store.sessions.messages("ann", fork.id, { limit: 200, cursor });
      seqs.push(...part.messages.map((message) => message.seq));
      if (part.next === null) break;
      cursor = part.next;
    }
    expect(seqs).toEqual(Array.from({ length: 10_001 }, (_, at) => at + 1));
  });
  // Others had their turn in between: 40 parts of the copy, 200 of the index, 50 of the deletion.
  expect(turns).toBeGreaterThan(200);
});

/** How often the event loop comes around meanwhile. */
async function countTurns(work: () => Promise<void>): Promise<number> {
  let turns = 0;
  let going = true;
  const next = () => {
    turns += 1;
    if (going) setImmediate(next);
  };
  setImmediate(next);
  await work();
  going = false;
  return turns;
}
