import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";
import {
  createHome,
  createService,
  json,
  START,
  type TestHome,
  type TestOptions,
  type TestService,
} from "./service.ts";

let home: TestHome;
const open: TestService[] = [];

beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());
beforeEach(() => {
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

const call: ScriptedReply = { text: "I look.", calls: [{ id: "call_1", name: "look", args: { n: 1 } }] };
const patch = (service: TestService, id: string, body: unknown) =>
  service.request(`/api/sessions/${id}`, { method: "PATCH", json: body });
const remove = (service: TestService, path: string) => service.request(path, { method: "DELETE" });

test("a session is listed, found, named and shown", async () => {
  const service = await start([call, { text: "There is one." }]);
  const { session_id: id } = await json(await service.post("/api/chat", { message: "How many zebras?" }));
  const session = await json(await service.request(`/api/sessions/${id}`));
  expect(session).toEqual({
    id,
    title: "How many zebras?",
    created_at: START.toISOString(),
    updated_at: START.toISOString(),
    message_count: 4,
  });
  expect(await json(await service.request("/api/sessions?q=zebras"))).toEqual({
    sessions: [session],
    next_cursor: null,
  });
  expect(await json(await patch(service, id, { title: "Animals" }))).toMatchObject({ title: "Animals" });
  for (const body of [{}, { title: "" }, { title: 1 }, { title: "x".repeat(201) }])
    expect((await patch(service, id, body)).status).toBe(400);
  const { messages } = await json(await service.request(`/api/sessions/${id}/messages`));
  expect(messages).toMatchObject([
    { role: "user", content: "How many zebras?", tool_calls: [], agent: null },
    {
      role: "assistant",
      content: "I look.",
      tool_calls: [{ id: "call_1", name: "look", args: { n: 1 } }],
      usage: { input_tokens: 10, output_tokens: 5 },
      agent: "dragoman",
    },
    { role: "tool", content: "look has done 1", tool_call_id: "call_1", is_error: false },
    { role: "assistant", content: "There is one." },
  ]);
  const page = await json(await service.request(`/api/sessions/${id}/messages?limit=3`));
  expect(page.messages).toEqual(messages.slice(0, 3));
  const rest = await json(
    await service.request(`/api/sessions/${id}/messages?limit=3&cursor=${page.next_cursor}`),
  );
  expect(rest).toEqual({ messages: messages.slice(3), next_cursor: null });
});

test("a fork has the messages up to one, and goes its own way", async () => {
  const model = scriptedModel([{ text: "one" }, { text: "two" }, { text: "other" }]);
  const service = await start([], { model });
  const first = await json(await service.post("/api/chat", { message: "a" }));
  await service.post("/api/chat", { message: "b", session_id: first.session_id });
  const path = `/api/sessions/${first.session_id}/fork`;
  const response = await service.post(path, { message_id: first.message_id });
  expect(response.status).toBe(201);
  const fork = await json(response);
  expect(fork.id).not.toBe(first.session_id);
  expect(fork.message_count).toBe(2);
  await service.post("/api/chat", { message: "c", session_id: fork.id });
  expect(model.requests[2]?.messages.map((m) => m.content)).toMatchObject([
    [{ text: "a" }],
    [{ text: "one" }],
    [{ text: "c" }],
  ]);
  expect((await service.post(path, { message_id: "msg_nobody" })).status).toBe(404);
  expect(await json(await service.post(path, {}))).toMatchObject({ message_count: 4 });
});

test("a deleted message takes along what cannot stand without it", async () => {
  const model = scriptedModel([call, { text: "one" }, { text: "two" }]);
  const service = await start([], { model });
  const { session_id: id } = await json(await service.post("/api/chat", { message: "a" }));
  const { messages } = await json(await service.request(`/api/sessions/${id}/messages`));
  const deleted = await json(await remove(service, `/api/messages/${messages[2].id}`));
  expect(deleted).toMatchObject({ status: "deleted", deleted: 2 });
  expect([...deleted.ids].sort()).toEqual([messages[1].id, messages[2].id].sort());
  expect((await remove(service, `/api/messages/${messages[1].id}`)).status).toBe(404);
  await service.post("/api/chat", { message: "b", session_id: id });
  expect(model.requests[2]?.messages.map((m) => m.role)).toEqual(["user", "assistant", "user"]);
});

test("a deleted session stops its run and takes all along", async () => {
  const service = await start([{ text: "…", hang: true }]);
  const response = await service.post("/api/chat", { message: "a", stream: true });
  const id = response.headers.get("x-session-id") as string;
  const runId = response.headers.get("x-run-id") as string;
  const text = response.text();
  expect(await json(await remove(service, `/api/sessions/${id}`))).toMatchObject({ status: "deleted" });
  expect(await text).toContain('"code":"cancelled"');
  for (const path of [`/api/sessions/${id}`, `/api/sessions/${id}/messages`, `/api/runs/${runId}`])
    expect((await service.request(path)).status).toBe(404);
  expect((await remove(service, `/api/sessions/${id}`)).status).toBe(404);
});

test("stateless runs are in no list of sessions", async () => {
  const env = { APPROVAL: "auto", AUTH: "key" };
  const service = await start([call, { text: "ok" }], { env });
  const headers = { authorization: "Bearer sk-lonely" };
  const body = { model: "m", messages: [{ role: "user", content: "a" }] };
  await service.post("/v1/chat/completions", body, headers);
  expect(await json(await service.request("/api/sessions", { headers }))).toEqual({
    sessions: [],
    next_cursor: null,
  });
  const { runs } = await json(await service.request("/api/runs", { headers }));
  expect(runs).toMatchObject([{ door: "chat-completions", status: "completed" }]);
});

test.each([
  ["by token", { ACCESS_TOKENS: "ann:token-a,bob:token-b" }, ["token-a", "token-b"]],
  ["by key", { AUTH: "key" }, ["sk-key-of-ann", "sk-key-of-bob"]],
])("A5: two owners %s: every id of the one is nothing to the other", async (_, env, [ann, bob]) => {
  const write: ScriptedReply = { calls: [{ id: "call_w", name: "write", args: { n: 1 } }] };
  const service = await start([{ text: "one" }, write], { env });
  const as = (token: string | undefined) => ({ authorization: `Bearer ${token}` });
  const { session_id, message_id } = await json(await service.post("/api/chat", { message: "a" }, as(ann)));
  const { run_id } = await json(await service.post("/api/chat", { message: "b", session_id }, as(ann)));
  const routes: [string, string, unknown?][] = [
    ["GET", `/api/sessions/${session_id}`],
    ["PATCH", `/api/sessions/${session_id}`, { title: "mine" }],
    ["DELETE", `/api/sessions/${session_id}`],
    ["POST", `/api/sessions/${session_id}/fork`, {}],
    ["GET", `/api/sessions/${session_id}/messages`],
    ["DELETE", `/api/messages/${message_id}`],
    ["GET", `/api/runs/${run_id}`],
    ["GET", `/api/runs/${run_id}/events`],
    ["POST", `/api/runs/${run_id}/stop`, {}],
    ["POST", "/api/chat", { message: "c", session_id }],
    ["POST", "/api/chat/approve", { session_id, approved: true }],
    ["POST", "/api/chat/approve", { session_id, approved: true, pending_calls: ["call_w"] }],
  ];
  for (const [method, path, body] of routes) {
    const foreign = await service.request(path, { method, json: body, token: bob });
    const id = (text: string) =>
      text.replaceAll(session_id, "ID").replaceAll(run_id, "ID").replaceAll(message_id, "ID");
    const missing = await service.request(id(path).replaceAll("ID", "ses_nobody"), {
      method,
      json: body && JSON.parse(id(JSON.stringify(body)).replaceAll("ID", "ses_nobody")),
      token: bob,
    });
    expect([method, path, foreign.status, missing.status]).toEqual([method, path, 404, 404]);
    const [one, other] = [await json(foreign), await json(missing)];
    expect({ ...one, request_id: "" }).toEqual({ ...other, request_id: "" });
  }
  for (const list of ["sessions", "runs"])
    expect((await json(await service.request(`/api/${list}`, { token: bob })))[list]).toEqual([]);
  expect(await json(await service.request(`/api/runs/${run_id}`, { token: ann }))).toMatchObject({
    status: "paused",
  });
});
