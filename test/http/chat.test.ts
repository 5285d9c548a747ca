import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";
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
} from "./service.ts";

let home: TestHome;
let service: TestService;
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

async function start(replies: ScriptedReply[], options: Partial<TestOptions> = {}) {
  const model = scriptedModel(replies);
  service = await createService(home, { model, ...options });
  open.push(service);
  return model;
}

const write = (id: string, n: number) => ({ id, name: "write", args: { n } });
const asks = (...ids: string[]): ScriptedReply => ({
  text: "I write.",
  calls: ids.map((id, i) => write(id, i)),
});

/** A run that waits for somebody to decide on the calls of one turn. */
async function park(...ids: string[]) {
  const reply = await json(await service.post("/api/chat", { message: "write" }));
  expect(reply).toMatchObject({ auth_required: true });
  expect((reply.pending_calls as { id: string }[]).map(({ id }) => id)).toEqual(ids);
  return reply as unknown as { session_id: string; run_id: string; pending_calls: { id: string }[] };
}

const approve = (body: Record<string, unknown>, headers?: Record<string, string>) =>
  service.post("/api/chat/approve", body, headers);

describe("POST /api/chat", () => {
  test("whole: the reply, its session, its messages", async () => {
    await start([{ text: "hello" }]);
    const response = await service.post("/api/chat", { message: "hi" });
    expect(response.status).toBe(200);
    const body = await json(response);
    expect(body).toMatchObject({
      reply: "hello",
      auth_required: false,
      pending_calls: [],
      tools: [],
      usage: { input_tokens: 10, output_tokens: 5 },
      stop_reason: "stop",
    });
    expect(response.headers.get("x-run-id")).toBe(body.run_id);
    const { messages } = await json(await service.request(`/api/sessions/${body.session_id}/messages`));
    expect(messages).toMatchObject([
      { role: "user", content: "hi" },
      { role: "assistant", content: "hello", id: body.message_id, usage: { input_tokens: 10 } },
    ]);
  });

  test("streamed: session, content, tools, done, numbered from 1", async () => {
    await start([
      { text: "let me see", calls: [{ id: "c1", name: "look", args: { n: 1 } }] },
      { reasoning: "hm", text: "seen" },
    ]);
    const response = await service.post("/api/chat", { message: "look", stream: true });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    const { text, events } = await readEvents(response);
    expect(events.map((event) => event.type)).toEqual([
      "session",
      "content",
      "tool_call",
      "tool_progress",
      "tool_result",
      "reasoning",
      "content",
      "done",
    ]);
    expect([...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))).toEqual(
      events.map((_, i) => i + 1),
    );
    expect(events.at(-1)).toMatchObject({
      reply: "let me see\n\nseen",
      auth_required: false,
      message_id: /^msg_/,
    });
  });

  test("a session goes on with its history", async () => {
    const model = await start([{ text: "one" }, { text: "two" }]);
    const first = await json(await service.post("/api/chat", { message: "a" }));
    const second = await json(
      await service.post("/api/chat", { message: "b", session_id: first.session_id }),
    );
    expect(second.session_id).toBe(first.session_id);
    expect(model.requests[1]?.messages).toMatchObject([
      { role: "user", content: [{ text: "a" }] },
      { role: "assistant", content: [{ text: "one" }] },
      { role: "user", content: [{ text: "b" }] },
    ]);
  });

  test.each([
    [{ message: "" }, 400, "message"],
    [{ message: "x", stream: "yes" }, 400, "stream"],
    [{ message: "x", session_id: "ses_nobody" }, 404, undefined],
    [{ message: "x", session_id: "my label" }, 404, "session_id"],
    [{ message: "x", agent_name: "nobody" }, 404, "agent_name"],
    [{ message: "x", model: "dragoman/nobody" }, 404, "model"],
    [{ message: "x", swarm: { mode: "quarrel" } }, 400, "swarm.mode"],
    [{ message: "x", auto_approve: true }, 403, "auto_approve"],
    [{ message: "x", provider: "anthropic" }, 401, undefined],
    [{ message: "x", max_steps: 1000 }, 400, "max_steps"],
  ])("%j is refused with %i", async (body, status, param) => {
    await start([{ text: "no" }]);
    const response = await service.post("/api/chat", body);
    expect(response.status).toBe(status);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    const problem = await json(response);
    expect(problem.status).toBe(status);
    if (param) expect(problem.param).toBe(param);
    if (status === 400 && param !== "max_steps") expect(problem.errors).toMatchObject([{ path: param }]);
  });

  test("a fault before the upstream's first word is a problem with its status, and the session is there", async () => {
    // The scripted model opens first, as an upstream that fails before its first event does not.
    const model = {
      ...scriptedModel([]),
      async *stream() {
        yield {
          type: "failed",
          fault: { code: "rate_limited", message: "Slow down.", status: 429, retryAfter: 7 },
        } as const;
      },
    };
    await start([], { model });
    for (const stream of [true, false]) {
      const response = await service.post("/api/chat", { message: "x", stream });
      expect(response.status).toBe(429);
      expect(response.headers.get("retry-after")).toBe("7");
      expect(await json(response)).toMatchObject({ code: "rate_limited", detail: "Slow down." });
      const run = await json(await service.request(`/api/runs/${response.headers.get("x-run-id")}`));
      expect(run).toMatchObject({ status: "failed", error: { code: "rate_limited", status: 429 } });
      expect((await service.request(`/api/sessions/${run.session_id}`)).status).toBe(200);
    }
  });

  test("a fault after it is the error event, once, and the session still works", async () => {
    await start([
      { text: "half", fault: { code: "upstream_error", message: "It broke.", status: 502 } },
      { text: "whole" },
    ]);
    const { events } = await readEvents(await service.post("/api/chat", { message: "x", stream: true }));
    expect(events.map((event) => event.type)).toEqual(["session", "content", "error"]);
    expect(events.at(-1)).toMatchObject({ error: "It broke.", code: "upstream_error" });
    const [session] = ofType(events, "session");
    const next = await service.post("/api/chat", { message: "y", session_id: session?.session_id });
    expect(await json(next)).toMatchObject({ reply: "whole" });
  });

  test("allowed_tools: only these; others are named", async () => {
    const model = await start([{ text: "ok" }]);
    const response = await service.post("/api/chat", {
      message: "x",
      allowed_tools: ["look", "github__search"],
      stream: true,
    });
    const { events } = await readEvents(response);
    expect(events[0]).toMatchObject({ type: "session", unavailable_tools: ["github__search"] });
    expect(model.requests[0]?.tools.map((tool) => tool.name)).toEqual(["look"]);
  });

  test("auto_approve, where the operator allows it, asks nobody; max_steps ends", async () => {
    await start([asks("a")], { env: { ALLOW_AUTO_APPROVE: "1" } });
    const body = await json(
      await service.post("/api/chat", { message: "x", auto_approve: true, max_steps: 2 }),
    );
    expect(body).toMatchObject({ auth_required: false, stop_reason: "limit_reached" });
    expect(done).toEqual(["write 0", "write 0"]);
  });

  test("K1: the caller's key is used, and stands nowhere in clear", async () => {
    await start([asks("a"), { text: "ok" }]);
    const key = "sk-canary-5c1d9f00";
    const parked = await json(await service.post("/api/chat", { message: "x", api_key: key }));
    const record = await service.store.runs.get("local", parked.run_id);
    expect(record?.sealedKey).toBeTruthy();
    expect(JSON.stringify(record)).not.toContain(key);
    expect(JSON.stringify(service.logged)).not.toContain(key);
    service.keys.length = 0;
    await json(await approve({ session_id: parked.session_id, approved: true }));
    expect(service.keys).toEqual([key]);
    expect((await service.store.runs.get("local", parked.run_id))?.sealedKey).toBeNull();
  });
});

describe("POST /api/chat/approve", () => {
  test("what is stored runs, once, and the run goes on", async () => {
    const model = await start([asks("call_a"), { text: "written" }]);
    const { session_id, run_id } = await park("call_a");
    expect(done).toEqual([]);
    const body = await json(await approve({ session_id, approved: true }));
    expect(done).toEqual(["write 0"]);
    expect(body).toMatchObject({
      run_id,
      reply: "I write.\n\nwritten",
      auth_required: false,
      tools: [{ id: "call_a", name: "write", args: { n: 0 }, output: "write has done 0", is_error: false }],
    });
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: "tool", callId: "call_a" });
  });

  test("denied: the model is told, and the run goes on", async () => {
    const model = await start([asks("call_b"), { text: "as you like" }]);
    const { session_id } = await park("call_b");
    const { events } = await readEvents(await approve({ session_id, approved: false, stream: true }));
    expect(events.map((event) => event.type)).toEqual(["session", "tool_result", "content", "done"]);
    expect(events[1]).toMatchObject({ id: "call_b", is_error: true });
    expect(done).toEqual([]);
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: "tool", failed: true });
  });

  test("tampered: 409, and nothing runs", async () => {
    await start([asks("call_c"), { text: "ok" }]);
    const { session_id, pending_calls } = await park("call_c");
    for (const change of [{ args: { n: 7 } }, { name: "look" }]) {
      const pending = [{ ...pending_calls[0], ...change }];
      const response = await approve({ session_id, approved: true, pending_calls: pending });
      expect(response.status).toBe(409);
    }
    expect(done).toEqual([]);
    const response = await approve({ session_id, approved: true, pending_calls });
    expect(response.status).toBe(200);
    expect(done).toEqual(["write 0"]);
  });

  test("unknown calls and sessions: 404", async () => {
    await start([asks("call_d"), { text: "ok" }]);
    const { session_id } = await park("call_d");
    expect((await approve({ session_id, approved: true, pending_calls: ["call_nobody"] })).status).toBe(404);
    expect((await approve({ session_id: "ses_nobody", approved: true })).status).toBe(404);
    expect(done).toEqual([]);
  });

  test("expired: 410, and the run has ended", async () => {
    await start([asks("call_e"), { text: "ok" }]);
    const { session_id, run_id } = await park("call_e");
    home.clock.now = new Date(START.getTime() + 24 * 60 * 60 * 1000 + 1);
    expect((await approve({ session_id, approved: true })).status).toBe(410);
    expect((await approve({ session_id, approved: true, pending_calls: ["call_e"] })).status).toBe(410);
    expect(done).toEqual([]);
    expect(await json(await service.request(`/api/runs/${run_id}`))).toMatchObject({ status: "stopped" });
    const next = await service.post("/api/chat", { message: "again", session_id });
    expect(await json(next)).toMatchObject({ reply: "ok" });
  });

  test("again in the same way: the stored outcome; in the other way: 409", async () => {
    await start([asks("call_f"), { text: "written" }]);
    const { session_id } = await park("call_f");
    const wishes = [{}, { pending_calls: ["call_f"] }, { pending_calls: ["call_f"], stream: true }];
    const first = await (await approve({ session_id, approved: true })).text();
    for (const wish of wishes.slice(0, 2))
      expect(await (await approve({ session_id, approved: true, ...wish })).text()).toBe(first);
    const streamed = await readEvents(await approve({ session_id, approved: true, ...wishes[2] }));
    expect(streamed.events.at(-1)).toMatchObject({ type: "done", reply: "I write.\n\nwritten" });
    for (const wish of wishes)
      expect((await approve({ session_id, approved: false, ...wish })).status).toBe(409);
    expect(done).toEqual(["write 0"]);
  });

  test("some calls of a turn leave the others pending", async () => {
    const model = await start([asks("call_g", "call_h", "call_i"), { text: "written" }]);
    const { session_id } = await park("call_g", "call_h", "call_i");
    const body = await json(await approve({ session_id, approved: true, pending_calls: ["call_h"] }));
    expect(done).toEqual(["write 1"]);
    expect(body).toMatchObject({ auth_required: true, pending_calls: [{ id: "call_g" }, { id: "call_i" }] });
    const denied = await json(await approve({ session_id, approved: false, pending_calls: ["call_g"] }));
    expect(denied).toMatchObject({ auth_required: true, pending_calls: [{ id: "call_i" }] });
    expect(model.requests).toHaveLength(1);
    const last = await json(await approve({ session_id, approved: true }));
    expect(last).toMatchObject({ auth_required: false, reply: "I write.\n\nwritten" });
    expect(done).toEqual(["write 1", "write 2"]);
    expect(model.requests[1]?.messages.slice(-3)).toMatchObject([
      { callId: "call_g", failed: true },
      { callId: "call_h" },
      { callId: "call_i" },
    ]);
  });

  test("nothing pending: 404", async () => {
    await start([{ text: "ok" }]);
    const { session_id } = await json(await service.post("/api/chat", { message: "x" }));
    expect((await approve({ session_id, approved: true })).status).toBe(404);
  });

  test("scope session: the same kind of call is not asked about again", async () => {
    await start([asks("call_j"), { text: "one" }, asks("call_k"), { text: "two" }]);
    const { session_id } = await park("call_j");
    await json(await approve({ session_id, approved: true, scope: "session" }));
    const next = await json(await service.post("/api/chat", { message: "more", session_id }));
    expect(next).toMatchObject({ auth_required: false });
    expect(done).toEqual(["write 0", "write 0"]);
  });

  test("a message instead of a decision: the run gives way, and its call never runs", async () => {
    const model = await start([asks("call_l"), { text: "well then" }]);
    const { session_id, run_id } = await park("call_l");
    expect(await json(await service.post("/api/chat", { message: "never mind", session_id }))).toMatchObject({
      reply: "well then",
    });
    expect(done).toEqual([]);
    expect(model.requests[1]?.messages.slice(-2)).toMatchObject([
      { role: "tool", callId: "call_l", failed: true },
      { role: "user" },
    ]);
    expect(await json(await service.request(`/api/runs/${run_id}`))).toMatchObject({ status: "stopped" });
    expect((await approve({ session_id, approved: true, pending_calls: ["call_l"] })).status).toBe(409);
  });

  test("another process approves what the first has parked", async () => {
    await start([asks("call_m")]);
    const { session_id } = await park("call_m");
    service.kill();
    await start([{ text: "written by another" }]);
    expect(await json(await approve({ session_id, approved: true }))).toMatchObject({
      reply: "I write.\n\nwritten by another",
      message_id: /^msg_/,
    });
    expect(done).toEqual(["write 0"]);
  });

  test("an approval race has one outcome and one execution", async () => {
    await start([asks("call_n"), { text: "done" }]);
    const { session_id } = await park("call_n");
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        approve({ session_id, approved: i % 2 === 0, pending_calls: ["call_n"] }),
      ),
    );
    const statuses = answers.map((answer) => answer.status);
    const allowed = done.length === 1;
    expect(done.length).toBeLessThan(2);
    expect(statuses).toEqual(statuses.map((_, i) => ((i % 2 === 0) === allowed ? 200 : 409)));
  });
});
