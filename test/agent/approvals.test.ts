import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type DecisionWish, decideCalls } from "../../src/agent/approvals.ts";
import { AppError } from "../../src/errors.ts";
import {
  createHome,
  createService,
  done,
  json,
  START,
  type TestHome,
  type TestService,
} from "../http/service.ts";
import { scriptedModel } from "../scripted-model.ts";

let home: TestHome;
let service: TestService;

beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());
beforeEach(() => {
  done.length = 0;
  home.clock.now = START;
});
afterEach(() => service.close());

async function parked(
  calls: { id: string; name: string; args: unknown }[],
): Promise<{ session_id: string; run_id: string }> {
  service = await createService(home, { model: scriptedModel([{ calls }, { text: "ok" }]) });
  return json(await service.post("/api/chat", { message: "x" }));
}

const write = (id: string, args: unknown) => ({ id, name: "write", args });
const wish = (sessionId: string, change: Partial<DecisionWish> = {}): DecisionWish => ({
  ...{ sessionId, selected: [], approved: true, scope: "once", ...change },
});

describe("what a client says of a call", () => {
  test("is compared as it was shown: key order is nothing, values are all", async () => {
    const { session_id } = await parked([write("c1", { path: "a", n: 1 })]);
    const say = (args: unknown) =>
      decideCalls(service.services.agent, "local", wish(session_id, { selected: [{ id: "c1", args }] }));
    for (const args of [{ path: "a" }, { path: "a", n: "1" }, { path: "a", n: 1, x: null }, {}, []])
      await expect(say(args)).rejects.toMatchObject({ code: "conflict" });
    expect(await say({ n: 1, path: "a" })).toMatchObject({ repeated: false, calls: [{ state: "allowed" }] });
    expect(await say({ n: 1, path: "a" })).toMatchObject({ repeated: true });
  });

  test("text that is no JSON object is shown, and compared, under _raw", async () => {
    const { session_id } = await parked([write("c1", { n: 1 })]);
    const { agent } = service.services;
    const { callsById } = agent.store.runs;
    agent.store.runs = new Proxy(agent.store.runs, {
      get: (target, name: "callsById") =>
        name === "callsById"
          ? async (...args: Parameters<typeof callsById>) =>
              (await callsById(...args)).map((call) => ({ ...call, args: "[1" }))
          : target[name],
    });
    const say = (args: unknown) =>
      decideCalls(agent, "local", wish(session_id, { selected: [{ id: "c1", args }] }));
    await expect(say({ n: 1 })).rejects.toMatchObject({ code: "conflict" });
    expect(await say({ _raw: "[1" })).toMatchObject({ repeated: false });
  });

  test("one wrong call among several: nothing is decided", async () => {
    const { session_id, run_id } = await parked([write("c1", { n: 1 }), write("c2", { n: 2 })]);
    const selected = [{ id: "c1" }, { id: "c2", args: { n: 3 } }];
    await expect(
      decideCalls(service.services.agent, "local", wish(session_id, { selected })),
    ).rejects.toMatchObject({ code: "conflict" });
    const calls = await service.store.runs.calls("local", run_id);
    expect(calls.map((call) => call.state)).toEqual(["pending", "pending"]);
  });
});

describe("P2: the first answer wins", () => {
  test("whatever is decided at once, each call has one decision, and those who differ are told", async () => {
    const decisions = fc.array(
      fc.record({
        approved: fc.boolean(),
        selected: fc.subarray([{ id: "c1" }, { id: "c2" }, { id: "c3" }]),
      }),
      { minLength: 2, maxLength: 8 },
    );
    service = await createService(home, { model: scriptedModel([]) });
    await fc.assert(
      fc.asyncProperty(decisions, async (wishes) => {
        await service.close();
        const { session_id, run_id } = await parked(["c1", "c2", "c3"].map((id, n) => write(id, { n })));
        const { agent } = service.services;
        const answers = await Promise.allSettled(
          wishes.map((each) => decideCalls(agent, "local", wish(session_id, each))),
        );
        const calls = await service.store.runs.calls("local", run_id);
        for (const [i, answer] of answers.entries()) {
          const { approved } = wishes[i] as (typeof wishes)[number];
          if (answer.status === "rejected") {
            expect(answer.reason).toBeInstanceOf(AppError);
            expect(["conflict", "not_found"]).toContain(answer.reason.code);
            continue;
          }
          for (const { callId } of answer.value.calls)
            expect(calls.find((call) => call.callId === callId)?.state).toBe(approved ? "allowed" : "denied");
        }
      }),
      { numRuns: 15 },
    );
  });
});

describe("P3: what a session's grant binds", () => {
  test.each([
    [{ path: "docs/a.md" }, { path: "docs/b.md" }, true],
    [{ path: "docs/a.md" }, { path: "src/b.md" }, false],
    [{ path: "docs/a.md" }, { path: "docs/../b.md" }, false],
    [{ path: "a.md" }, { path: "b.md" }, false],
    [{ path: "docs/*" }, { path: "docs/b.md" }, false],
  ])("%j approved for the session, then %j: unasked %s", async (first, then, unasked) => {
    const model = scriptedModel([
      { calls: [write("c1", first)] },
      { text: "one" },
      { calls: [write("c2", then)] },
      { text: "two" },
    ]);
    service = await createService(home, { model });
    const { session_id } = await json(await service.post("/api/chat", { message: "x" }));
    await json(await service.post("/api/chat/approve", { session_id, approved: true, scope: "session" }));
    const next = await json(await service.post("/api/chat", { message: "y", session_id }));
    expect(next.auth_required).toBe(!unasked);
  });

  test("E4: is never a tool that makes something for later: it asks each time", async () => {
    const watch = (id: string, directory: string) => ({
      id,
      name: "watch",
      args: { action: "x", directory },
    });
    const model = scriptedModel([
      { calls: [watch("c1", "a")] },
      { text: "one" },
      { calls: [watch("c2", "b")] },
      { text: "two" },
    ]);
    service = await createService(home, { model, tools: "own" });
    const { session_id } = await json(await service.post("/api/chat", { message: "x" }));
    const approval = { session_id, approved: true, scope: "session" };
    expect(await json(await service.post("/api/chat/approve", approval))).toMatchObject({ reply: "one" });
    const made = async () => (await json(await service.request("/api/watchdog"))).watchdogs.length;
    const next = await json(await service.post("/api/chat", { message: "y", session_id }));
    expect([next.auth_required, await made()]).toEqual([true, 1]);
  });
});
