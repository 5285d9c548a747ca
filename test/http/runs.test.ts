import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";
import {
  createHome,
  createService,
  done,
  json,
  readEvents,
  START,
  type TestHome,
  type TestOptions,
  type TestService,
  toolbox,
} from "./service.ts";

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

/** A tool that waits until it is let go, or is stopped. */
function gated() {
  let open = () => {};
  let entered = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const reached = new Promise<void>((resolve) => {
    entered = resolve;
  });
  const tools = toolbox(async (_, signal) => {
    entered();
    await Promise.race([
      gate,
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
    ]);
  });
  return { tools, reached, open: () => open() };
}

const look: ScriptedReply = { text: "I look.", calls: [{ id: "call_look", name: "look", args: { n: 1 } }] };
const write: ScriptedReply = {
  text: "I write.",
  calls: [{ id: "call_write", name: "write", args: { n: 1 } }],
};
const AUTO = { APPROVAL: "auto" };

async function streamed(service: TestService, message = "go") {
  const response = await service.post("/api/chat", { message, stream: true });
  return { response, runId: response.headers.get("x-run-id") as string };
}

describe("GET /api/runs", () => {
  test("a run with what it waits for; newest first, page by page", async () => {
    const service = await start([write, { text: "ok" }]);
    const runs: string[] = [];
    for (let i = 0; i < 3; i++) {
      home.clock.now = new Date(START.getTime() + i * 1000);
      const { run_id } = await json(await service.post("/api/chat", { message: `m${i}` }));
      runs.unshift(run_id);
    }
    const first = await json(await service.request("/api/runs?limit=2"));
    expect(first.runs.map((run: { id: string }) => run.id)).toEqual(runs.slice(0, 2));
    const rest = await json(await service.request(`/api/runs?limit=1&cursor=${first.next_cursor}`));
    expect(rest.runs.map((run: { id: string }) => run.id)).toEqual(runs.slice(2, 3));
    expect(rest.runs[0]).toMatchObject({
      status: "paused",
      door: "chat",
      provider: "openai",
      model: "scripted",
      agent: "dragoman",
      steps: 1,
      pending_calls: [{ id: "call_write", name: "write", args: { n: 1 }, risk: "write" }],
    });
    for (const query of ["limit=0", "limit=201", "limit=x", "cursor=x"])
      expect((await service.request(`/api/runs?${query}`)).status).toBe(400);
    expect((await service.request("/api/runs/run_nobody")).status).toBe(404);
    expect((await service.request("/api/runs/run_nobody/events")).status).toBe(404);
    expect((await service.post("/api/runs/run_nobody/stop", {})).status).toBe(404);
  });
});

describe("GET /api/runs/{id}/events", () => {
  test("R2: from any event on, by header or by query, the rest is the same bytes", async () => {
    const service = await start([look, { reasoning: "hm", text: "seen\n\nid: 3\ndata: no" }], { env: AUTO });
    const { response, runId } = await streamed(service);
    const { text, events } = await readEvents(response);
    const total = events.length;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: total - 1 }), fc.boolean(), async (after, byHeader) => {
        const again = await service.request(`/api/runs/${runId}/events${byHeader ? "" : `?after=${after}`}`, {
          headers: byHeader ? { "last-event-id": String(after) } : {},
        });
        const rest = after === 0 ? text : text.slice(text.indexOf(`\n\nid: ${after + 1}\n`) + 2);
        expect(await again.text()).toBe(rest);
      }),
      { numRuns: 30 },
    );
    expect((await service.request(`/api/runs/${runId}/events?after=${total}`)).status).toBe(204);
    expect((await service.request(`/api/runs/${runId}/events?after=x`)).status).toBe(400);
  });

  test("R2: a reader that joins while it runs, and one that comes after the client has gone, miss nothing", async () => {
    const { tools, reached, open: letGo } = gated();
    const service = await start([look, { text: "seen" }], { env: AUTO, tools });
    const { response, runId } = await streamed(service);
    await reached;
    const joined = await service.request(`/api/runs/${runId}/events?after=2`);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const { value } = await reader.read();
    const head = new TextDecoder().decode(value);
    await reader.cancel();
    letGo();
    const tail = await joined.text();
    const whole = await (await service.request(`/api/runs/${runId}/events`)).text();
    expect(whole.startsWith(head)).toBe(true);
    expect(whole.endsWith(tail)).toBe(true);
    expect(tail.startsWith("id: 3\n")).toBe(true);
    expect(whole).toContain('"type":"done"');
  });

  test("a parked run's stream ends; behind the decision there is more", async () => {
    const service = await start([write, { text: "written" }]);
    const { response, runId } = await streamed(service);
    const { text, events } = await readEvents(response);
    expect(events.at(-1)).toMatchObject({ type: "done", auth_required: true });
    const sessionId = (events[0] as { session_id: string }).session_id;
    const approved = await service.post("/api/chat/approve", {
      session_id: sessionId,
      approved: true,
      stream: true,
    });
    const rest = await approved.text();
    expect(await (await service.request(`/api/runs/${runId}/events`)).text()).toBe(text + rest);
    expect(await (await service.request(`/api/runs/${runId}/events?after=${events.length}`)).text()).toBe(
      rest,
    );
    expect(rest.startsWith(`id: ${events.length + 1}\ndata: {"type":"session"`)).toBe(true);
  });

  test("another process shows the run as it goes", async () => {
    const { tools, reached, open: letGo } = gated();
    const service = await start([look, { text: "seen" }], { env: AUTO, tools });
    const { response, runId } = await streamed(service);
    await reached;
    const other = await start([]);
    const elsewhere = other.request(`/api/runs/${runId}/events`).then((answer) => answer.text());
    letGo();
    expect(await elsewhere).toBe(await response.text());
  });
});

describe("POST /api/runs/{id}/stop", () => {
  test("a run under way, tools included", async () => {
    const { tools, reached } = gated();
    const service = await start([write, { text: "no" }, { text: "after" }], { env: AUTO, tools });
    const { response, runId } = await streamed(service);
    await reached;
    const stopped = await json(await service.post(`/api/runs/${runId}/stop`, {}));
    expect(stopped).toMatchObject({ status: "stopped", error: { code: "cancelled" } });
    const { events } = await readEvents(response);
    expect(events.at(-1)).toMatchObject({ type: "error", code: "cancelled" });
    const next = await service.post("/api/chat", { message: "on", session_id: stopped.session_id });
    expect(await json(next)).toMatchObject({ auth_required: false });
    expect(await json(await service.post(`/api/runs/${runId}/stop`, {}))).toMatchObject({
      status: "stopped",
    });
  });

  test("one of another process", async () => {
    const { tools, reached } = gated();
    const service = await start([write], { env: AUTO, tools });
    const { runId } = await streamed(service);
    await reached;
    const other = await start([]);
    expect(await json(await other.post(`/api/runs/${runId}/stop`, {}))).toMatchObject({ status: "stopped" });
  });

  test("one that waits for a decision", async () => {
    const service = await start([write, { text: "ok" }]);
    const { run_id } = await json(await service.post("/api/chat", { message: "x" }));
    expect(await json(await service.post(`/api/runs/${run_id}/stop`, {}))).toMatchObject({
      status: "stopped",
      pending_calls: [],
    });
    expect(done).toEqual([]);
  });
});

describe("what another process has left", () => {
  /** The lease of the one that is gone has run out. */
  const later = () => {
    home.clock.now = new Date(home.clock.now.getTime() + 16_000);
  };

  test("R1: a result that is there is used; what comes then is behind all that anybody has seen", async () => {
    let models = 0;
    const first = await start([], {
      env: AUTO,
      model: {
        ...scriptedModel([]),
        async *stream(request, signal) {
          const reply = models++ === 0 ? write : { text: "never stored", hang: true };
          yield* scriptedModel([reply]).stream(request, signal);
        },
      },
    });
    const { response, runId } = await streamed(first);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let seen = "";
    while (!seen.includes("never stored")) seen += new TextDecoder().decode((await reader.read()).value);
    first.kill();
    const lastSeen = Number([...seen.matchAll(/^id: (\d+)$/gm)].at(-1)?.[1]);
    const second = await start([{ text: "written" }], { env: AUTO });
    await second.services.runs.recover();
    expect(await json(await second.request(`/api/runs/${runId}`))).toMatchObject({ recoveries: 0 });
    later();
    await second.services.runs.recover();
    const again = await second.request(`/api/runs/${runId}/events`, {
      headers: { "last-event-id": String(lastSeen) },
    });
    const { events } = await readEvents(again);
    expect(done).toEqual(["write 1"]);
    expect(events).toMatchObject([
      { type: "content", content: expect.stringContaining("written") },
      { type: "done", reply: "I write.\n\nwritten" },
    ]);
    expect(await json(await second.request(`/api/runs/${runId}`))).toMatchObject({
      status: "completed",
      recoveries: 1,
    });
    const whole = await readEvents(await second.request(`/api/runs/${runId}/events`));
    expect(whole.events.filter((event) => event.type === "tool_result")).toHaveLength(1);
    expect(whole.events.filter((event) => event.type === "session")).toHaveLength(1);
  });

  test("R1: a write that had started is not run again, and the model is told", async () => {
    const { tools, reached } = gated();
    const first = await start([write], { env: AUTO, tools });
    const { runId } = await streamed(first);
    await reached;
    first.kill();
    later();
    const model = scriptedModel([{ text: "I shall look." }]);
    const second = await start([], { env: AUTO, model });
    await second.services.runs.recover();
    const { events } = await readEvents(await second.request(`/api/runs/${runId}/events`));
    expect(done).toEqual(["write 1"]);
    expect(model.requests[0]?.messages.at(-1)).toMatchObject({
      role: "tool",
      callId: "call_write",
      failed: true,
      content: [{ text: expect.stringContaining("unknown") }],
    });
    expect(events.at(-1)).toMatchObject({ type: "done", reply: "I write.\n\nI shall look." });
    expect(events.find((event) => event.type === "tool_result")).toMatchObject({ is_error: true });
  });

  test("R1: a read is repeated", async () => {
    const { tools, reached } = gated();
    const first = await start([look], { tools });
    const { runId } = await streamed(first);
    await reached;
    first.kill();
    later();
    const second = await start([{ text: "seen" }]);
    await second.services.runs.recover();
    const { events } = await readEvents(await second.request(`/api/runs/${runId}/events`));
    expect(done).toEqual(["look 1", "look 1"]);
    expect(events.at(-1)).toMatchObject({ type: "done", reply: "I look.\n\nseen" });
  });

  test("three times; then the run has failed, with a reason", async () => {
    const hang: ScriptedReply = { text: "…", hang: true };
    let service = await start([hang]);
    const { runId } = await streamed(service);
    for (let n = 1; n <= 4; n++) {
      service.kill();
      later();
      service = await start([hang]);
      await service.services.runs.recover();
      expect(await json(await service.request(`/api/runs/${runId}`))).toMatchObject({ recoveries: n });
    }
    const run = await json(await service.request(`/api/runs/${runId}`));
    expect(run).toMatchObject({ status: "failed", error: { message: expect.stringContaining("4 times") } });
    const { events } = await readEvents(await service.request(`/api/runs/${runId}/events`));
    expect(events.at(-1)).toMatchObject({ type: "error" });
  });

  test("an approval that was given and not acted on", async () => {
    const first = await start([write]);
    const { run_id, session_id } = await json(await first.post("/api/chat", { message: "x" }));
    const now = home.clock.now;
    await first.store.runs.decide("local", run_id, ["call_write"], "allowed", now);
    first.kill();
    const second = await start([{ text: "written" }]);
    await second.services.runs.recover();
    const again = await second.post("/api/chat/approve", { session_id, approved: true });
    expect(await json(again)).toMatchObject({ reply: "I write.\n\nwritten" });
    expect(done).toEqual(["write 1"]);
  });

  test("approvals that nobody gave in time", async () => {
    const service = await start([write]);
    const { run_id } = await json(await service.post("/api/chat", { message: "x" }));
    home.clock.now = new Date(START.getTime() + 24 * 60 * 60 * 1000);
    await service.services.runs.recover();
    expect(await json(await service.request(`/api/runs/${run_id}`))).toMatchObject({ status: "stopped" });
  });

  test("not what this process is at, however late it is", async () => {
    const { tools, reached, open: letGo } = gated();
    const service = await start([write, { text: "written" }], { env: AUTO, tools });
    const { response, runId } = await streamed(service);
    await reached;
    later();
    await service.services.runs.recover();
    letGo();
    await response.text();
    expect(await json(await service.request(`/api/runs/${runId}`))).toMatchObject({
      status: "completed",
      recoveries: 0,
    });
    expect(done).toEqual(["write 1"]);
  });
});

describe("one turn at a time", () => {
  test("a second one waits for the first", async () => {
    const { tools, reached, open: letGo } = gated();
    const service = await start([look, { text: "one" }, { text: "two" }], { tools });
    const { response } = await streamed(service);
    await reached;
    const { runs } = await json(await service.request("/api/runs?limit=1"));
    const second = service.post("/api/chat", { message: "b", session_id: runs[0].session_id });
    letGo();
    await response.text();
    expect(await json(await second)).toMatchObject({ reply: "two" });
  });

  test("up to a limit; then 409 with the run in the way", async () => {
    const { tools, reached, open: letGo } = gated();
    const service = await start([look, { text: "one" }], { tools, env: { SESSION_WAIT: "0" } });
    const { response, runId } = await streamed(service);
    await reached;
    const run = await json(await service.request(`/api/runs/${runId}`));
    const second = await service.post("/api/chat", { message: "b", session_id: run.session_id });
    expect(second.status).toBe(409);
    expect(await json(second)).toMatchObject({ code: "conflict", run_id: runId });
    letGo();
    await response.text();
  });
});
