import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";
import {
  createHome,
  createService,
  done,
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

let serial = 0;
const newKey = () => ({ "idempotency-key": `key-${serial++}` });

test("the same request again: the same answer, and it is done once", async () => {
  const service = await start([{ text: "one" }, { text: "two" }]);
  const key = newKey();
  const first = await service.post("/api/chat", { message: "a" }, key);
  const body = await first.text();
  const again = await service.post("/api/chat", { message: "a" }, key);
  expect(first.headers.get("idempotency-replayed")).toBeNull();
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(again.headers.get("x-run-id")).toBe(first.headers.get("x-run-id"));
  expect(again.headers.get("content-type")).toBe(first.headers.get("content-type"));
  expect(await again.text()).toBe(body);
  expect(await json(await service.post("/api/chat", { message: "a" }, newKey()))).toMatchObject({
    reply: "two",
  });
});

test("a stream is answered again with all that it said", async () => {
  const service = await start([{ text: "one" }, { text: "two" }]);
  const key = newKey();
  const first = await (await service.post("/api/chat", { message: "a", stream: true }, key)).text();
  let again = await service.post("/api/chat", { message: "a", stream: true }, key);
  // It is stored in the background, when it has ended.
  while (again.status === 409) again = await service.post("/api/chat", { message: "a", stream: true }, key);
  expect(again.headers.get("content-type")).toContain("text/event-stream");
  expect(await again.text()).toBe(first);
});

test("a client that has gone finds the whole answer", async () => {
  const service = await start([{ text: "one" }]);
  const key = newKey();
  const response = await service.post("/api/chat", { message: "a", stream: true }, key);
  await response.body?.cancel();
  let again = await service.post("/api/chat", { message: "a", stream: true }, key);
  while (again.status === 409) again = await service.post("/api/chat", { message: "a", stream: true }, key);
  expect(await again.text()).toContain('"type":"done"');
});

test("another request with the key: 422", async () => {
  const service = await start([{ text: "one" }]);
  const key = newKey();
  await service.post("/api/chat", { message: "a" }, key);
  const other = await service.post("/api/chat", { message: "b" }, key);
  expect(other.status).toBe(422);
  expect(await json(other)).toMatchObject({ status: 422, code: "invalid_request" });
});

test("the first is still under way: 409", async () => {
  const service = await start([{ text: "…", hang: true }]);
  const key = newKey();
  const first = await service.post("/api/chat", { message: "a", stream: true }, key);
  const second = await service.post("/api/chat", { message: "a", stream: true }, key);
  expect(second.status).toBe(409);
  expect(second.headers.get("retry-after")).toBe("1");
  await service.post(`/api/runs/${first.headers.get("x-run-id")}/stop`, {});
  await first.text();
});

test("what was refused may be sent again; a day later the key is new", async () => {
  const service = await start([{ text: "one" }, { text: "two" }]);
  const key = newKey();
  expect((await service.post("/api/chat", { message: "" }, key)).status).toBe(400);
  expect(await json(await service.post("/api/chat", { message: "a" }, key))).toMatchObject({ reply: "one" });
  home.clock.now = new Date(START.getTime() + 24 * 60 * 60 * 1000 + 1);
  expect(await json(await service.post("/api/chat", { message: "a" }, key))).toMatchObject({ reply: "two" });
});

test("an upstream that fails before its first word may be asked again", async () => {
  let fails = true;
  const model = scriptedModel([{ text: "one" }]);
  const { stream } = model;
  model.stream = async function* (request, signal) {
    if (!fails) return yield* stream(request, signal);
    fails = false;
    yield { type: "failed", fault: { code: "upstream_error", message: "Busy.", status: 529 } };
  };
  const service = await start([], { model });
  const key = newKey();
  expect((await service.post("/api/chat", { message: "a" }, key)).status).toBe(529);
  expect(await json(await service.post("/api/chat", { message: "a" }, key))).toMatchObject({ reply: "one" });
});

test("a key belongs to its owner", async () => {
  const service = await start([{ text: "one" }, { text: "two" }], {
    env: { ACCESS_TOKENS: "ann:token-a,bob:token-b" },
  });
  const key = newKey();
  const as = (token: string) => ({ ...key, authorization: `Bearer ${token}` });
  expect(await json(await service.post("/api/chat", { message: "a" }, as("token-a")))).toMatchObject({
    reply: "one",
  });
  expect(await json(await service.post("/api/chat", { message: "a" }, as("token-b")))).toMatchObject({
    reply: "two",
  });
});

test("forks are made once", async () => {
  const service = await start([{ text: "one" }]);
  const { session_id } = await json(await service.post("/api/chat", { message: "a" }));
  const key = newKey();
  const path = `/api/sessions/${session_id}/fork`;
  const first = await service.post(path, {}, key);
  const again = await service.post(path, {}, key);
  expect([first.status, again.status]).toEqual([201, 201]);
  expect(await again.text()).toBe(await first.text());
  expect((await service.post(path, {}, { "idempotency-key": "two words" })).status).toBe(400);
});
