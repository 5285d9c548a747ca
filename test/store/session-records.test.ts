/** Lists, search, copies and deletions of sessions and their messages. */
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Message } from "../../src/core/message.ts";
import { findPairingFault } from "../../src/core/pairing.ts";
import type { PolicyRule } from "../../src/core/policy.ts";
import { closeDatabase } from "../../src/store/database.ts";
import { BACKENDS, type Backend, openStore, type TestStore } from "./backends.ts";
import { begin, calling, history, newRun, park, reply, resultOf, user } from "./run-records.ts";

/** A history that is in order: texts, and calls with all their results. */
const turn = fc.oneof(
  fc.constant((_: number): Message[] => [user("u")]),
  fc.constant((_: number): Message[] => [reply("r")]),
  fc.constant((_: number): Message[] => [{ role: "system", content: [] }]),
  fc.integer({ min: 1, max: 3 }).map((calls) => (at: number): Message[] => {
    const ids = Array.from({ length: calls }, (_, index) => `c${at}_${index}`);
    return [calling(...ids), ...ids.toReversed().map((id) => resultOf(id))];
  }),
);
const whole = fc
  .array(turn, { minLength: 1, maxLength: 8 })
  .map((turns) => turns.flatMap((make, at) => make(at)));

describe.each(BACKENDS)("records of sessions on $name", ({ available, create }) => {
  let backend: Backend;
  let store: TestStore;
  let owners = 0;
  const newOwner = () => `owner ${owners++}-"ü`;
  const say = async (owner: string, ...messages: Message[]) => {
    const { id } = await store.sessions.open(owner, "new");
    await store.sessions.append(owner, id, 0, messages);
    return id;
  };
  const find = async (owner: string, query: string) =>
    (await store.sessions.list(owner, { query, limit: 50 })).sessions.map((session) => session.id);
  beforeAll(async () => {
    if (!available) return;
    backend = await create();
    store = await openStore(backend);
  });
  afterAll(async () => {
    await store?.close();
    await backend?.close();
  });

  it.runIf(available)("lists by newest activity, in pages without gaps or repeats", async () => {
    const owner = newOwner();
    const start = store.clock.now.getTime();
    const ids: string[] = [];
    for (let at = 0; at < 7; at++) {
      store.clock.now = new Date(start + Math.floor(at / 3));
      ids.push(await say(owner, user(`${at}`)));
    }
    store.clock.now = new Date(start + 10);
    await store.sessions.append(owner, ids[0]!, 1, [reply("again")]);
    await store.sessions.createUnlisted(owner);
    const seen: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await store.sessions.list(owner, { limit: 3, cursor });
      seen.push(...page.sessions.map((session) => session.id));
      if (page.next === null) break;
      cursor = page.next;
    }
    expect(seen.slice(0, 2)).toEqual([ids[0], ids[6]]);
    expect(seen.toSorted()).toEqual(ids.toSorted());
    const [first] = (await store.sessions.list(owner, { query: "  ", limit: 1 })).sessions;
    expect(first).toEqual({
      ...{ id: ids[0], title: "0", messageCount: 2, createdAt: new Date(start), updatedAt: store.clock.now },
    });
    await expect(store.sessions.list(owner, { limit: 3, cursor: "?" })).rejects.toMatchObject({
      code: "invalid_request",
    });
    store.clock.now = new Date(start);
  });

  it.runIf(available)("shows an unlisted session once it is published", async () => {
    const owner = newOwner();
    const { id } = await store.sessions.createUnlisted(owner);
    expect((await store.sessions.list(owner, { limit: 9 })).sessions).toEqual([]);
    expect(await store.sessions.get(owner, id)).toMatchObject({ id, lastSeq: 0 });
    await expect(store.sessions.publish("eve", id)).rejects.toMatchObject({ code: "not_found" });
    await store.sessions.publish(owner, id);
    expect((await store.sessions.list(owner, { limit: 9 })).sessions).toMatchObject([{ id }]);
  });

  it.runIf(available)("finds words in titles and texts, of the owner alone", async () => {
    const owner = newOwner();
    const fox = await say(owner, user("The quick brown fox"), reply("Über den Zaun: l'été"));
    const dog = await say(owner, user("A lazy dog"), calling("brown"), resultOf("brown", "brown"));
    const long = await say(owner, user(`needle ${"hay ".repeat(400_000)}`));
    const renamed = await say(owner, user("nothing"));
    await store.sessions.rename(owner, renamed, "Plans for 東京 and Köln");
    expect(await find(owner, "brown")).toEqual([fox]);
    expect(await find(owner, "FOX quick")).toEqual([fox]);
    expect(await find(owner, "fox dog")).toEqual([]);
    expect(await find(owner, "la")).toEqual([dog]);
    expect(await find(owner, "lazy do")).toEqual([dog]);
    expect(await find(owner, "laz dog")).toEqual([]);
    expect(await find(owner, "uber ete")).toEqual([fox]);
    expect(await find(owner, "needle")).toEqual([long]);
    expect(await find(owner, "koln plans")).toEqual([renamed]);
    expect(await find(owner, "東京")).toEqual([renamed]);
    await store.sessions.rename(owner, renamed, "Other");
    expect(await find(owner, "plans")).toEqual([]);
    expect(await find(owner, "nothing")).toEqual([renamed]);
    expect(await find(newOwner(), "brown")).toEqual([]);
    const unlisted = await store.sessions.createUnlisted(owner);
    await store.sessions.append(owner, unlisted.id, 0, [user("brown")]);
    expect(await find(owner, "brown")).toEqual([fox]);
    await store.sessions.delete(owner, fox);
    expect(await find(owner, "brown")).toEqual([]);
    const page = await store.sessions.list(owner, { query: "nothing OR needle", limit: 1 });
    expect(page).toEqual({ sessions: [], next: null });
  });

  it.runIf(available)("takes what a person types as words, whatever it is", async () => {
    const owner = newOwner();
    const id = await say(owner, user('owner : "x" NEAR(a b) AND NOT c* ^d {e} col:f - + 100% o\'neil'));
    const said = ['owner:"x"', "NEAR(a", "NOT c*", "^d", "{e}", "col : f", "100%", "o'neil", "a_b\\"];
    for (const query of said.slice(0, -1)) expect([query, await find(owner, query)]).toEqual([query, [id]]);
    const odd = await say(owner, user("50%_off \\o/ 🎉"));
    for (const query of ["%_", "\\", "🎉"]) expect([query, await find(owner, query)]).toEqual([query, [odd]]);
    expect(await find(owner, "?!")).toEqual([]);
    const check = async (query: string) => {
      await store.sessions.list(owner, { query, limit: 2 });
    };
    await fc.assert(fc.asyncProperty(fc.string({ unit: "binary" }), check), { numRuns: 60 });
    const syntax = fc.array(
      fc.constantFrom('"', "(", ")", "*", "AND", "NEAR", ":", "-", "owner", "a", " ", "'"),
    );
    await fc.assert(
      fc.asyncProperty(
        syntax.map((parts) => parts.join("")),
        check,
      ),
      { numRuns: 60 },
    );
  });

  it.runIf(available)("pages matches like any list", async () => {
    const owner = newOwner();
    const ids = await Promise.all(Array.from({ length: 5 }, (_, at) => say(owner, user(`same ${at}`))));
    const seen: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await store.sessions.list(owner, { query: "sam", limit: 2, cursor });
      seen.push(...page.sessions.map((session) => session.id));
      if (page.next === null) break;
      cursor = page.next;
    }
    expect(seen.toSorted()).toEqual(ids.toSorted());
    expect(new Set(seen).size).toBe(5);
  });

  it.runIf(available)("renames, and never a foreign one", async () => {
    const owner = newOwner();
    const id = await say(owner, user("old"));
    expect(await store.sessions.rename(owner, id, "new\0\ud800")).toMatchObject({ id, title: "new\ufffd" });
    expect(await store.sessions.get(owner, id)).toMatchObject({ title: "new\ufffd" });
    for (const work of [
      () => store.sessions.rename("eve", id, "mine"),
      () => store.sessions.get("eve", id),
      () => store.sessions.fork("eve", id, undefined),
      () => store.sessions.delete("eve", id),
      () => store.sessions.messages("eve", id, { limit: 9 }),
      () => store.sessions.grant("eve", id, []),
      () => store.sessions.summarise("eve", id, { upTo: 1, text: "x" }),
      () => store.sessions.rename(owner, "ses_none", "x"),
    ])
      await expect(work()).rejects.toMatchObject({ code: "not_found" });
    expect(await store.sessions.get(owner, id)).toMatchObject({ title: "new\ufffd", messageCount: 1 });
  });

  it.runIf(available)("reads oldest first, in pages", async () => {
    const owner = newOwner();
    const id = await say(owner, ...Array.from({ length: 5 }, (_, at) => user(`${at}`)));
    const first = await store.sessions.messages(owner, id, { limit: 3 });
    expect(first.messages.map((message) => message.seq)).toEqual([1, 2, 3]);
    const rest = await store.sessions.messages(owner, id, { limit: 3, cursor: first.next! });
    expect(rest.messages.map((message) => message.seq)).toEqual([4, 5]);
    expect(rest.next).toBeNull();
  });

  it.runIf(available)("keeps grants in order and once, and the newest summary", async () => {
    const owner = newOwner();
    const id = await say(owner, user("x"));
    const rules: PolicyRule[] = [
      { tool: "write", decision: "allow", args: { path: "a\u0000*" } },
      { tool: "look", decision: "allow" },
    ];
    expect(await store.sessions.grants(owner, id)).toEqual([]);
    await store.sessions.grant(owner, id, rules);
    await store.sessions.grant(owner, id, [rules[1]!, { tool: "z", decision: "deny" }]);
    expect(await store.sessions.grants(owner, id)).toEqual([
      { ...rules[0], args: { path: "a*" } },
      rules[1],
      { tool: "z", decision: "deny" },
    ]);
    expect(await store.sessions.grants("eve", id)).toEqual([]);
    expect(await store.sessions.summary(owner, id)).toBeNull();
    for (const upTo of [3, 9, 5]) await store.sessions.summarise(owner, id, { upTo, text: `to ${upTo}` });
    await store.sessions.summarise(owner, id, { upTo: 9, text: "better" });
    expect(await store.sessions.summary(owner, id)).toEqual({ upTo: 9, text: "better" });
    expect(await store.sessions.summary("eve", id)).toBeNull();
  });

  it.runIf(available)("takes no summary of what has been deleted meanwhile", async () => {
    const owner = newOwner();
    const id = await say(owner, ...Array.from({ length: 5 }, (_, at) => user(`${at}`)));
    const { sessions } = store;
    const summarise = (upTo: number, after: number, messages: number, summary: boolean) =>
      sessions.summarise(owner, id, { upTo, text: `to ${upTo}` }, { after, messages, summary });
    expect(await summarise(2, 0, 2, true)).toBe(false);
    expect(await summarise(2, 0, 2, false)).toBe(true);
    expect(await summarise(4, 2, 2, true)).toBe(true);
    const stored = (await sessions.messages(owner, id, { limit: 9 })).messages;
    await sessions.deleteMessage(owner, stored[2]!.id);
    expect(await sessions.summary(owner, id)).toEqual({ upTo: 2, text: "to 2" });
    expect(await summarise(4, 2, 2, true)).toBe(false);
    await sessions.deleteMessage(owner, stored[0]!.id);
    expect(await summarise(4, 2, 1, true)).toBe(false);
    expect(await sessions.summary(owner, id)).toBeNull();
    expect(await summarise(4, 0, 2, false)).toBe(true);
    await expect(
      sessions.summarise("eve", id, { upTo: 4, text: "x" }, { after: 0, messages: 2, summary: false }),
    ).rejects.toMatchObject({ code: "not_found" });
  });

  it.runIf(available)("copies a session up to a message, calls with their results", async () => {
    const owner = newOwner();
    const long = "é".repeat(1_600_000);
    const messages = [user("first"), calling("a", "b"), resultOf("a", long), resultOf("b"), reply("end")];
    const id = await say(owner, ...messages);
    await store.sessions.rename(owner, id, "Mine");
    await store.sessions.summarise(owner, id, { upTo: 1, text: "s" });
    await store.sessions.summarise(owner, id, { upTo: 5, text: "all" });
    await store.sessions.grant(owner, id, [{ tool: "look", decision: "allow" }]);
    const stored = (await store.sessions.messages(owner, id, { limit: 9 })).messages;
    const all = await store.sessions.fork(owner, id, undefined);
    expect(all).toMatchObject({ title: "Mine", messageCount: 5 });
    expect(JSON.stringify(await history(store, owner, all.id)) === JSON.stringify(messages)).toBe(true);
    expect(await store.sessions.summary(owner, all.id)).toEqual({ upTo: 5, text: "all" });
    expect(await store.sessions.grants(owner, all.id)).toEqual([]);
    for (const at of [1, 2, 3]) {
      const fork = await store.sessions.fork(owner, id, stored[at]!.id);
      expect(fork.messageCount).toBe(4);
      expect(await store.sessions.summary(owner, fork.id)).toEqual({ upTo: 1, text: "s" });
      expect(await store.sessions.append(owner, fork.id, 4, [reply("other")])).toBe(5);
    }
    expect(await store.sessions.get(owner, id)).toMatchObject({ lastSeq: 5 });
    await expect(store.sessions.fork(owner, all.id, stored[0]!.id)).rejects.toMatchObject({
      code: "not_found",
    });
    await store.sessions.delete(owner, id);
    expect(await history(store, owner, all.id)).toHaveLength(5);
    expect(await find(owner, "mine")).toHaveLength(4);
  });

  it.runIf(available)("leaves a valid history when messages are deleted, in whichever order", async () => {
    const owner = newOwner();
    const check = async (messages: Message[], picks: number[]) => {
      const id = await say(owner, ...messages);
      for (const pick of picks) {
        const left = (await store.sessions.messages(owner, id, { limit: 100 })).messages;
        const chosen = left[pick % Math.max(left.length, 1)];
        if (!chosen) break;
        const gone = await store.sessions.deleteMessage(owner, chosen.id);
        expect(gone).toContain(chosen.id);
        const after = (await store.sessions.messages(owner, id, { limit: 100 })).messages;
        expect(after).toEqual(left.filter((message) => !gone.includes(message.id)));
        expect(findPairingFault(after.map((message) => message.message))).toBeNull();
        expect((await store.sessions.get(owner, id)).messageCount).toBe(after.length);
      }
      expect((await store.sessions.get(owner, id)).lastSeq).toBe(messages.length);
    };
    const picks = fc.array(fc.nat(30), { minLength: 1, maxLength: 5 });
    await fc.assert(fc.asyncProperty(whole, picks, check), { numRuns: 25 });
  });

  it.runIf(available)("deletes a message with its text, its summary, and never a foreign one", async () => {
    const owner = newOwner();
    const id = await say(owner, user("alpha"), reply("beta"), user("gamma"));
    for (const upTo of [1, 2]) await store.sessions.summarise(owner, id, { upTo, text: "s" });
    const [, beta] = (await store.sessions.messages(owner, id, { limit: 9 })).messages;
    await expect(store.sessions.deleteMessage("eve", beta!.id)).rejects.toMatchObject({ code: "not_found" });
    expect(await find(owner, "beta")).toEqual([id]);
    expect(await store.sessions.deleteMessage(owner, beta!.id)).toEqual([beta!.id]);
    expect(await find(owner, "beta")).toEqual([]);
    expect(await find(owner, "alpha")).toEqual([id]);
    expect(await store.sessions.summary(owner, id)).toEqual({ upTo: 1, text: "s" });
    await expect(store.sessions.deleteMessage(owner, beta!.id)).rejects.toMatchObject({ code: "not_found" });
  });

  it.runIf(available)("indexes a message that takes the place of a deleted last one", async () => {
    const owner = newOwner();
    const id = await say(owner, user("one"), user("two"));
    expect(await find(owner, "two")).toEqual([id]);
    const last = (await store.sessions.page(owner, id, { limit: 1 }))[0]!;
    await store.sessions.deleteMessage(owner, last.id);
    await store.sessions.append(owner, id, 2, [user("three")]);
    expect(await find(owner, "three")).toEqual([id]);
    expect(await find(owner, "two")).toEqual([]);
  });

  it.runIf(available)("does not delete from under a run what the run has said", async () => {
    const run = await park(store, "ann", ["a"]);
    const [asked, said] = (await store.sessions.messages("ann", run.sessionId, { limit: 9 })).messages;
    await expect(store.sessions.deleteMessage("ann", said!.id)).rejects.toMatchObject({ code: "conflict" });
    expect(await store.sessions.deleteMessage("ann", asked!.id)).toEqual([asked!.id]);
    const next = await begin(store, "ann");
    await store.sessions.delete("ann", next.sessionId);
    expect(await store.runs.renew("h1", new Date(0))).toEqual([]);
    await expect(store.runs.begin("ann", newRun(next.sessionId), [])).rejects.toMatchObject({
      code: "not_found",
    });
  });

  it.runIf(available)("finishes a deletion that was cut off with the next one", async () => {
    const owner = newOwner();
    const [one, two] = [await say(owner, user("one")), await say(owner, user("two"))];
    const database = await backend.open();
    await database.write.execute({
      sql: "UPDATE sessions SET owner = '', label = id WHERE id = ?",
      args: [one],
    });
    await store.sessions.delete(owner, two);
    const { rows } = await database.read.execute({
      sql: "SELECT id FROM sessions WHERE id = ?",
      args: [one],
    });
    expect(rows).toEqual([]);
    closeDatabase(database);
  });
});
