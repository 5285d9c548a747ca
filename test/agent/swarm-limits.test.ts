/** R6: what bounds a swarm: places, names, sizes, tokens, and what is counted when it ends before its time. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SwarmShare } from "../../src/agent/swarm-share.ts";
import { json, ofType } from "../http/service.ts";
import { delegate } from "./swarm-scene.ts";
import {
  agentsOf,
  leads,
  resultsOf,
  roles,
  runsOf,
  stages,
  streamed,
  swarm,
  until,
  watched,
} from "./swarm-service.ts";

const { start } = stages();
const turn = () => new Promise<void>((resolve) => setTimeout(resolve, 1));

describe("SWARM_CONCURRENCY", () => {
  test("holds for all calls of a run together", async () => {
    const service = await start(
      ({ who, results }) => {
        if (who !== "") return { text: who, until: turn() };
        if (results.length > 0) return { text: "All in all." };
        const one = delegate(roles("a", "b", "c"), "call_1").calls ?? [];
        const other = delegate(roles("d", "e", "f"), "call_2").calls ?? [];
        return { calls: [...one, ...other] };
      },
      { env: { SWARM_CONCURRENCY: "2" } },
    );
    const events = await streamed(service, "/api/chat", swarm());
    expect(agentsOf(events).filter((each) => each.endsWith("completed"))).toHaveLength(6);
    expect(service.model.most).toBe(2);
    expect(events.at(-1)).toMatchObject({ type: "done" });
  });

  test("counts members below members, and who waits for its own gives them its place", async () => {
    const service = await start(
      ({ who, results, request }) => {
        const may = request.tools.some(({ name }) => name === "delegate");
        if (may && results.length === 0)
          return delegate([1, 2, 3].map((n) => ({ agent: "self", task: `${n}` })));
        return { text: `end of ${who}`, until: turn() };
      },
      { env: { SWARM_CONCURRENCY: "1", SWARM_DEPTH: "3" } },
    );
    await service.post("/api/agents", { name: "self", sub_agents: ["self"] });
    const events = await streamed(service, "/api/chat", { message: "Go.", agent_name: "self" });
    expect(agentsOf(events).filter((each) => each.endsWith("completed"))).toHaveLength(3 + 9 + 27);
    expect(service.model.most).toBe(1);
    expect(events.at(-1)).toMatchObject({ type: "done" });
  });

  test("whatever is lent and taken back, no more than so many work, and nobody waits for ever", async () => {
    interface Task {
      below: Task[];
      calls: number;
    }
    const calls = fc.integer({ min: 1, max: 2 });
    const task = (depth: number): fc.Arbitrary<Task> =>
      fc.record({
        below: depth === 0 ? fc.constant([]) : fc.array(task(depth - 1), { maxLength: 3 }),
        calls,
      });
    await fc.assert(
      fc.asyncProperty(
        fc.array(task(2), { maxLength: 4 }),
        fc.integer({ min: 1, max: 3 }),
        async (tasks, limit) => {
          const share = new SwarmShare();
          const { signal } = new AbortController();
          let working = 0;
          let ids = 0;
          const work = async () => {
            expect(++working).toBeLessThanOrEqual(limit);
            await Promise.resolve();
            working--;
          };
          const all = (each: Task[]): Promise<unknown> =>
            Promise.all(
              each.map((one) => {
                const id = `run_${ids++}`;
                return share.placed([id], limit, signal, async () => {
                  await work();
                  const call = async () => {
                    share.lend(id);
                    await all(one.below);
                    await share.takeBack(id, limit, signal);
                  };
                  await Promise.all(Array.from({ length: one.calls }, call));
                  await work();
                });
              }),
            );
          await all(tasks);
          expect(working).toBe(0);
        },
      ),
      { numRuns: 100 },
    );
  });

  test("who is to stop waits for no place", async () => {
    const share = new SwarmShare();
    const { signal } = new AbortController();
    const stop = new AbortController();
    const first = Promise.withResolvers<void>();
    const held = share.placed(["a"], 1, signal, () => first.promise);
    const stopped = share.placed(["b"], 1, stop.signal, async () => "b");
    const next = share.placed(["c"], 1, signal, async () => "c");
    stop.abort();
    expect(await stopped).toBe("b");
    first.resolve();
    await held;
    expect(await next).toBe("c");
  });
});

test("A5: members are no runs of their own for MAX_RUNS, nor requests for RATE_LIMIT", async () => {
  const service = await start(
    leads(roles("a", "b", "c", "d", "e"), ({ who }) => ({ text: who })),
    {
      env: { MAX_RUNS: "1", RATE_LIMIT: "2", SWARM_CONCURRENCY: "5" },
    },
  );
  for (const _ of [1, 2]) {
    const events = await streamed(service, "/api/chat", swarm());
    expect(resultsOf(events).map(({ status }: { status: string }) => status)).toEqual(
      Array(5).fill("completed"),
    );
  }
  expect((await service.post("/api/chat", swarm())).status).toBe(429);
});

test("a name is one member's in all of the run, in calls side by side and behind one another", async () => {
  const gate = Promise.withResolvers<void>();
  const service = await start(({ who, results }) => {
    if (who !== "")
      return {
        text: `I am ${who}.`,
        ...(who === "bee" ? { until: gate.promise } : { until: turn().then(() => gate.resolve()) }),
      };
    if (results.length === 2) return delegate(roles("bee"), "call_3");
    if (results.length > 2) return { text: "All in all." };
    const [one] = delegate(roles("bee"), "call_1").calls ?? [];
    const [other] = delegate(roles("bee", "bee"), "call_2").calls ?? [];
    return { calls: [one, other].flatMap((call) => call ?? []) };
  });
  const events = await streamed(service, "/api/chat", swarm());
  const names = ["bee", "bee 2", "bee 3", "bee 4"];
  expect(agentsOf(events).filter((each) => each.endsWith("started"))).toEqual(
    names.map((name) => `${name} started`),
  );
  for (const name of names) {
    const said = ofType(events, "content").filter(({ agent }) => agent === name);
    expect(said.map(({ content }) => content).join("")).toBe(`I am ${name}.`);
  }
  expect(events.at(-1)).toMatchObject({ type: "done", reply: "I delegate.\n\nAll in all." });
});

describe("results", () => {
  test("are bounded, each and together", async () => {
    const long = "x".repeat(300_000);
    const count = 20;
    const service = await start(
      leads(roles(...Array.from({ length: count }, (_, n) => `m${n}`)), () => ({ text: long })),
    );
    const events = await streamed(service, "/api/chat", swarm());
    for (const { result } of resultsOf(events)) expect(result).toMatch(/… \[cut\]$/);
    expect(JSON.stringify(resultsOf(events)).length).toBeLessThan(300_000);
  });

  test("JSON that is too long or too deep has one turn to be made fit", async () => {
    const deep = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;
    const tasks = ["long", "deep", "mended"].map((role) => ({ role, task: "x", schema: {} }));
    const service = await start(
      leads(tasks, ({ who, said }) => {
        const second = said.startsWith("Your result is not what was asked for");
        if (who === "mended" && second) return { text: '["fine"]' };
        return { text: who === "long" ? JSON.stringify("y".repeat(100_000)) : deep };
      }),
    );
    const events = await streamed(service, "/api/chat", swarm());
    expect(resultsOf(events)).toMatchObject([
      { status: "failed", error: expect.stringContaining("characters long") },
      { status: "failed", error: expect.stringContaining("64 levels") },
      { status: "completed", result: ["fine"] },
    ]);
    expect(service.model.who().filter((who) => who !== "")).toHaveLength(6);
  });

  test("of nobody: a member that says nothing has failed, and the others have not", async () => {
    const service = await start(
      leads(roles("mute", "talks"), ({ who }) => ({ text: who === "mute" ? "" : "words" })),
    );
    expect(resultsOf(await streamed(service, "/api/chat", swarm()))).toEqual([
      { agent: "mute", status: "failed", error: expect.stringContaining("without saying") },
      { agent: "talks", status: "completed", result: "words" },
    ]);
  });
});

describe("a schema", () => {
  test("that is no use is said at once, before a member is asked; one that cannot be checked is noted", async () => {
    const tree = { properties: { children: { items: { $ref: "#" } } } };
    const deep = JSON.parse(`${'{"items":'.repeat(80)}{}${"}".repeat(80)}`);
    const schemas = [{ $ref: "https://example.com/s" }, { $ref: "#/$defs/none" }, deep, tree];
    const service = await start(
      leads(
        schemas.map((schema) => ({ role: "m", task: "x", schema })),
        () => ({ text: '{"children": []}' }),
      ),
    );
    const events = await streamed(service, "/api/chat", swarm());
    expect(resultsOf(events)).toMatchObject([
      { status: "failed", error: expect.stringContaining("example.com") },
      { status: "failed", error: expect.stringContaining("nowhere") },
      { status: "failed", error: expect.stringContaining("64") },
      { status: "completed", result: { children: [] }, note: expect.stringContaining("not checked") },
    ]);
    expect(service.model.who().filter((who) => who !== "")).toHaveLength(1);
  });
});

describe("tokens of a swarm that ends before its time", () => {
  const usage = { input: 100, output: 1 };
  const scene = () =>
    start(
      leads(roles("done", "works"), ({ who, results }) => {
        if (who === "done") return { text: "ready", usage };
        if (results.length === 0) return { calls: [{ id: "l", name: "look", args: {} }], usage };
        return { text: "I begin", hang: true };
      }),
    );

  test("are the run's, also those of members that were stopped in the middle", async () => {
    const service = await scene();
    const lead = await watched(service);
    await until(() => service.model.heard.length === 4);
    await service.post(`/api/runs/${lead.runId}/stop`, {});
    await lead.over;
    // One call of the lead's and two of members'.
    expect((await lead.run()).usage).toEqual({ input_tokens: 210, output_tokens: 7 });
    const [, ...members] = await runsOf(service, lead.runId);
    expect(members.map(({ status }) => status).sort()).toEqual(["completed", "stopped"]);
  });
});

test("the list of agents in the tool's description is bounded", async () => {
  const service = await start(() => ({ text: "alone" }));
  for (let n = 0; n < 60; n++)
    await service.post("/api/agents", { name: `agent-${n}`, description: "d".repeat(1000) });
  await json(await service.post("/api/chat", swarm()));
  const { tools } = service.model.heard[0]?.request ?? { tools: [] };
  const text = JSON.stringify(tools.find(({ name }) => name === "delegate"));
  expect(text).toContain("agent-59: ddd");
  expect(text.length).toBeLessThan(16_000);
});
