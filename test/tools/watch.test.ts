/** The agent's own tool for what happens later, and how it is listed and cancelled. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { RunRecord } from "../../src/core/run.ts";
import type { ToolContext } from "../../src/core/tool.ts";
import type { Watcher } from "../../src/core/watch.ts";
import { createWatch } from "../../src/tools/watch.ts";
import {
  createHome,
  createService,
  json,
  ofType,
  readEvents,
  type TestHome,
  type TestService,
} from "../http/service.ts";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";

let home: TestHome;
let service: TestService;
beforeEach(async () => {
  env = {};
  home = await createHome();
});
afterEach(async () => {
  await service.close();
  await home.close();
});

const call = (name: string, args: unknown): ScriptedReply => ({
  calls: [{ id: `call_${name}`, name, args }],
});

let env: Record<string, string> = {};
async function serve(...replies: ScriptedReply[]) {
  const model = scriptedModel([...replies, { text: "so" }, { text: "so" }]);
  service = await createService(home, { model, tools: "own", env });
  return model;
}

const ask = async (body: object = {}) =>
  json(await service.post("/api/chat", { message: "when it happens", ...body }));
const watchdogs = async () => (await json(await service.request("/api/watchdog"))).watchdogs;

/** Allows what the run waits for, and returns the result of the call. */
async function allow(session_id: string): Promise<string> {
  const decision = { session_id, approved: true, stream: true };
  const { events } = await readEvents(await service.post("/api/chat/approve", decision));
  return String(ofType(events, "tool_result").at(-1)?.output);
}

test("P1: watch asks; what it makes has the run's key and is listed", async () => {
  const args = { action: "sort the mail", directory: "in", pattern: "*.eml", allowed_tools: ["read_file"] };
  const model = await serve(call("watch", args), { text: "watching" }, call("list_schedules", {}));
  const { auth_required, pending_calls, session_id } = await ask({ api_key: "sk-of-the-caller-123" });
  expect([auth_required, pending_calls[0].name, await watchdogs()]).toEqual([true, "watch", []]);
  expect(await allow(session_id)).toMatch(/^Watching as wdg_\w+ \(sort the mail\)/);
  expect(await watchdogs()).toMatchObject([
    { ...args, has_api_key: true, provider: "openai", interval_seconds: 60, debounce_seconds: 2 },
  ]);
  await ask();
  const seen = JSON.stringify(model.requests.at(-1)?.messages);
  expect(seen).toContain("sort the mail");
  expect(seen).toContain("every 60 s a look at");
});

test("P1: a watchdog gets no tool that the conversation has not, named or not, at its checks neither", async () => {
  const has = { allowed_tools: ["watch", "recall"] };
  const rules = [{ tool: "run_terminal_command", args: { command: "date" }, decision: "allow" }];
  env = { APPROVAL: JSON.stringify({ default: "ask", rules }) };
  for (const [fields, sentence] of [
    [{ directory: "in", allowed_tools: ["run_terminal_command"] }, "no tool run_terminal_command itself"],
    [{ directory: "in", allowed_tools: ["*"] }, "has no tool * itself"],
    [{ directory: "in" }, "has only some of the tools"],
    [{ command: "date", allowed_tools: ["recall"] }, "command: "],
  ] as const) {
    await serve(call("watch", { action: "x", ...fields }));
    const { session_id } = await ask(has);
    expect(await allow(session_id)).toContain(sentence);
    expect(await watchdogs()).toEqual([]);
    await service.close();
  }
  await serve(call("watch", { action: "x", directory: "in", allowed_tools: ["recall"] }));
  expect(await allow((await ask(has)).session_id)).toContain("Watching as wdg_");
  expect(await watchdogs()).toMatchObject([{ allowed_tools: ["recall"], agent_name: null }]);
});

test("P1: what a named agent watches for is done by that agent", async () => {
  await serve(call("watch", { action: "x", directory: "in" }));
  const tools = ["watch", "recall"];
  expect((await service.post("/api/agents", { name: "gardener", tools })).status).toBe(201);
  const { session_id } = await ask({ agent_name: "gardener" });
  expect(await allow(session_id)).toContain("Watching as wdg_");
  expect(await watchdogs()).toMatchObject([{ agent_name: "gardener", allowed_tools: null }]);
});

test("K1: where the caller's key could not be kept, nothing watches that would use the operator's", async () => {
  await serve();
  const { spec, ...rest } = {
    sealedKey: null,
    spec: { provider: "openai", agent: "dragoman", tools: [], request: { model: "m" }, callersKey: true },
  };
  const watcher = { create: () => expect.unreachable("nothing may be watched") } as unknown as Watcher;
  const context = { owner: "ann", runId: "run_1" } as ToolContext;
  for (const [run, sentence] of [
    [{ spec, ...rest } as unknown as RunRecord, "SECRET_KEY"],
    [null, "not kept"],
  ] as const) {
    const tool = createWatch(watcher, { get: async () => run });
    const { content, failed } = await tool.run({ action: "x", directory: "in" }, context);
    expect([failed, JSON.stringify(content)]).toEqual([true, expect.stringContaining(sentence)]);
  }
});

test("cancel_schedule takes a watchdog too, by its own name only", async () => {
  await serve();
  const fields = { action: "act", name: "inbox", directory: "in" };
  const { watchdog_id: id } = await json(await service.post("/api/watchdog", fields));
  await service.close();
  await serve(
    call("cancel_schedule", { id, name: "outbox" }),
    call("cancel_schedule", { id, name: "inbox" }),
  );
  const { session_id } = await ask();
  expect(await allow(session_id)).toContain('It is "inbox"');
  expect(await watchdogs()).toHaveLength(1);
  expect(await allow(session_id)).toContain("Deleted wdg_");
  expect(await watchdogs()).toEqual([]);
});

test("what cannot be watched is told to the model", async () => {
  await serve(call("watch", { action: "act", directory: "../elsewhere" }));
  expect(await allow((await ask()).session_id)).toContain("directory:");
  expect(await watchdogs()).toEqual([]);
});
