import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  createHome,
  createService,
  done,
  json,
  ofType,
  readEvents,
  START,
  type TestHome,
  type TestOptions,
  type TestService,
} from "../http/service.ts";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";

let home: TestHome;
const open: TestService[] = [];

beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());
beforeEach(() => {
  done.length = 0;
  home.clock.now = START;
});
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

async function start(replies: ScriptedReply[], options: Partial<TestOptions> = {}): Promise<TestService> {
  const service = await createService(home, { model: scriptedModel(replies), ...options });
  open.push(service);
  return service;
}

const write: ScriptedReply = { text: "I write.", calls: [{ id: "call_w", name: "write", args: { n: 1 } }] };

describe("whose key a run goes on with", () => {
  test("not with the operator's, where the caller's could not be kept", async () => {
    const service = await start([write, { text: "no" }]);
    service.services.agent.vault = undefined;
    const body = { message: "x", api_key: "sk-caller" };
    const { session_id, run_id } = await json(await service.post("/api/chat", body));
    const approval = { session_id, approved: true };
    const answer = await service.post("/api/chat/approve", approval);
    expect(answer.status).toBe(401);
    expect(await json(answer)).toMatchObject({ detail: expect.stringContaining("SECRET_KEY") });
    expect(service.keys).toEqual(["sk-caller"]);
    expect(done).toEqual([]);
    expect(await json(await service.request(`/api/runs/${run_id}`))).toMatchObject({ status: "failed" });
    const calls = await service.store.runs.calls("local", run_id);
    expect(calls).toMatchObject([{ state: "cancelled", result: { failed: true } }]);
  });

  test("with the operator's where the caller brought none", async () => {
    const service = await start([write, { text: "ok" }]);
    const { session_id } = await json(await service.post("/api/chat", { message: "x" }));
    await service.post("/api/chat/approve", { session_id, approved: true });
    expect(service.keys).toEqual(["sk-operator", "sk-operator"]);
  });
});

describe("a run that goes on", () => {
  test("counts its steps and tokens on, keeps its settings, and says all of its reply", async () => {
    const model = scriptedModel([write, write, { text: "Twice." }]);
    const service = await start([], { model });
    const first = await json(
      await service.post("/api/chat", {
        message: "x",
        system_instruction: "Be brief.",
        allowed_tools: ["write"],
        max_steps: 3,
      }),
    );
    const second = await json(
      await service.post("/api/chat/approve", { session_id: first.session_id, approved: true }),
    );
    expect(second).toMatchObject({ auth_required: true, usage: { input_tokens: 20, output_tokens: 10 } });
    const { events } = await readEvents(
      await service.post("/api/chat/approve", { session_id: first.session_id, approved: true, stream: true }),
    );
    expect(events.at(-1)).toMatchObject({
      type: "done",
      reply: "I write.\n\nI write.\n\nTwice.",
      usage: { input_tokens: 30, output_tokens: 15 },
    });
    expect(ofType(events, "content").map(({ content }) => content)).toEqual(["\n\nTwice."]);
    for (const request of model.requests) {
      expect(request.system.at(-1)).toEqual({ type: "text", text: "Be brief." });
      expect(request.tools.map((tool) => tool.name)).toEqual(["write"]);
    }
    const run = await json(await service.request(`/api/runs/${first.run_id}`));
    expect(run).toMatchObject({ steps: 3, status: "completed" });
    const { messages } = await json(await service.request(`/api/sessions/${first.session_id}/messages`));
    expect(messages.map((message: { role: string }) => message.role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
      "tool",
      "assistant",
    ]);
    expect(messages.at(-1).id).toBe((events.at(-1) as { message_id: string }).message_id);
  });

  test("a limit counts over its pauses", async () => {
    const service = await start([write]);
    const { session_id } = await json(await service.post("/api/chat", { message: "x", max_steps: 1 }));
    const end = await json(await service.post("/api/chat/approve", { session_id, approved: true }));
    expect(end).toMatchObject({ stop_reason: "limit_reached" });
    expect(done).toEqual(["write 1"]);
  });
});

test("a session on /v1: the server's history comes first, and only what is new is kept", async () => {
  const model = scriptedModel([{ text: "one" }, { text: "two" }]);
  const service = await start([], { model });
  const ask = (messages: unknown[]) =>
    service.post("/v1/chat/completions", { model: "m", messages }, { "x-session-id": "mine" });
  const first = await ask([{ role: "user", content: "a" }]);
  await ask([{ role: "user", content: "b" }]);
  expect(model.requests[1]?.messages.map((message) => message.role)).toEqual(["user", "assistant", "user"]);
  const id = first.headers.get("x-session-id");
  expect(await json(await service.request(`/api/sessions/${id}`))).toMatchObject({ message_count: 4 });
  const last = await ask([{ role: "assistant", content: "two" }]);
  expect(last.status).toBe(400);
});
