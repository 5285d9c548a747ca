import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createId } from "../../src/core/id.ts";
import type { CallRecord } from "../../src/core/run.ts";
import { closeDatabase } from "../../src/store/database.ts";
import { BACKENDS, type Backend, openStore, type TestStore } from "./backends.ts";
import {
  begin,
  CANCELLED,
  calling,
  history,
  LATER,
  MUCH_LATER,
  NOW,
  newCall,
  newRun,
  park,
  reply,
  resultOf,
  SPEC,
  user,
} from "./run-records.ts";

const DONE = { status: "completed" as const, stop: "stop" as const };
const PAUSED = { status: "paused" as const, stop: "stop" as const };

describe.each(BACKENDS)("runs on $name", ({ available, create }) => {
  let backend: Backend;
  let store: TestStore;
  let owners = 0;
  const newOwner = () => `owner-${owners++}`;
  beforeAll(async () => {
    if (!available) return;
    backend = await create();
    store = await openStore(backend);
    store.clock.now = NOW;
  });
  afterAll(async () => {
    await store?.close();
    await backend?.close();
  });

  it.runIf(available)(
    "begins with its first messages, takes the turn, and gives it back at its end",
    async () => {
      const { id } = await store.sessions.open("ann", "new");
      await store.sessions.append("ann", id, 0, [user("before"), reply("yes")]);
      const run = newRun(id);
      expect(await store.runs.begin("ann", run, [user("one"), user("two")])).toEqual({ historySeq: 4 });
      const record = {
        ...{ id: run.id, owner: "ann", sessionId: id, status: "running", spec: SPEC, sealedKey: "sealed" },
        ...{ historySeq: 4, steps: 0, lastEvent: 0, recoveries: 0, usage: { input: 0, output: 0 } },
        ...{ stop: undefined, fault: undefined, createdAt: NOW, updatedAt: NOW, endedAt: undefined },
      };
      expect(await store.runs.get("ann", run.id)).toEqual(record);
      const next = newRun(id);
      expect(await store.runs.begin("ann", next, [user("three")])).toEqual({ inTheWay: record });
      expect(await store.runs.get("ann", next.id)).toBeNull();

      const frames = { first: 1, last: 3, text: "id: 1\ndata: {}\n\n" };
      const usage = { input: 5, output: 6, cacheRead: 2 };
      const change = {
        messages: [reply("done")],
        messageIds: ["msg_given"],
        frames,
        steps: 1,
        usage,
        end: DONE,
      };
      expect(await store.runs.commit("ann", run.id, "h1", change)).toBe(true);
      expect(await store.runs.get("ann", run.id)).toEqual({
        ...record,
        ...{
          status: "completed",
          stop: "stop",
          steps: 1,
          lastEvent: 3,
          usage,
          endedAt: NOW,
          sealedKey: null,
          spec: { ...SPEC, request: { model: "gpt", messages: [], settings: {} } },
        },
      });
      expect(await history(store, "ann", id)).toEqual(
        ["before", "yes", "one", "two", "done"].map((said, at) =>
          at % 4 === 1 || at === 4 ? reply(said) : user(said),
        ),
      );
      expect(await store.sessions.get("ann", id)).toMatchObject({
        lastSeq: 5,
        messageCount: 5,
        title: "before",
      });
      expect(await store.runs.frames("ann", run.id, 0, 10)).toEqual([frames]);
      expect(await store.runs.commit("ann", run.id, "h1", change)).toBe(false);
      expect(await store.runs.begin("ann", next, [user("three")])).toEqual({ historySeq: 6 });
    },
  );

  it.runIf(available)("says that there is no such session, and writes nothing", async () => {
    const run = newRun("ses_none");
    await expect(store.runs.begin("ann", run, [user("x")])).rejects.toMatchObject({ code: "not_found" });
    expect(await store.runs.get("ann", run.id)).toBeNull();
  });

  it.runIf(available)("commits all or nothing, for the holder of the lease alone", async () => {
    const run = await begin(store, "ann");
    const call = newCall(run, "c1", { state: "started" });
    const change = {
      messages: [calling("c1")],
      calls: [call],
      frames: { first: 1, last: 1, text: "x" },
      steps: 9,
      end: DONE,
    };
    const before = await store.runs.get("ann", run.id);
    expect(await store.runs.commit("ann", run.id, "h2", change)).toBe(false);
    expect(await store.runs.commit("bob", run.id, "h1", change)).toBe(false);
    expect(await store.runs.get("ann", run.id)).toEqual(before);
    expect(await store.runs.calls("ann", run.id)).toEqual([]);
    expect(await store.runs.frames("ann", run.id, 0, 9)).toEqual([]);
    expect(await history(store, "ann", run.sessionId)).toEqual([user("go")]);
    expect(await store.runs.commit("ann", run.id, "h1", { ...change, end: undefined })).toBe(true);
    const done: CallRecord = {
      ...call,
      state: "done",
      result: resultOf("c1"),
      args: "changed",
      name: "other",
    };
    expect(await store.runs.commit("ann", run.id, "h1", { calls: [done] })).toBe(true);
    expect(await store.runs.calls("ann", run.id)).toEqual([
      { ...call, state: "done", result: resultOf("c1") },
    ]);
    expect(await store.runs.get("ann", run.id)).toMatchObject({ steps: 9, lastEvent: 1, status: "running" });
  });

  it.runIf(available)("parks with its key and its turn, and is resumed once", async () => {
    const run = await park(store, "ann", ["c1"]);
    expect(await store.runs.get("ann", run.id)).toMatchObject({
      status: "paused",
      sealedKey: "sealed",
      stop: "stop",
    });
    expect(await store.runs.begin("ann", newRun(run.sessionId), [])).toMatchObject({
      inTheWay: { id: run.id },
    });
    expect(await store.runs.commit("ann", run.id, "h1", { steps: 3 })).toBe(false);
    expect(await store.runs.askToStop("ann", run.id)).toBe(false);
    const resumed = await Promise.all(
      Array.from({ length: 20 }, (_, at) => store.runs.resume("ann", run.id, `h${at}`, LATER)),
    );
    const winner = resumed.findIndex((record) => record !== null);
    expect(resumed.filter((record) => record !== null)).toHaveLength(1);
    expect(resumed[winner]).toMatchObject({ status: "running", stop: undefined, endedAt: undefined });
    expect(await store.runs.commit("ann", run.id, `h${winner}`, { end: DONE })).toBe(true);
  });

  it.runIf(available)("is taken over by one of eight stores when its lease has run out", async () => {
    const others = await Promise.all(Array.from({ length: 7 }, () => openStore(backend)));
    const run = await begin(store, "ann");
    const take = (at: Date) =>
      Promise.all(
        [store, ...others].map((each, index) => each.runs.takeOver(run.id, `t${index}`, at, MUCH_LATER)),
      );
    expect((await take(NOW)).filter(Boolean)).toEqual([]);
    expect(await store.runs.abandoned(NOW, 100)).not.toContain(run.id);
    expect(await store.runs.abandoned(LATER, 100)).toContain(run.id);
    const records = await take(LATER);
    expect(records.filter(Boolean)).toEqual([expect.objectContaining({ id: run.id, recoveries: 1 })]);
    const winner = `t${records.findIndex(Boolean)}`;
    expect(await store.runs.abandoned(LATER, 100)).not.toContain(run.id);
    expect(await store.runs.commit("ann", run.id, "h1", { steps: 7, messages: [reply("late")] })).toBe(false);
    expect(await store.runs.commit("ann", run.id, winner, { messages: [reply("mine")], end: DONE })).toBe(
      true,
    );
    expect(await history(store, "ann", run.sessionId)).toEqual([user("go"), reply("mine")]);
    for (const other of others) await other.close();
  });

  it.runIf(available)("renews all leases of a holder and learns what is to stop", async () => {
    const [one, two, parked] = [
      await begin(store, "ann", { holder: "renewer" }),
      await begin(store, "bob", { holder: "renewer" }),
      await park(store, "ann", ["c"]),
    ];
    expect(await store.runs.askToStop("bob", one.id)).toBe(false);
    expect(await store.runs.renew("renewer", MUCH_LATER)).toEqual([]);
    expect(await store.runs.askToStop("bob", two.id)).toBe(true);
    expect(await store.runs.renew("renewer", MUCH_LATER)).toEqual([two.id]);
    const abandoned = await store.runs.abandoned(LATER, 100);
    for (const run of [one, two, parked]) expect(abandoned).not.toContain(run.id);
    await store.runs.renew("renewer", new Date(0));
    expect((await store.runs.abandoned(NOW, 2)).toSorted()).toEqual([one.id, two.id].toSorted());
    for (const run of [one, two]) await store.runs.takeOver(run.id, "h", NOW, MUCH_LATER);
  });

  it.runIf(available)("decides what is pending and in time, and says who was first", async () => {
    const run = await park(store, "ann", ["a", "b", "c"]);
    const late = await park(store, "ann", ["late"], { expiresAt: LATER });
    const other = await openStore(backend);
    const decisions = await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        (at % 3 ? store : other).runs.decide("ann", run.id, ["a", "b"], at % 2 ? "allowed" : "denied", NOW),
      ),
    );
    await other.close();
    const winners = decisions.filter(({ decided }) => decided.length > 0);
    expect(winners).toHaveLength(1);
    expect(winners[0]!.decided.toSorted()).toEqual(["a", "b"]);
    const state = winners[0]!.calls[0]!.state;
    const now = await store.runs.calls("ann", run.id);
    expect(now.map((call) => [call.callId, call.state, call.decidedAt])).toEqual([
      ["a", state, NOW],
      ["b", state, NOW],
      ["c", "pending", null],
    ]);
    for (const { calls } of decisions) expect(calls).toEqual(now.slice(0, 2));
    const after = await store.runs.decide("ann", late.id, ["late", "none"], "allowed", LATER);
    expect(after).toMatchObject({ decided: [], calls: [{ callId: "late", state: "pending" }] });
    expect(await store.runs.decided(100)).toContainEqual({ owner: "ann", runId: run.id });
    await store.runs.resume("ann", run.id, "h1", LATER);
    expect(await store.runs.decided(100)).not.toContainEqual({ owner: "ann", runId: run.id });
    // A holder who has not seen a decision does not undo it.
    const stale = now.map((call) => ({ ...call, state: "pending" as const, decidedAt: null }));
    await store.runs.commit("ann", run.id, "h1", { calls: stale });
    expect((await store.runs.calls("ann", run.id)).map((call) => call.state)).toEqual([
      state,
      state,
      "pending",
    ]);
    await store.runs.commit("ann", run.id, "h1", { end: DONE });
    expect((await store.runs.decide("ann", run.id, ["c"], "allowed", NOW)).decided).toEqual([]);
  });

  it.runIf(available)("lets calls expire, in a session or all over", async () => {
    const owner = newOwner();
    const [one, two] = [
      await park(store, owner, ["a", "b"], { expiresAt: LATER }),
      await park(store, owner, ["c"], { expiresAt: new Date(LATER.getTime() + 1) }),
    ];
    expect(await store.runs.pending(owner, one.sessionId, NOW)).toMatchObject([
      { callId: "a" },
      { callId: "b" },
    ]);
    const waiting = async (at: Date, limit: number) =>
      (await store.runs.waiting(owner, at, limit)).map((call) => call.callId);
    expect(await waiting(NOW, 9)).toEqual(["a", "b", "c"]);
    expect(await waiting(NOW, 1)).toEqual(["a"]);
    expect(await waiting(LATER, 9)).toEqual(["c"]);
    expect(await store.runs.pending(owner, one.sessionId, LATER)).toEqual([]);
    expect((await store.runs.calls(owner, one.id)).map((call) => call.state)).toEqual(["expired", "expired"]);
    await store.runs.expire(LATER, 1_000);
    expect((await store.runs.calls(owner, two.id)).map((call) => call.state)).toEqual(["pending"]);
    expect(await store.runs.expire(MUCH_LATER, 1_000)).toContainEqual({ owner, runId: two.id });
    expect(await store.runs.expire(MUCH_LATER, 1_000)).toEqual([]);
  });

  it.runIf(available)("finds calls by their code and, the newest first, by their ids", async () => {
    const run = await park(store, "ann", ["x", "y"], { codeHash: "c0de" });
    const foreign = await park(store, "bob", ["x"], { codeHash: "c0de" });
    expect(await store.runs.byCode("ann", "c0de")).toMatchObject([
      { runId: run.id, callId: "x" },
      { runId: run.id, callId: "y" },
    ]);
    expect(await store.runs.byCode("bob", "c0de")).toMatchObject([{ runId: foreign.id }]);
    await store.runs.cancelPaused("ann", run.id, (call) => resultOf(call.callId), CANCELLED);
    const next = newRun(run.sessionId);
    await store.runs.begin("ann", next, []);
    await store.runs.commit("ann", next.id, "h1", { calls: [newCall(next, "x", { step: 4 })] });
    const found = await store.runs.callsById("ann", run.sessionId, ["x", "y", "none"]);
    expect(new Map(found.map((call) => [call.callId, call.runId]))).toEqual(
      new Map([
        ["x", next.id],
        ["y", run.id],
      ]),
    );
  });

  it.runIf(available)("ends a parked run with results for all its calls, in order, once", async () => {
    const run = await park(store, "ann", ["a", "b", "c", "d"]);
    await store.runs.decide("ann", run.id, ["b"], "denied", NOW);
    await store.runs.resume("ann", run.id, "h1", LATER);
    const calls = await store.runs.calls("ann", run.id);
    const done: CallRecord = { ...calls[2]!, state: "done", result: resultOf("c", "ü".repeat(800_000)) };
    await store.runs.commit("ann", run.id, "h1", { calls: [done], end: PAUSED });
    const end = () =>
      store.runs.cancelPaused("ann", run.id, (call) => resultOf(call.callId, "not run"), CANCELLED);
    const ended = await Promise.all([end(), end(), end()]);
    expect(ended.filter(Boolean)).toHaveLength(1);
    const results = [
      resultOf("a", "not run"),
      resultOf("b", "not run"),
      done.result,
      resultOf("d", "not run"),
    ];
    expect(await history(store, "ann", run.sessionId)).toEqual([
      user("go"),
      calling("a", "b", "c", "d"),
      ...results,
    ]);
    const after = await store.runs.calls("ann", run.id);
    expect(after.map((call) => call.state)).toEqual(["cancelled", "denied", "done", "cancelled"]);
    expect(after.map((call) => call.result)).toEqual(results);
    expect(await store.runs.get("ann", run.id)).toMatchObject({
      ...{ status: "stopped", fault: CANCELLED, sealedKey: null, endedAt: NOW },
    });
    expect(await store.runs.begin("ann", newRun(run.sessionId), [])).toEqual({ historySeq: 6 });
  });

  it.runIf(available)("keeps results that are in the history already where they are", async () => {
    const run = await begin(store, "ann");
    const calls = [
      newCall(run, "a", { state: "done", result: resultOf("a") }),
      newCall(run, "b", { position: 1 }),
    ];
    await store.runs.commit("ann", run.id, "h1", {
      messages: [calling("a", "b"), resultOf("a")],
      calls,
      end: PAUSED,
    });
    await store.runs.cancelPaused("ann", run.id, (call) => resultOf(call.callId, "no"), CANCELLED);
    expect(await history(store, "ann", run.sessionId)).toEqual([
      ...[user("go"), calling("a", "b"), resultOf("a"), resultOf("b", "no")],
    ]);
  });

  it.runIf(available)("makes the session with the run, listed or not", async () => {
    const owner = `owner-${crypto.randomUUID()}`;
    const long = "long ".repeat(200_000);
    const listed = newRun(createId("ses"), { newSession: { unlisted: false } });
    const first = [user("Hello there"), reply(long)];
    expect(await store.runs.begin(owner, listed, first)).toEqual({ historySeq: 2 });
    expect(await store.runs.get(owner, listed.id)).toMatchObject({
      ...{ sessionId: listed.sessionId, status: "running", historySeq: 2, spec: SPEC, sealedKey: "sealed" },
    });
    const unlisted = newRun(createId("ses"), { newSession: { unlisted: true } });
    expect(await store.runs.begin(owner, unlisted, [])).toEqual({ historySeq: 0 });
    expect(await store.sessions.get(owner, unlisted.sessionId)).toMatchObject({ title: "", lastSeq: 0 });
    expect(await store.sessions.list(owner, { limit: 9 })).toMatchObject({
      sessions: [{ id: listed.sessionId, title: "Hello there", messageCount: 2 }],
    });
    expect(await history(store, owner, listed.sessionId)).toEqual(first);

    const next = newRun(listed.sessionId);
    expect(await store.runs.begin(owner, next, [])).toMatchObject({ inTheWay: { id: listed.id } });
    expect(await store.runs.commit(owner, listed.id, "h1", { messages: [reply("yes")], end: DONE })).toBe(
      true,
    );
    expect(await store.runs.begin(owner, next, [user("more")])).toEqual({ historySeq: 4 });
  });

  it.runIf(available)(
    "keeps what a run needs to go on as long as it may, and what lists show for ever",
    async () => {
      const run = await begin(store, "ann");
      expect(await store.runs.commit("ann", run.id, "h1", { end: PAUSED })).toBe(true);
      expect((await store.runs.get("ann", run.id))?.spec).toEqual(SPEC);
      expect(await store.runs.resume("ann", run.id, "h1", LATER)).toMatchObject({ spec: SPEC });
      expect(await store.runs.commit("ann", run.id, "h1", { end: DONE })).toBe(true);
      const ended = (await store.runs.get("ann", run.id))?.spec;
      expect(ended).toMatchObject({
        door: "chat",
        agent: "dragoman",
        request: { model: "gpt" },
        tools: ["look"],
      });
      expect(ended?.request.system).toBeUndefined();
    },
  );

  it.runIf(available)("gives the frames of a run in order, wherever they are kept", async () => {
    const run = await begin(store, "ann");
    const frames = [1, 2, 3].map((n) => ({ first: n, last: n, text: `data: ${n}\n\n` }));
    for (const [at, one] of frames.entries()) {
      const end = at === 2 ? DONE : undefined;
      expect(await store.runs.commit("ann", run.id, "h1", { frames: one, end })).toBe(true);
    }
    expect(await store.runs.frames("ann", run.id, 0, 9)).toEqual(frames);
    expect(await store.runs.frames("ann", run.id, 0, 2)).toEqual(frames.slice(0, 2));
    expect(await store.runs.frames("ann", run.id, 2, 9)).toEqual(frames.slice(2));
    expect(await store.runs.frames("ann", run.id, 3, 9)).toEqual([]);
    const silent = await begin(store, "ann");
    expect(await store.runs.commit("ann", silent.id, "h1", { end: DONE })).toBe(true);
    expect(await store.runs.frames("ann", silent.id, 0, 9)).toEqual([]);
    const wordy = await begin(store, "ann");
    const much = { first: 1, last: 4, text: "x".repeat(20_000) };
    expect(await store.runs.commit("ann", wordy.id, "h1", { frames: much, end: DONE })).toBe(true);
    expect(await store.runs.frames("ann", wordy.id, 0, 9)).toEqual([much]);
  });

  it.runIf(available)("keeps what is longer than a value: specs, arguments, results, frames", async () => {
    const long = `${"x".repeat(749_990)}${"😀".repeat(20)}${"ü".repeat(2_000_000)}`;
    const spec = { ...SPEC, agent: long };
    const run = await begin(store, "ann", { spec });
    const call = newCall(run, "\0weird \ud800", { args: long, state: "done", result: resultOf("w", long) });
    const frames = [1, 2, 3].map((n) => ({ first: 2 * n - 1, last: 2 * n, text: `${n}${long}` }));
    for (const one of frames)
      await store.runs.commit("ann", run.id, "h1", { calls: [call], frames: one, messages: [reply(long)] });
    const record = await store.runs.get("ann", run.id);
    expect(record?.spec.agent === long).toBe(true);
    const [kept, ...others] = await store.runs.calls("ann", run.id);
    expect(others).toEqual([]);
    expect(kept?.callId).toBe("weird \ufffd");
    expect(kept?.args === long && JSON.stringify(kept.result) === JSON.stringify(resultOf("w", long))).toBe(
      true,
    );
    const stored = await store.runs.frames("ann", run.id, 0, 10);
    expect(stored.every((one, at) => one.text === frames[at]?.text)).toBe(true);
    expect((await store.runs.frames("ann", run.id, 2, 1)).map((one) => one.last)).toEqual([4]);
    expect((await store.runs.frames("ann", run.id, 3, 9)).map((one) => one.last)).toEqual([4, 6]);
  });

  it.runIf(available)("lists newest first, in pages, of one session or of all", async () => {
    const owner = newOwner();
    const runs: string[] = [];
    for (let at = 0; at < 5; at++) {
      store.clock.now = new Date(NOW.getTime() + Math.floor(at / 2));
      runs.push((await begin(store, owner)).id);
    }
    store.clock.now = NOW;
    const seen: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await store.runs.list(owner, { limit: 2, cursor });
      seen.push(...page.runs.map((run) => run.id));
      if (page.next === null) break;
      cursor = page.next;
    }
    expect(seen.toSorted()).toEqual(runs.toSorted());
    expect(seen[0]).toBe(runs[4]);
    const sessionId = (await store.runs.get(owner, runs[0]!))!.sessionId;
    expect(await store.runs.list(owner, { sessionId, limit: 2 })).toMatchObject({
      runs: [{ id: runs[0] }],
      next: null,
    });
    for (const cursor of ["", "x", btoa("[1]"), btoa('["a",1]'), btoa('[1,"\\ud800"]'), btoa("{}")])
      await expect(store.runs.list(owner, { limit: 2, cursor })).rejects.toMatchObject({
        code: "invalid_request",
      });
  });

  it.runIf(available)("shows another owner nothing, and lets it change nothing", async () => {
    const run = await park(store, "ann", ["a"], { codeHash: "f0e" });
    const { runs } = store;
    const before = [await runs.get("ann", run.id), await runs.calls("ann", run.id)];
    const result = (call: CallRecord) => resultOf(call.callId);
    expect(await runs.get("eve", run.id)).toBeNull();
    expect((await runs.list("eve", { limit: 9 })).runs).toEqual([]);
    expect((await runs.list("eve", { sessionId: run.sessionId, limit: 9 })).runs).toEqual([]);
    expect(await runs.calls("eve", run.id)).toEqual([]);
    expect(await runs.pending("eve", run.sessionId, MUCH_LATER)).toEqual([]);
    expect(await runs.waiting("eve", NOW, 9)).toEqual([]);
    expect(await runs.byCode("eve", "f0e")).toEqual([]);
    expect(await runs.callsById("eve", run.sessionId, ["a"])).toEqual([]);
    expect(await runs.decide("eve", run.id, ["a"], "allowed", NOW)).toEqual({ calls: [], decided: [] });
    expect(await runs.resume("eve", run.id, "h", LATER)).toBeNull();
    expect(await runs.askToStop("eve", run.id)).toBe(false);
    expect(await runs.cancelPaused("eve", run.id, result, CANCELLED)).toBe(false);
    expect(await runs.frames("eve", run.id, 0, 9)).toEqual([]);
    await expect(runs.begin("eve", newRun(run.sessionId), [])).rejects.toMatchObject({ code: "not_found" });
    expect([await runs.get("ann", run.id), await runs.calls("ann", run.id)]).toEqual(before);
  });

  it.runIf(available)("goes with its session, with all that hangs from it", async () => {
    const owner = newOwner();
    const long = "ü".repeat(800_000);
    const run = await begin(store, owner, { spec: { ...SPEC, agent: long } });
    const frames = { first: 1, last: 1, text: long };
    await store.runs.commit(owner, run.id, "h1", {
      ...{ messages: [reply(long)], calls: [newCall(run, "a", { args: long })], frames },
    });
    await store.sessions.grant(owner, run.sessionId, [{ tool: "look", decision: "allow" }]);
    await store.sessions.summarise(owner, run.sessionId, { upTo: 1, text: "s" });
    await store.sessions.list(owner, { query: "go", limit: 1 });
    await store.sessions.delete(owner, run.sessionId);
    expect(await store.runs.commit(owner, run.id, "h1", { messages: [reply("x")] })).toBe(false);
    const database = await backend.open();
    const tables = ["sessions", "messages", "message_pieces", "session_grants", "session_summaries", "runs"];
    for (const table of [...tables, "run_calls", "run_frames", "run_pieces"]) {
      const sql = `SELECT count(*) AS rows FROM ${table} WHERE owner IN (?, '')`;
      const { rows } = await database.read.execute({ sql, args: [owner] });
      expect([table, rows[0]?.rows]).toEqual([table, 0]);
    }
    const orphans = `SELECT count(*) AS rows FROM search_index_docsize
      WHERE id NOT IN (SELECT row FROM messages UNION SELECT -row FROM sessions)`;
    expect((await database.read.execute(orphans)).rows[0]?.rows).toBe(0);
    closeDatabase(database);
  });
});
