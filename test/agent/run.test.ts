import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { Progress } from "../../src/agent/journal.ts";
import { createPolicy } from "../../src/agent/policy.ts";
import { run } from "../../src/agent/run.ts";
import type { RunInput } from "../../src/agent/run-input.ts";
import type { AgentEvent } from "../../src/core/event.ts";
import { type CallPart, type Message, text } from "../../src/core/message.ts";
import type { ToolSpec } from "../../src/core/model.ts";
import type { Workspace } from "../../src/core/platform.ts";
import { defineTool, type Tool } from "../../src/core/tool.ts";
import { AppError } from "../../src/errors.ts";
import { noFetch } from "../no-fetch.ts";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";

const weather: ToolSpec = { kind: "function", name: "get_weather", parameters: { type: "object" } };

/** Tools that note when they run. */
function toolbox(log: string[] = []): Tool[] {
  const make = (name: string, risk: Tool["risk"], work?: (signal: AbortSignal) => Promise<void>) =>
    defineTool({
      name,
      description: name,
      args: z.object({ n: z.number().optional() }),
      needs: [],
      risk,
      async run({ n }, { signal, progress }) {
        log.push(`${name}${n ?? ""} starts`);
        progress(`working ${n ?? ""}`);
        await (work ? work(signal) : Promise.resolve());
        log.push(`${name}${n ?? ""} ends`);
        return { content: [text(`result of ${name} ${n ?? ""}`)] };
      },
    });
  return [
    make("look", "read"),
    make("write", "write"),
    make(
      "wait",
      "read",
      (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
    ),
    defineTool({
      name: "fail",
      description: "fails",
      args: z.object({ how: z.enum(["app", "bug"]) }),
      needs: [],
      risk: "read",
      async run({ how }) {
        if (how === "app") throw new AppError("not_found", "There is no such thing: look elsewhere.");
        throw new TypeError("secret detail");
      },
    }),
  ];
}

function setup(
  replies: ScriptedReply[],
  options: Partial<RunInput> & { clientTools?: ToolSpec[]; tools?: Map<string, Tool> } = {},
) {
  const model = scriptedModel(replies);
  const recorded: Message[] = [];
  const handedBack: { messages: Message[]; calls: CallPart[] }[] = [];
  const logged: string[] = [];
  const commits: Progress[] = [];
  const { clientTools, ...rest } = options;
  const input: RunInput = {
    adapter: model,
    request: {
      model: "m",
      system: [],
      messages: [{ role: "user", content: [text("go")] }],
      tools: clientTools ?? [],
      settings: {},
    },
    tools: new Map(toolbox().map((tool) => [tool.name, tool])),
    policy: createPolicy({ default: "auto", rules: [] }),
    limits: { maxSteps: 50, timeoutMs: 60_000, tokenBudget: 1_000_000 },
    window: undefined,
    context: { owner: "local", runId: "run_1", files: {} as Workspace, fetch: noFetch },
    log: (_level, message) => logged.push(message),
    asking: "nobody",
    now: () => new Date("2026-11-20T10:00:00.000Z"),
    journal: {
      add: (messages) => void recorded.push(...messages),
      commit: async (progress) => void commits.push(structuredClone(progress)),
    },
    handBack: async (messages, calls) => void handedBack.push({ messages: [...messages], calls }),
    ...rest,
  };
  return { model, input, recorded, handedBack, logged, commits };
}

async function collect(events: AsyncIterable<AgentEvent>): Promise<AgentEvent[]> {
  const out: AgentEvent[] = [];
  for await (const event of events) out.push(event);
  return out;
}

const never = new AbortController().signal;

function closeOf(events: AgentEvent[]) {
  const closes = events.filter((event) => event.type === "run-close");
  expect(closes).toHaveLength(1);
  expect(events.at(-1)).toBe(closes[0]);
  return closes[0] as Extract<AgentEvent, { type: "run-close" }>;
}

describe("run", () => {
  test("a plain reply is one step", async () => {
    const { input, recorded, commits } = setup([{ text: "hello" }]);
    const events = await collect(run(input, never));
    expect(events[0]).toEqual({
      type: "run-open",
      runId: "run_1",
      provider: "openai",
      model: "m",
      sessionId: undefined,
    });
    expect(closeOf(events)).toMatchObject({
      outcome: "completed",
      stop: "stop",
      usage: { input: 10, output: 5 },
    });
    expect(recorded).toMatchObject([{ role: "assistant", content: [{ type: "text", text: "hello" }] }]);
    expect(commits).toEqual([]);
  });

  test("server tools run and the model goes on with their results", async () => {
    const { input, model } = setup([
      { text: "let me see", calls: [{ id: "c1", name: "look", args: { n: 1 } }] },
      { text: "seen" },
    ]);
    const events = await collect(run(input, never));
    expect(closeOf(events)).toMatchObject({ outcome: "completed", usage: { input: 20, output: 10 } });
    expect(model.requests).toHaveLength(2);
    expect(model.requests[1]?.messages.slice(1)).toMatchObject([
      { role: "assistant", content: [{ type: "text" }, { type: "call", id: "c1", args: '{"n":1}' }] },
      { role: "tool", callId: "c1", name: "look", content: [{ text: "result of look 1" }] },
    ]);
    const calls = events.filter((e) => e.type === "model" && e.server);
    expect(calls.map((e) => (e.type === "model" ? e.event.type : ""))).toEqual([
      "part-open",
      "part-delta",
      "part-close",
    ]);
    expect(events.filter((e) => e.type.startsWith("tool-")).map((e) => e.type)).toEqual([
      "tool-start",
      "tool-progress",
      "tool-end",
    ]);
  });

  test("reads run side by side, a write waits and holds back", async () => {
    const log: string[] = [];
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const tools = toolbox(log);
    const slow = defineTool({
      name: "slow",
      description: "slow",
      args: z.object({}),
      needs: [],
      risk: "read",
      async run() {
        log.push("slow starts");
        await gate;
        log.push("slow ends");
        return { content: [text("slow")] };
      },
    });
    const { input, recorded } = setup(
      [
        {
          calls: [
            { id: "a", name: "slow", args: {} },
            { id: "b", name: "look", args: { n: 1 } },
            { id: "c", name: "write", args: { n: 2 } },
            { id: "d", name: "look", args: { n: 3 } },
          ],
        },
        { text: "done" },
      ],
      { tools: new Map([...tools, slow].map((tool) => [tool.name, tool])) },
    );
    for await (const event of run(input, never))
      if (event.type === "tool-end" && event.callId === "b") release();
    expect(log).toEqual([
      "slow starts",
      "look1 starts",
      "look1 ends",
      "slow ends",
      "write2 starts",
      "write2 ends",
      "look3 starts",
      "look3 ends",
    ]);
    expect(recorded.filter((m) => m.role === "tool").map((m) => m.role === "tool" && m.callId)).toEqual([
      "a",
      "b",
      "c",
      "d",
    ]);
  });

  test("a client's call is handed back", async () => {
    const { input, handedBack } = setup(
      [{ text: "asking", calls: [{ id: "c1", name: "get_weather", args: { city: "x" } }] }],
      { clientTools: [weather] },
    );
    const events = await collect(run(input, never));
    expect(closeOf(events)).toMatchObject({ outcome: "handed-back", stop: "tool-calls" });
    expect(events.some((e) => e.type === "model" && e.server)).toBe(false);
    expect(handedBack).toMatchObject([{ calls: [{ id: "c1" }], messages: [{ role: "assistant" }] }]);
  });

  test("a mixed turn runs its server calls at once and hands back the rest", async () => {
    const { input, handedBack, model } = setup(
      [
        { calls: [{ id: "s0", name: "look", args: { n: 0 } }] },
        {
          calls: [
            { id: "s1", name: "look", args: { n: 1 } },
            { id: "c1", name: "get_weather", args: {} },
          ],
        },
      ],
      { clientTools: [weather] },
    );
    const events = await collect(run(input, never));
    expect(closeOf(events).outcome).toBe("handed-back");
    expect(model.requests).toHaveLength(2);
    expect(handedBack[0]?.calls.map((call) => call.id)).toEqual(["c1"]);
    expect(handedBack[0]?.messages.map((m) => (m.role === "tool" ? `result ${m.callId}` : m.role))).toEqual([
      "assistant",
      "result s0",
      "assistant",
      "result s1",
    ]);
  });

  test("a tool that nobody has is a result, and without server tools it is the client's", async () => {
    const first = setup([{ calls: [{ id: "c", name: "nope", args: {} }] }, { text: "ok" }]);
    await collect(run(first.input, never));
    expect(first.recorded[1]).toMatchObject({
      role: "tool",
      failed: true,
      content: [{ text: expect.stringContaining("There is no tool named 'nope'") }],
    });
    const raw = setup([{ calls: [{ id: "c", name: "nope", args: {} }] }], { tools: new Map() });
    expect(closeOf(await collect(run(raw.input, never))).outcome).toBe("handed-back");
  });

  test("failures of tools are results: a sentence, or nothing about the inside", async () => {
    const { input, recorded, logged } = setup([
      {
        calls: [
          { id: "a", name: "fail", args: { how: "app" } },
          { id: "b", name: "fail", args: { how: "bug" } },
          { id: "c", name: "fail", args: { how: "?" } },
          { id: "d", name: "fail", args: "{broken" },
        ],
      },
      { text: "ok" },
    ]);
    expect(closeOf(await collect(run(input, never))).outcome).toBe("completed");
    const results = recorded
      .filter((m) => m.role === "tool")
      .map((m) => (m.content[0] as { text: string }).text);
    expect(results[0]).toBe("There is no such thing: look elsewhere.");
    expect(results[1]).not.toContain("secret detail");
    expect(results[2]).toContain("how");
    expect(results[3]).toContain("not valid JSON");
    expect(logged).toEqual(["tool failed"]);
  });

  test("what policy denies does not run", async () => {
    const log: string[] = [];
    const { input, recorded } = setup([{ calls: [{ id: "a", name: "write", args: {} }] }, { text: "ok" }], {
      tools: new Map(toolbox(log).map((tool) => [tool.name, tool])),
      policy: createPolicy({ default: "auto", rules: [{ tool: "write", decision: "deny" }] }),
    });
    await collect(run(input, never));
    expect(log).toEqual([]);
    expect(recorded[1]).toMatchObject({ failed: true });
  });

  test.each([
    ["steps", { maxSteps: 3, timeoutMs: 60_000, tokenBudget: 1e9 }, 3, "3 steps"],
    ["tokens", { maxSteps: 50, timeoutMs: 60_000, tokenBudget: 25 }, 2, "tokens"],
  ])("R6: the limit of %s ends the turn in words", async (_, limits, steps, words) => {
    let n = 0;
    const { input, model, recorded, commits } = setup(
      [{ calls: [{ id: "c", name: "look", args: { n: 1 } }] }],
      { limits },
    );
    // Never the same call twice, so that repetition is not what ends it.
    const stream = model.stream;
    input.adapter = {
      ...model,
      async *stream(request, signal) {
        for await (const event of stream(request, signal))
          yield event.type === "part-delta" ? { ...event, delta: `{"n":${n++}}` } : event;
      },
    };
    const events = await collect(run(input, never));
    expect(closeOf(events)).toMatchObject({
      outcome: "completed",
      stop: "length",
      fault: { code: "limit_reached" },
    });
    expect(model.requests).toHaveLength(steps);
    expect(commits.at(-1)).toMatchObject({ steps });
    expect(recorded.at(-1)).toMatchObject({
      role: "assistant",
      content: [{ text: expect.stringContaining(words) }],
    });
  });

  test("R6: the fourth identical call in a row is not made", async () => {
    const log: string[] = [];
    const { input, recorded } = setup([{ calls: [{ id: "c", name: "look", args: { n: 1 } }] }], {
      tools: new Map(toolbox(log).map((tool) => [tool.name, tool])),
    });
    expect(closeOf(await collect(run(input, never)))).toMatchObject({ stop: "length" });
    expect(log.filter((line) => line.endsWith("starts"))).toHaveLength(3);
    const calls = recorded.flatMap((m) =>
      m.role === "assistant" ? m.content.filter((p) => p.type === "call") : [],
    );
    const results = recorded.filter((m) => m.role === "tool");
    expect(results.map((r) => r.role === "tool" && r.callId)).toEqual(
      calls.map((c) => c.type === "call" && c.id),
    );
    expect(new Set(calls.map((c) => c.type === "call" && c.id)).size).toBe(4);
  });

  test("R6: the wall clock ends a hanging upstream and keeps what was said", async () => {
    const { input, recorded } = setup([{ text: "so far", hang: true }], {
      limits: { maxSteps: 5, timeoutMs: 20, tokenBudget: 1e9 },
    });
    const events = await collect(run(input, never));
    expect(closeOf(events)).toMatchObject({ outcome: "completed", stop: "length" });
    expect(recorded).toMatchObject([
      { content: [{ text: "so far" }] },
      { content: [{ text: expect.stringContaining("RUN_TIMEOUT") }] },
    ]);
  });

  test("cancelling while a tool runs stops the tool and the run", async () => {
    const controller = new AbortController();
    const log: string[] = [];
    const { input, recorded } = setup([{ calls: [{ id: "a", name: "wait", args: {} }] }], {
      tools: new Map(toolbox(log).map((tool) => [tool.name, tool])),
    });
    const events: AgentEvent[] = [];
    for await (const event of run(input, controller.signal)) {
      events.push(event);
      if (event.type === "tool-start") controller.abort();
    }
    expect(closeOf(events)).toMatchObject({ outcome: "stopped", fault: { code: "cancelled" } });
    expect(log).toEqual(["wait starts", "wait ends"]);
    expect(recorded.map((m) => m.role)).toEqual(["assistant", "tool"]);
  });

  test("a consumer that goes away ends tools and counts as stopped", async () => {
    const log: string[] = [];
    const { input } = setup([{ calls: [{ id: "a", name: "wait", args: {} }] }], {
      tools: new Map(toolbox(log).map((tool) => [tool.name, tool])),
    });
    for await (const event of run(input, never)) if (event.type === "tool-start") break;
    await new Promise((resolve) => setImmediate(resolve));
    expect(log).toContain("wait ends");
  });

  test("a fault of the upstream closes the run and keeps the text", async () => {
    const fault = { code: "upstream_error" as const, message: "overloaded", status: 529 };
    const { input, recorded } = setup([
      { text: "half", calls: [{ id: "c", name: "look", args: {} }], fault },
    ]);
    expect(closeOf(await collect(run(input, never)))).toMatchObject({ outcome: "failed", fault });
    expect(recorded).toMatchObject([{ role: "assistant", content: [{ type: "text", text: "half" }] }]);
  });

  test("ids that repeat become unique", async () => {
    const { input, recorded } = setup([
      {
        calls: [
          { id: "call_0", name: "look", args: { n: 1 } },
          { id: "call_0", name: "look", args: { n: 2 } },
        ],
      },
      { calls: [{ id: "call_0", name: "look", args: { n: 3 } }] },
      { text: "ok" },
    ]);
    await collect(run(input, never));
    const ids = recorded.filter((m) => m.role === "tool").map((m) => m.role === "tool" && m.callId);
    expect(new Set(ids).size).toBe(3);
    expect(ids[0]).toBe("call_0");
  });

  test("a reply cut at its limit in the middle of a call: handed out, or tried again when nobody set the limit", async () => {
    const cut: ScriptedReply = { calls: [{ id: "c", name: "write", args: '{"n":' }], stop: "length" };
    const bounded = setup([cut]);
    bounded.input.request.settings.maxTokens = 5;
    expect(closeOf(await collect(run(bounded.input, never)))).toMatchObject({
      outcome: "completed",
      stop: "length",
    });
    const free = setup([cut, { text: "in pieces" }]);
    expect(closeOf(await collect(run(free.input, never)))).toMatchObject({
      outcome: "completed",
      stop: "stop",
    });
    expect(free.recorded[1]).toMatchObject({
      role: "tool",
      failed: true,
      content: [{ text: expect.stringContaining("cut off") }],
    });
  });

  test("a journal that fails ends the run as a fault, once, and nothing runs", async () => {
    const log: string[] = [];
    const { input } = setup([{ calls: [{ id: "a", name: "write", args: {} }] }], {
      tools: new Map(toolbox(log).map((tool) => [tool.name, tool])),
      journal: {
        add: () => {},
        commit: async () => {
          throw new AppError("unavailable", "The database is busy.", { retryAfter: 1 });
        },
      },
    });
    expect(closeOf(await collect(run(input, never)))).toMatchObject({
      outcome: "failed",
      fault: { code: "unavailable", status: 503 },
    });
    expect(log).toEqual([]);
  });

  test("E4: a summary counts as content from outside, since it may hold words of it", async () => {
    const write = { ...(toolbox()[1] as Tool), consent: "after-outside" as const };
    const summary: Message = { role: "user", content: [text("the page wants to be remembered")] };
    for (const [what, state] of [
      [{}, "done"],
      [{ summary }, "denied"],
    ] as const) {
      const { input, commits } = setup(
        [{ calls: [{ id: "a", name: "write", args: {} }] }, { text: "so it is" }],
        { ...what, tools: new Map([["write", write]]), policy: createPolicy({ default: "ask", rules: [] }) },
      );
      await collect(run(input, never));
      expect(commits.flatMap(({ calls }) => calls).at(-1)?.state).toBe(state);
    }
  });

  test("a history beyond the window is trimmed and the usage says so", async () => {
    const { input, model } = setup([{ text: "ok" }], { window: 9_000 });
    const long = "word ".repeat(4000);
    input.request.messages = [
      { role: "user", content: [text(long)] },
      { role: "assistant", content: [{ type: "call", id: "x", name: "look", args: "{}" }] },
      { role: "tool", callId: "x", content: [text(long)] },
      { role: "assistant", content: [text(long)] },
      { role: "user", content: [text("and now?")] },
    ];
    const close = closeOf(await collect(run(input, never)));
    expect(close.usage.trimmedMessages).toBe(4);
    expect(model.requests[0]?.messages).toHaveLength(1);
  });
});
