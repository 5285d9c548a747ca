import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Passed } from "../../src/agent/journal.ts";
import type { Turn } from "../../src/agent/turn.ts";
import { AppError } from "../../src/errors.ts";
import { createHome, createService, json, START, type TestHome, type TestService } from "../http/service.ts";
import { scriptedModel } from "../scripted-model.ts";

let home: TestHome;
let service: TestService;
const never = new AbortController().signal;

beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());
beforeEach(async () => {
  home.clock.now = START;
  service = await createService(home, { model: scriptedModel([{ text: "hello" }]) });
});
afterEach(() => service.close());

/** A turn that a test writes by hand, over a row that is really there. */
async function handmade(from = 1) {
  const { store, services } = service;
  const session = await store.sessions.open("local", "new");
  const runId = `run_${crypto.randomUUID()}`;
  const holder = services.agent.holder;
  const spec = { door: "chat", provider: "openai", agent: "dragoman", tools: [] } as const;
  const request = { model: "m", system: [], messages: [], tools: [], settings: {} };
  const run = {
    id: runId,
    sessionId: session.id,
    spec: { ...spec, request, tools: [] },
    sealedKey: null,
    holder,
  };
  await store.runs.begin("local", { ...run, leaseUntil: new Date(START.getTime() + 15_000) }, []);
  const queue: Passed[] = [];
  let wake = () => {};
  let over = false;
  let stored = 0;
  let seq = from;
  async function* events(): AsyncGenerator<Passed, void, void> {
    for (;;) {
      const next = queue.shift();
      if (next) yield next;
      else if (over) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  }
  const turn: Turn = {
    runId,
    sessionId: session.id,
    events: events(),
    firstSeq: from,
    storedSeq: () => stored,
  };
  const text = (n: number, length: number) => `id: ${n}\ndata: ${"x".repeat(length)}\n\n`;
  return {
    ...{ runId, turn },
    say(length: number) {
      queue.push({
        event: { type: "tool-progress", step: 0, callId: "c", delta: "" },
        frames: [{ seq, text: text(seq++, length) }],
      });
      wake();
    },
    async keep(length: number) {
      const last = seq - 1;
      const pieces = Array.from({ length: last - stored }, (_, i) => text(stored + 1 + i, length)).join("");
      await store.runs.commit("local", runId, holder, { frames: { first: stored + 1, last, text: pieces } });
      stored = last;
    },
    async end(length: number) {
      const frame = { seq, text: text(seq++, length) };
      await store.runs.commit("local", runId, holder, {
        frames: {
          first: stored + 1,
          last: frame.seq,
          text: Array.from({ length: frame.seq - stored }, (_, i) => text(stored + 1 + i, length)).join(""),
        },
        end: { status: "completed", stop: "stop" },
      });
      stored = frame.seq;
      queue.push({
        event: { type: "run-close", outcome: "completed", stop: "stop", usage: { input: 0, output: 0 } },
        frames: [frame],
      });
      over = true;
      wake();
    },
  };
}

const turnsOfTheLoop = () => new Promise((resolve) => setImmediate(resolve));

describe("readers of a live run", () => {
  test("one that is far behind finds in the store what is no longer in memory", async () => {
    const { runs } = service.services;
    const run = await handmade();
    runs.drive("local", run.turn, new AbortController());
    const slow = runs.read("local", run.runId, 0, never);
    const size = 100 * 1024;
    run.say(size);
    const seen = [(await slow.next()).value?.seq];
    for (let i = 0; i < 5; i++) run.say(size);
    await turnsOfTheLoop();
    await run.keep(size);
    for (let i = 0; i < 3; i++) run.say(size);
    await turnsOfTheLoop();
    await run.end(size);
    for await (const frame of slow) {
      expect(frame.text).toHaveLength(`id: ${frame.seq}\ndata: \n\n`.length + size);
      seen.push(frame.seq);
    }
    expect(seen).toEqual(Array.from({ length: 10 }, (_, i) => i + 1));
  });

  test("many at once get the same, and one that goes is forgotten", async () => {
    const { runs } = service.services;
    const run = await handmade();
    runs.drive("local", run.turn, new AbortController());
    const gone = new AbortController();
    const readAll = async (signal: AbortSignal) => {
      let text = "";
      for await (const frame of runs.read("local", run.runId, 0, signal)) text += frame.text;
      return text;
    };
    const readers = Array.from({ length: 50 }, () => readAll(never));
    const left = readAll(gone.signal);
    run.say(10);
    await turnsOfTheLoop();
    gone.abort();
    expect(await left).toContain("id: 1\n");
    run.say(10);
    await run.end(10);
    const texts = new Set(await Promise.all(readers));
    expect(texts.size).toBe(1);
    expect([...texts][0]).toContain("id: 3\n");
  });

  test("another owner reads nothing", async () => {
    const { runs } = service.services;
    const run = await handmade();
    runs.drive("local", run.turn, new AbortController());
    run.say(10);
    expect(await runs.read("bob", run.runId, 0, never).next()).toEqual({ done: true, value: undefined });
    await run.end(10);
  });
});

describe("an end that could not be stored", () => {
  test("is tried again; until then the session is busy", async () => {
    const { runs, agent } = service.services;
    let gone = true;
    agent.store.runs = new Proxy(agent.store.runs, {
      get: (target, name: "commit") =>
        name === "commit" && gone
          ? () => Promise.reject(new AppError("unavailable", "The database is gone.", { retryAfter: 1 }))
          : target[name],
    });
    const failed = await service.post("/api/chat", { message: "a" });
    expect(failed.status).toBe(503);
    expect(failed.headers.get("retry-after")).toBe("1");
    const runId = failed.headers.get("x-run-id");
    expect(await json(await service.request(`/api/runs/${runId}`))).toMatchObject({ status: "running" });
    gone = false;
    await runs.recover();
    const run = await json(await service.request(`/api/runs/${runId}`));
    expect(run).toMatchObject({ status: "failed", error: { code: "unavailable" } });
    const next = await service.post("/api/chat", { message: "b", session_id: run.session_id });
    expect(await json(next)).toMatchObject({ reply: "hello" });
  });
});

describe("leases", () => {
  test("are given up when the service closes, and another goes on at once", async () => {
    const response = await (async () => {
      const model = scriptedModel([{ text: "…", hang: true }]);
      const first = await createService(home, { model });
      const answer = await first.post("/api/chat", { message: "a", stream: true });
      await first.services.close();
      first.kill();
      return answer;
    })();
    const runId = response.headers.get("x-run-id");
    await service.services.runs.recover();
    const events = await service.request(`/api/runs/${runId}/events`);
    expect(await events.text()).toContain('"type":"done","reply":"hello"');
  });
});
