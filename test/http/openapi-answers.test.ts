/** What the service answers is what its interface document says: status, media type, and every field. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { faultsOf } from "../../src/http/openapi/document.ts";
import { FAULT_SCHEMAS } from "../../src/http/openapi/faults.ts";
import type { Operation } from "../../src/http/openapi/operation.ts";
import { ROUTES } from "../../src/http/openapi/routes.ts";
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { PNG } from "../knowledge/pictures.ts";
import { startHostileHttp } from "../mcp/hostile-http.ts";
import { startOAuthWorld } from "../mcp/oauth-server.ts";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";
import { startSpeechDouble } from "../speech-double.ts";
import { reply, stream } from "../upstream-server.ts";
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
async function ask(
  id: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  asked = service,
) {
  const operation = routes.find((route) => route.id === id) as Operation;
  const method = operation.method.toUpperCase();
  const response = await asked.request(path, {
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
  else if (reply.bytes)
    expect(reply.bytes.some((range) => range === "*/*" || type.startsWith(range.replace("/*", "/")))).toBe(
      true,
    );
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

test("the workspace and the tools", async () => {
  await service.services.platform.files("local").write("a.txt", new TextEncoder().encode("0123"));
  await ask("listFiles", "/api/files");
  await ask("listFiles", "/api/files?path=gone");
  const whole = await ask("readFile", "/api/files/content?path=a.txt");
  await ask("readFile", "/api/files/content?path=a.txt", undefined, { range: "bytes=1-2" });
  await ask("readFile", "/api/files/content?path=a.txt", undefined, { range: "bytes=9-" });
  const etag = whole.headers.get("etag") as string;
  await ask("readFile", "/api/files/content?path=a.txt", undefined, { "if-none-match": etag });
  await ask("listTools", "/api/tools");
});

test("agents", async () => {
  const { agent_id: id } = await json(
    await ask("createAgent", "/api/agents", { name: "one", sub_agents: ["one"], tools: ["look"] }),
  );
  await ask("createAgent", "/api/agents", { name: "one" });
  await ask("createAgent", "/api/agents", { name: "No" });
  await ask("listAgents", "/api/agents");
  await ask("listAgents", "/api/agents?limit=0");
  await ask("getAgent", `/api/agents/${id}`);
  await ask("getAgent", "/api/agents/nobody");
  await ask("updateAgent", "/api/agents/one", { model: "m" });
  await ask("updateAgent", "/api/agents/nobody", { model: "m" });
  await ask("deleteAgent", `/api/agents/${id}`);
  await ask("deleteAgent", `/api/agents/${id}`);
});

test("cron jobs and the tick", async () => {
  const fields = { command: "look", interval_minutes: 5 };
  const { job_id: id } = await json(await ask("createCronJob", "/api/cron", fields));
  await ask("createCronJob", "/api/cron", fields);
  await ask("createCronJob", "/api/cron", { command: "look", schedule: "x" });
  await ask("createCronJob", "/api/cron", { ...fields, session: "ses_unknown" });
  await ask("listCronJobs", "/api/cron?limit=1");
  await ask("listCronJobs", "/api/cron?limit=0");
  await ask("getCronJob", `/api/cron/${id}`);
  await ask("getCronJob", "/api/cron/job_unknown");
  await ask("updateCronJob", `/api/cron/${id}`, { cron_time: "08:15", max_runs: 3 });
  await ask("updateCronJob", `/api/cron/${id}`, { run_at: "2000-01-01" });
  await ask("updateCronJob", "/api/cron/job_unknown", {});
  await ask("runCronJob", `/api/cron/${id}/run`, {});
  await ask("runCronJob", "/api/cron/job_unknown/run", {});
  await ask("listCronRuns", `/api/cron/${id}/runs`);
  await ask("listCronRuns", `/api/cron/${id}/runs?cursor=x`);
  await ask("tickAutomation", "/api/automation/tick", {});
  await ask("deleteCronJob", `/api/cron/${id}`);
  await ask("deleteCronJob", `/api/cron/${id}`);
});

test("watchdogs", async () => {
  const fields = { action: "look", directory: "in", interval_seconds: 3_600, debounce_seconds: 0 };
  const { watchdog_id: id } = await json(await ask("createWatchdog", "/api/watchdog", fields));
  await ask("createWatchdog", "/api/watchdog", fields);
  await ask("createWatchdog", "/api/watchdog", { ...fields, directory: "../up" });
  await ask("createWatchdog", "/api/watchdog", { ...fields, session: "ses_unknown" });
  await ask("listWatchdogs", "/api/watchdog?limit=1");
  await ask("listWatchdogs", "/api/watchdog?limit=0");
  await ask("getWatchdog", `/api/watchdog/${id}`);
  await ask("getWatchdog", "/api/watchdog/wdg_unknown");
  await ask("updateWatchdog", `/api/watchdog/${id}`, { cooldown_seconds: 60, pattern: "*.md" });
  await ask("updateWatchdog", `/api/watchdog/${id}`, { interval_seconds: 1 });
  await ask("testWatchdog", `/api/watchdog/${id}/test`, {});
  await ask("testWatchdog", "/api/watchdog/wdg_unknown/test", {});
  await ask("listWatchdogRuns", `/api/watchdog/${id}/runs`);
  await ask("listWatchdogRuns", `/api/watchdog/${id}/runs?cursor=x`);
  await ask("deleteWatchdog", `/api/watchdog/${id}`);
  await ask("deleteWatchdog", `/api/watchdog/${id}`);
});

test("notes and their images", async () => {
  const { note_id: id } = await json(
    await ask("createNote", "/api/notes", { title: "Bread", content: "rye" }),
  );
  await ask("createNote", "/api/notes", { title: "Bread" });
  await ask("listNotes", "/api/notes?q=rye");
  await ask("listNotes", "/api/notes?limit=0");
  await ask("listNoteCategories", "/api/notes/categories");
  const note = await ask("getNote", `/api/notes/${id}`);
  const version = note.headers.get("etag") as string;
  await ask("getNote", `/api/notes/${id}`, undefined, { "if-none-match": version });
  await ask("getNote", "/api/notes/note_unknown");
  await ask("updateNote", `/api/notes/${id}`, { category: "Food" }, { "if-match": version });
  await ask("updateNote", `/api/notes/${id}`, { category: "Food" }, { "if-match": version });
  await ask("deleteNote", `/api/notes/${id}`, undefined, { "if-match": version });
  await ask("deleteNote", `/api/notes/${id}`);
  const upload = routes.find((route) => route.id === "uploadNoteImage") as Operation;
  const send = async (content: BlobPart) => {
    const body = new FormData();
    body.append("file", new Blob([content]), "picture.png");
    const response = await service.request("/api/notes/upload", { method: "POST", body });
    await compare(upload, response.clone() as Response);
    return json(response);
  };
  await send("no picture");
  const path = `/api/notes/images/${(await send(PNG)).id}`;
  const etag = (await ask("getNoteImage", path)).headers.get("etag") as string;
  await ask("getNoteImage", path, undefined, { range: "bytes=0-3" });
  await ask("getNoteImage", path, undefined, { range: "bytes=9999-" });
  await ask("getNoteImage", path, undefined, { "if-none-match": etag });
  await ask("getNoteImage", "/api/notes/images/img_unknown");
});

test("the MCP servers of the agent", async () => {
  const far = await startHostileHttp();
  const operator = await createService(home, { model: scriptedModel([speaks]), fetch: createLocalFetch() });
  try {
    const to = (id: string, path: string, body?: unknown) => ask(id, path, body, {}, operator);
    await to("connectMcpServer", "/api/mcp/connect", { name: "Far", url: far.url });
    await to("connectMcpServer", "/api/mcp/connect", { name: "Gone", url: "http://127.0.0.1:9/mcp" });
    await to("connectMcpServer", "/api/mcp/connect", { name: "Program", command: "true" });
    await to("connectMcpServer", "/api/mcp/connect", { server_id: "none" });
    await to("connectMcpServer", "/api/mcp/connect", {});
    const definition = { description: "Other.", inputSchema: { type: "object" } };
    await operator.store.mcp.observe("local", "far", [{ name: "count", hash: "h1", definition }]);
    await to("listMcpServers", "/api/mcp/servers");
    const changed = { tools: [{ name: "count", hash: "h0" }] };
    await to("approveMcpTools", "/api/mcp/servers/far/approve", changed);
    await to("approveMcpTools", "/api/mcp/servers/far/approve");
    await to("disconnectMcpServer", "/api/mcp/disconnect/far");
    await to("disconnectMcpServer", "/api/mcp/disconnect/none");
    await to("forgetMcpServer", "/api/mcp/saved/far");
    await to("forgetMcpServer", "/api/mcp/saved/far");
  } finally {
    await operator.close();
    await far.stop();
  }
});

test("the authorization of MCP servers", async () => {
  const world = await startOAuthWorld();
  const operator = await createService(home, {
    model: scriptedModel([speaks]),
    env: { PUBLIC_URL: "https://agent.example" },
    fetch: createLocalFetch(),
    recovers: true,
  });
  try {
    await operator.post("/api/mcp/connect", { server_id: "tracker", url: world.url });
    const start = "/api/mcp/oauth/tracker/start";
    const back = async (path: string) => {
      const { authorization_url } = await json(
        await ask("startMcpAuthorization", path, undefined, {}, operator),
      );
      const { headers } = await fetch(authorization_url, { redirect: "manual" });
      const { pathname, search } = new URL(headers.get("location") ?? "");
      return ask("returnFromMcpAuthorization", pathname + search, undefined, {}, operator);
    };
    await ask("startMcpAuthorization", start, undefined, { accept: "text/html" }, operator);
    await ask("startMcpAuthorization", "/api/mcp/oauth/unknown/start", undefined, {}, operator);
    await ask("returnFromMcpAuthorization", "/api/mcp/oauth/callback?state=x", undefined, {}, operator);
    world.settings.refusal = "no";
    await back(start);
    world.settings.refusal = undefined;
    world.settings.broken = 500;
    await back(start);
    world.settings.broken = undefined;
    await back(start);
    await ask("clientMetadata", "/client-metadata.json", undefined, {}, operator);
    await ask("clientMetadata", "/client-metadata.json");
  } finally {
    await operator.close();
    await world.close();
  }
});

test("memory", async () => {
  const lives = { document: "The user lives in Rome" };
  const { memory_id } = await json(await ask("createMemory", "/api/memory", lives));
  await ask("createMemory", "/api/memory", { document: "I live in Rome" });
  await ask("createMemory", "/api/memory", { document: "" });
  const { memory_id: id } = await json(
    await ask("createMemory", "/api/memory", { document: "I moved to Bonn", replaces: memory_id }),
  );
  await ask("listMemories", "/api/memory");
  await ask("listMemories", "/api/memory?q=bonn");
  await ask("listMemories", "/api/memory?cursor=nonsense");
  await ask("getMemory", `/api/memory/${id}`);
  await ask("changeMemory", `/api/memory/${id}`, { metadata: { importance: 1 } });
  await ask("changeMemory", `/api/memory/${memory_id}`, { metadata: { importance: 1 } });
  await ask("memoryHistory", `/api/memory/${id}/history`);
  const lines = await (await ask("exportMemories", "/api/memory/export")).text();
  const operation = routes.find((route) => route.id === "importMemories") as Operation;
  for (const type of ["application/jsonl", "text/plain"]) {
    const headers = { "content-type": type };
    await compare(
      operation,
      await service.request("/api/memory/import", { method: "POST", body: lines, headers }),
    );
  }
  await ask("deleteMemory", `/api/memory/${id}`);
  await ask("deleteMemory", `/api/memory/${id}`);
  await ask("clearMemories", "/api/memory");
});

test("the MCP server", async () => {
  const accept = { accept: "application/json, text/event-stream" };
  const send = (method: string, params: object, headers: Record<string, string> = accept, id?: number) =>
    ask("mcp", "/mcp", { jsonrpc: "2.0", ...(id === undefined ? {} : { id }), method, params }, headers);
  const clientInfo = { name: "a test", version: "1" };
  await send("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo }, accept, 0);
  await send("notifications/initialized", {});
  const call = { name: "ask_agent", arguments: { message: "hi" }, _meta: { progressToken: 1 } };
  await send("tools/call", call, accept, 1);
  await send("resources/list", {}, accept, 2);
  await ask("mcp", "/mcp", {}, accept);
  await send("ping", {}, {}, 3);
  await ask("mcp", "/mcp", { jsonrpc: "2.0" }, { ...accept, origin: "https://evil.example" });
});

test("speech", async () => {
  await using double = await startSpeechDouble();
  const env = { ...double.env, UPSTREAM_RETRIES: "0" };
  const speaking = await createService(home, { model: scriptedModel([{ text: "hello" }]), env });
  const send = async (id: string, path: string, body: unknown, headers?: Record<string, string>) =>
    (await ask(id, path, body, headers, speaking)).arrayBuffer();
  double.says(new Uint8Array(100), { format: "mp3" });
  await send("speak", "/api/tts", { text: "Hello." });
  await send("speak", "/api/tts", { text: " " });
  await send("speak", "/api/tts", { text: "Hello.", provider: "embedded" });
  const speech = { model: "tts-1", voice: "alloy", input: "Hello." };
  await send("audioSpeech", "/v1/audio/speech", speech);
  await send("audioSpeech", "/v1/audio/speech", { ...speech, speed: 9 });
  await send("audioSpeech", "/v1/audio/speech", speech, { "x-provider": "embedded" });
  const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
  const events = [
    { type: "speech.audio.delta", audio: "AAAA" },
    { type: "speech.audio.done", usage },
  ];
  double.answer(stream(events.map((event) => `data: ${JSON.stringify(event)}\n\n`)));
  await send("audioSpeech", "/v1/audio/speech", { ...speech, stream_format: "sse" });
  double.answer(reply(500, { error: { message: "Broken." } }));
  await send("speak", "/api/tts", { text: "Hello." });
  await speaking.close();
});

test("the service itself", async () => {
  for (const path of ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])
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
