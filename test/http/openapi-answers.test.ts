/** What the service answers is what its interface document says: status, media type, and every field. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { faultsOf } from "../../src/http/openapi/document.ts";
import { FAULT_SCHEMAS } from "../../src/http/openapi/faults.ts";
import type { Operation } from "../../src/http/openapi/operation.ts";
import { ROUTES } from "../../src/http/openapi/routes.ts";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";
import { createHome, createService, json, type TestHome, type TestService } from "./service.ts";

const routes: readonly Operation[] = ROUTES;
/** Operation and status, for each answer that was seen. */
const seen = new Set<string>();

let home: TestHome;
let service: TestService;

const asks: ScriptedReply = { text: "I write.", calls: [{ id: "call_1", name: "write", args: { n: 1 } }] };
const looks: ScriptedReply = { reasoning: "Hm.", calls: [{ id: "call_2", name: "look", args: { n: 2 } }] };
const speaks: ScriptedReply = { text: "Done." };

beforeAll(async () => {
  home = await createHome();
  const model = scriptedModel([asks, speaks, looks, speaks, asks, speaks]);
  service = await createService(home, { model: { ...model, countTokens: async () => 7 } });
});
afterAll(async () => {
  await service.close();
  await home.close();
});

/** Sends a request to an operation, and compares the answer with what is said of it. */
async function ask(id: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const operation = routes.find((route) => route.id === id) as Operation;
  const method = operation.method.toUpperCase();
  const response = await service.request(path, {
    method,
    headers,
    ...(body === undefined ? {} : { json: body }),
  });
  await compare(operation, response.clone() as Response);
  return response;
}

async function compare(operation: Operation, response: Response): Promise<void> {
  const { status } = response;
  seen.add(`${operation.id} ${status}`);
  const type = response.headers.get("content-type") ?? "";
  const reply = operation.replies[status];
  if (!reply) {
    expect(faultsOf(operation) as number[], `${operation.id} ${status}`).toContain(status);
    same(FAULT_SCHEMAS[operation.family], await response.json());
    const problem = operation.family === "api" || operation.family === "public";
    expect(type).toBe(problem ? "application/problem+json" : "application/json");
    return;
  }
  for (const name of reply.headers ?? [])
    if (name === "x-run-id") expect(response.headers.get(name)).toMatch(/^run_/);
  if (type.startsWith("text/event-stream")) {
    for (const event of events(await response.text())) same(reply.events?.schema, event);
  } else if (reply.json) {
    expect(type).toContain("application/json");
    same(reply.json.schema, await response.json());
  } else if (reply.text) expect(type).toContain(reply.text);
  else expect(await response.text()).toBe("");
}

function events(text: string): unknown[] {
  const data = [...text.matchAll(/^data: (.*)$/gm)].map(([, line]) => line as string);
  return data.filter((line) => line !== "[DONE]").map((line) => JSON.parse(line));
}

/** A field that the schema does not know would be missing from what it gives back. */
function same(schema: { parse(value: unknown): unknown } | undefined, value: unknown): void {
  expect(schema?.parse(value)).toEqual(value);
}

test("the native door, its runs and its sessions", async () => {
  const parked = await json(await ask("chat", "/api/chat", { message: "write it" }));
  expect(parked.auth_required).toBe(true);
  const { session_id, run_id } = parked;
  await ask("getRun", `/api/runs/${run_id}`);
  await ask("approve", "/api/chat/approve", { session_id, approved: true, pending_calls: ["other"] });
  await ask("approve", "/api/chat/approve", { session_id, approved: true });
  await ask("approve", "/api/chat/approve", { session_id, approved: false, pending_calls: ["call_1"] });
  await ask("chat", "/api/chat", { message: "look", session_id, stream: true });
  await ask("chat", "/api/chat", { message: "look", stream: true, attachments: [{ type: "image" }] });
  await ask("chat", "/api/chat", { message: "look", session_id: "ses_unknown" });
  await ask("chat", "/api/chat", { message: "look", use_swarm: true });
  await ask("listRuns", "/api/runs?limit=1");
  await ask("listRuns", "/api/runs?limit=0");
  await ask("followRun", `/api/runs/${run_id}/events`);
  await ask("followRun", `/api/runs/${run_id}/events?after=x`);
  await ask("followRun", `/api/runs/${run_id}/events`, undefined, { "last-event-id": "1000" });
  await ask("followRun", "/api/runs/run_unknown/events");
  await ask("listSessions", "/api/sessions?q=write");
  await ask("getSession", `/api/sessions/${session_id}`);
  await ask("renameSession", `/api/sessions/${session_id}`, { title: "Another" });
  await ask("renameSession", `/api/sessions/${session_id}`, { title: "" });
  const { messages } = await json(await ask("listMessages", `/api/sessions/${session_id}/messages`));
  expect(messages.length).toBeGreaterThan(3);
  await ask("forkSession", `/api/sessions/${session_id}/fork`, { message_id: messages[0].id });
  await ask("forkSession", `/api/sessions/${session_id}/fork`, { message_id: "msg_unknown" });
  await ask("deleteMessage", `/api/messages/${messages.at(-1).id}`);
  await ask("deleteMessage", "/api/messages/msg_unknown");
  await ask("deleteSession", `/api/sessions/${session_id}`);
  await ask("deleteSession", `/api/sessions/${session_id}`);
  const waiting = await json(await ask("chat", "/api/chat", { message: "write again" }));
  await ask("stopRun", `/api/runs/${waiting.run_id}/stop`);
  await ask("stopRun", "/api/runs/run_unknown/stop");
});

test("Idempotency-Key: replay, and another body", async () => {
  const key = { "idempotency-key": "one" };
  const first = await ask("chat", "/api/chat", { message: "hi" }, key);
  const again = await ask("chat", "/api/chat", { message: "hi" }, key);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(await again.text()).toBe(await first.text());
  expect((await ask("chat", "/api/chat", { message: "ho" }, key)).status).toBe(422);
});

test("the doors of the SDKs", async () => {
  const messages = [{ role: "user", content: "hi" }];
  const options = { include_usage: true };
  await ask("createChatCompletion", "/v1/chat/completions", { model: "dragoman", messages });
  await ask("createChatCompletion", "/v1/chat/completions", {
    ...{ model: "dragoman", messages, stream: true, stream_options: options },
  });
  await ask("createChatCompletion", "/v1/chat/completions", { model: "dragoman" });
  await ask("createMessage", "/v1/messages", { model: "dragoman", max_tokens: 9, messages });
  await ask("createMessage", "/v1/messages", { model: "dragoman", max_tokens: 9, messages, stream: true });
  await ask("createMessage", "/v1/messages", { model: "dragoman", messages });
  await ask("countTokens", "/v1/messages/count_tokens", { model: "dragoman", messages });
  await ask("listModels", "/v1/models");
  await ask("listModels", "/v1/models", undefined, { "anthropic-version": "2023-06-01" });
  await ask("getModel", "/v1/models/dragoman");
  await ask("getModel", "/v1/models/dragoman", undefined, { "anthropic-version": "2023-06-01" });
  await ask("getModel", "/v1/models/unknown");
});

test("the service itself", async () => {
  for (const path of ["/healthz", "/readyz", "/openapi.json", "/docs"])
    await ask(path.slice(1).replace(".json", ""), path);
});

test("every operation has been seen to succeed", () => {
  const missing = routes.flatMap(({ id, replies }) =>
    Object.keys(replies)
      .map((status) => `${id} ${status}`)
      .filter((name) => !name.endsWith("503") && !seen.has(name)),
  );
  expect(missing).toEqual([]);
});
