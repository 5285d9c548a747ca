import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { LATEST_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/sdk/types.js";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createApp } from "../../src/app.ts";
import { delegate, sceneModel } from "../agent/swarm-scene.ts";
import { scriptedModel } from "../scripted-model.ts";
import {
  createHome,
  createService,
  done,
  json,
  type TestHome,
  type TestOptions,
  type TestService,
} from "./service.ts";

let home: TestHome;
const open: (() => Promise<void>)[] = [];

beforeEach(async () => {
  home = await createHome();
  done.length = 0;
});
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
  await home.close();
});

async function start(options: TestOptions): Promise<TestService> {
  const service = await createService(home, options);
  open.push(() => service.close());
  return service;
}

/** The SDK's own client over the app. */
async function connect(service: TestService, headers: Record<string, string> = {}): Promise<Client> {
  const client = new Client({ name: "a test", version: "1.0.0" });
  const fetch = (url: string | URL, init?: RequestInit) => service.request(new URL(url).pathname, init);
  const url = new URL("http://127.0.0.1:8000/mcp");
  await client.connect(new StreamableHTTPClientTransport(url, { fetch, requestInit: { headers } }));
  open.push(() => client.close());
  return client;
}

interface Result {
  content: { type: string; text: string }[];
  // biome-ignore lint/suspicious/noExplicitAny: a body is what a test says it is.
  structuredContent?: any;
  isError?: boolean;
}

async function call(client: Client, name: string, args: Record<string, unknown> = {}): Promise<Result> {
  return (await client.callTool({ name, arguments: args })) as Result;
}

const HEADERS = { accept: "application/json, text/event-stream" };

function rpc(service: TestService, method: string, params?: unknown, headers: Record<string, string> = {}) {
  return service.post("/mcp", { jsonrpc: "2.0", id: 1, method, params }, { ...HEADERS, ...headers });
}

const writes = { text: "I write.", calls: [{ id: "call_1", name: "write", args: { n: 1 } }] };
const looks = { calls: [{ id: "call_2", name: "look", args: { path: "a" } }] };
const speaks = { text: "Done." };
const hangs = { text: "I think", hang: true };

describe("the agent as a tool", () => {
  test("answers with the reply, its session and its run, and goes on in the session", async () => {
    const model = scriptedModel([{ text: "Two files." }, { text: "As I said." }]);
    const client = await connect(await start({ model }));
    const first = await call(client, "ask_agent", { message: "Which files?" });
    expect(first.structuredContent).toMatchObject({
      reply: "Two files.",
      session_id: expect.stringMatching(/^ses_/),
      run_id: expect.stringMatching(/^run_/),
      auth_required: false,
      pending_calls: [],
    });
    expect(JSON.parse(first.content[0]?.text ?? "")).toEqual(first.structuredContent);
    const { session_id } = first.structuredContent;
    const second = await call(client, "ask_agent", { message: "Sure?", session_id, model: "another" });
    expect(second.structuredContent.session_id).toBe(session_id);
    expect(model.requests[1]?.model).toBe("another");
    expect(model.requests[1]?.messages).toHaveLength(3);
  });

  test("tells what it does while it works", async () => {
    const client = await connect(await start({ model: scriptedModel([looks, speaks]) }));
    const told: { progress: number; message?: string | undefined }[] = [];
    const args = { message: "Look." };
    const onprogress = (each: (typeof told)[number]) => void told.push(each);
    await client.callTool({ name: "ask_agent", arguments: args }, undefined, { onprogress });
    expect(told.map(({ progress }) => progress)).toEqual(told.map((_, index) => index + 1));
    expect(told.map(({ message }) => message)).toEqual(
      expect.arrayContaining([expect.stringContaining("Calls look"), "look has ended."]),
    );
  });

  test("of a swarm: who does it, and whose calls wait", async () => {
    const model = sceneModel(({ who, results }) => {
      if (who === "")
        return results.length === 0 ? delegate([{ role: "scribe", task: "Write." }]) : { text: "All." };
      return results.length === 0 ? writes : speaks;
    });
    const service = await start({ model });
    await service.post("/api/agents", { name: "sub" });
    await service.post("/api/agents", { name: "boss", sub_agents: ["sub"] });
    const client = await connect(service);
    const told: string[] = [];
    const onprogress = ({ message = "" }: { message?: string | undefined }) => void told.push(message);
    const args = { message: "Go.", model: "dragoman/boss" };
    await client.callTool({ name: "ask_agent", arguments: args }, undefined, { onprogress });
    const { approvals } = (await call(client, "list_approvals")).structuredContent;
    expect(approvals).toMatchObject([{ name: "write", agent: "scribe" }]);
    const { session_id } = approvals[0];
    const decision = { session_id, approved: true };
    const answer = await client.callTool({ name: "decide_approval", arguments: decision }, undefined, {
      onprogress,
    });
    expect(answer.structuredContent).toMatchObject({ reply: "I delegate.\n\nAll." });
    expect(told).toEqual(
      expect.arrayContaining([
        ...["scribe: Begins.", "scribe: Waits for a decision.", "Waits for a decision."],
        ...["scribe: write has ended.", "scribe: Is ready.", "delegate has ended."],
      ]),
    );
  });

  test("an upstream's fault is a result that says what happened", async () => {
    const fault = { code: "upstream_error", message: "The provider is overloaded.", status: 529 } as const;
    const client = await connect(await start({ model: scriptedModel([{ fault }]) }));
    const result = await call(client, "ask_agent", { message: "hi" });
    expect(result).toMatchObject({ isError: true, content: [{ text: "The provider is overloaded." }] });
  });

  test("parks, is listed, and goes on once somebody has decided", async () => {
    const client = await connect(await start({ model: scriptedModel([writes, speaks]) }));
    const parked = (await call(client, "ask_agent", { message: "write" })).structuredContent;
    expect(parked).toMatchObject({ auth_required: true, pending_calls: [{ id: "call_1", name: "write" }] });
    expect(done).toEqual([]);
    const { session_id, run_id } = parked;
    for (const args of [{}, { session_id }]) {
      const { approvals } = (await call(client, "list_approvals", args)).structuredContent;
      expect(approvals).toMatchObject([{ session_id, run_id, id: "call_1", name: "write", risk: "write" }]);
    }
    const decision = { session_id, call_ids: ["call_1"], approved: true };
    const after = await call(client, "decide_approval", decision);
    expect(after.structuredContent).toMatchObject({
      reply: "I write.\n\nDone.",
      run_id,
      auth_required: false,
    });
    expect(done).toEqual(["write 1"]);
    expect((await call(client, "list_approvals")).structuredContent.approvals).toEqual([]);
    expect((await call(client, "decide_approval", decision)).structuredContent.run_id).toBe(run_id);
    const opposite = await call(client, "decide_approval", { ...decision, approved: false });
    expect(opposite).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("approved already") }],
    });
    expect(done).toEqual(["write 1"]);
  });

  test("P2: what has expired is not listed and cannot be decided", async () => {
    const client = await connect(await start({ model: scriptedModel([writes, speaks]) }));
    const { session_id } = (await call(client, "ask_agent", { message: "write" })).structuredContent;
    home.clock.now = new Date(home.clock.now.getTime() + 25 * 3_600_000);
    expect((await call(client, "list_approvals")).structuredContent.approvals).toEqual([]);
    const late = await call(client, "decide_approval", { session_id, approved: true });
    expect(late).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("is over") }] });
    expect(done).toEqual([]);
  });

  test("sessions are listed, searched and read, page by page", async () => {
    const client = await connect(await start({ model: scriptedModel([{ text: "An answer." }]) }));
    const ids: string[] = [];
    for (const message of ["a zebra", "an ostrich", "a crane"])
      ids.unshift((await call(client, "ask_agent", { message })).structuredContent.session_id);
    const first = (await call(client, "list_sessions", { limit: 2 })).structuredContent;
    const rest = (await call(client, "list_sessions", { limit: 2, cursor: first.next_cursor }))
      .structuredContent;
    const seen = [...first.sessions, ...rest.sessions].map(({ id }: { id: string }) => id);
    expect(seen.sort()).toEqual([...ids].sort());
    const found = (await call(client, "search_sessions", { query: "ostrich" })).structuredContent.sessions;
    expect(found.map(({ id }: { id: string }) => id)).toEqual([ids[1]]);
    const read = (await call(client, "read_session", { session_id: ids[1] })).structuredContent;
    expect(read.session.id).toBe(ids[1]);
    expect(read.messages.map(({ content }: { content: string }) => content)).toEqual([
      "an ostrich",
      "An answer.",
    ]);
    const unknown = await call(client, "read_session", { session_id: "ses_unknown" });
    expect(unknown).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("no session") }],
    });
  });
});

test("memories and notes are searched and read", async () => {
  const service = await start({ model: scriptedModel([speaks]) });
  const client = await connect(service);
  await service.post("/api/memory", { document: "The user's zebra is called Anna." });
  const { note_id } = await json(
    await service.post("/api/notes", {
      title: "Zebras",
      content: "They have **stripes**.",
      category: "Animals",
    }),
  );
  const { memories } = (await call(client, "search_memory", { query: "zebra" })).structuredContent;
  expect(memories).toMatchObject([{ document: "The user's zebra is called Anna." }]);
  const { notes } = (await call(client, "search_notes", { query: "stripes" })).structuredContent;
  expect(notes).toMatchObject([{ id: note_id, title: "Zebras" }]);
  expect(notes[0]).not.toHaveProperty("content");
  expect((await call(client, "search_notes", { category: "Other" })).structuredContent.notes).toEqual([]);
  const note = (await call(client, "read_note", { note_id })).structuredContent;
  expect(note).toMatchObject({ content: "They have **stripes**.", category: "Animals" });
  expect(await call(client, "read_note", { note_id: "note_unknown" })).toMatchObject({ isError: true });
});

describe("who calls", () => {
  test("A4, A5: the Bearer token says who, and another owner's records are not there", async () => {
    const env = { ACCESS_TOKENS: "ann:token-of-ann-1234567890,ben:token-of-ben-1234567890" };
    const service = await start({ model: scriptedModel([writes, speaks]), env });
    const ann = await connect(service, { authorization: "Bearer token-of-ann-1234567890" });
    const ben = await connect(service, { authorization: "Bearer token-of-ben-1234567890" });
    const { session_id } = (await call(ann, "ask_agent", { message: "write" })).structuredContent;
    expect((await call(ben, "list_sessions")).structuredContent.sessions).toEqual([]);
    expect((await call(ben, "list_approvals")).structuredContent.approvals).toEqual([]);
    await service.post(
      "/api/notes",
      { title: "Ann's", content: "x" },
      { authorization: "Bearer token-of-ann-1234567890" },
    );
    expect((await call(ben, "search_notes")).structuredContent.notes).toEqual([]);
    const other = async (name: string, args: object, id: string) =>
      (await call(ben, name, { ...args, session_id: id })).content[0]?.text;
    for (const [name, args] of [
      ["read_session", {}],
      ["list_approvals", {}],
      ["ask_agent", { message: "hi" }],
      ["decide_approval", { approved: true }],
    ] as const)
      expect(await other(name, args, session_id), name).toBe(await other(name, args, "ses_unknown"));
    expect(done).toEqual([]);
    const refused = await rpc(service, "tools/list");
    expect(refused.status).toBe(401);
    expect(refused.headers.get("www-authenticate")).toBe("Bearer");
    expect(await json(refused)).toMatchObject({
      jsonrpc: "2.0",
      error: { message: expect.stringContaining("Bearer"), data: { code: "unauthorized" } },
      id: null,
    });
  });

  test("the provider key: the caller's header, or the operator's", async () => {
    const service = await start({ model: scriptedModel([speaks]) });
    await call(await connect(service, { "x-provider-key": "sk-caller" }), "ask_agent", { message: "hi" });
    await call(await connect(service), "ask_agent", { message: "hi" });
    expect(service.keys).toEqual(["sk-caller", "sk-operator"]);
    const client = await connect(service, { "x-provider": "groq" });
    const none = await call(client, "ask_agent", { message: "hi" });
    expect(none).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("x-provider-key") }],
    });
    const bad = await rpc(service, "tools/list", {}, { "x-provider-key": "with blanks" });
    expect(bad.status).toBe(400);
  });

  test("with AUTH=key the Bearer token is the provider key", async () => {
    const service = await start({ model: scriptedModel([speaks]), env: { AUTH: "key" } });
    const client = await connect(service, { authorization: "Bearer sk-of-the-caller" });
    await call(client, "ask_agent", { message: "hi" });
    expect(service.keys).toEqual(["sk-of-the-caller"]);
    const other = await connect(service, { authorization: "Bearer sk-of-another" });
    expect((await call(other, "list_sessions")).structuredContent.sessions).toEqual([]);
  });

  test("A2, P4: foreign hosts, foreign pages and the agent's own commands stay outside", async () => {
    const service = await start({ model: scriptedModel([speaks]) });
    for (const headers of [
      { host: "evil.example" },
      { origin: "https://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
    ] as Record<string, string>[]) {
      const response = await rpc(service, "tools/list", {}, headers);
      expect(response.status).toBe(403);
      expect((await json(response)).error.data.code).toBe("forbidden");
    }
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const headers = { ...HEADERS, "content-type": "application/json" };
    const request = new Request("http://127.0.0.1:8000/mcp", { method: "POST", headers, body });
    const own = await createApp(service.services).fetch(request, { startedByAgent: async () => true });
    expect(own.status).toBe(403);
  });

  test("A5: every request of a batch counts", async () => {
    const service = await start({ model: scriptedModel([speaks]), env: { RATE_LIMIT: "5" } });
    const batch = Array.from({ length: 6 }, (_, id) => ({ jsonrpc: "2.0", id, method: "ping" }));
    const response = await service.post("/mcp", batch, HEADERS);
    expect(response.status).toBe(429);
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("A5: runs count, too", async () => {
    const service = await start({ model: scriptedModel([hangs]), env: { MAX_RUNS: "1" } });
    const client = await connect(service);
    const abort = new AbortController();
    const first = client.callTool({ name: "ask_agent", arguments: { message: "a" } }, undefined, abort);
    first.catch(() => {});
    await vi.waitFor(async () =>
      expect((await service.store.runs.list("local", { limit: 1 })).runs).toHaveLength(1),
    );
    const second = await call(client, "ask_agent", { message: "b" });
    expect(second).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("MAX_RUNS") }] });
    abort.abort();
  });
});

describe("the protocol", () => {
  test.each([...SUPPORTED_PROTOCOL_VERSIONS, "1999-01-01"])(
    "initialize agrees on a version: %s",
    async (version) => {
      const service = await start({ model: scriptedModel([speaks]) });
      const response = await rpc(service, "initialize", {
        protocolVersion: version,
        capabilities: {},
        clientInfo: { name: "a test", version: "1" },
      });
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(response.headers.get("mcp-session-id")).toMatch(/^mcp_/);
      const { result } = await json(response);
      expect(result.protocolVersion).toBe(version === "1999-01-01" ? LATEST_PROTOCOL_VERSION : version);
      expect(result.capabilities).toEqual({ tools: {} });
      expect(result.serverInfo.name).toBe("dragoman");
      expect(result.instructions).toContain("decide_approval");
      const later = await rpc(service, "ping", {}, { "mcp-protocol-version": version });
      expect(later.status).toBe(version === "1999-01-01" ? 400 : 200);
    },
  );

  test("the tools say what they do, take and give", async () => {
    const client = await connect(await start({ model: scriptedModel([speaks]) }));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      ...["ask_agent", "decide_approval"],
      ...["list_sessions", "search_sessions", "read_session", "list_approvals"],
      ...["search_memory", "search_notes", "read_note"],
    ]);
    for (const tool of tools) {
      expect(tool.description?.length).toBeGreaterThan(30);
      expect(tool.inputSchema.type).toBe("object");
      expect(tool.outputSchema?.type).toBe("object");
      expect(tool.annotations?.readOnlyHint).toBe(!["ask_agent", "decide_approval"].includes(tool.name));
    }
  });

  test("arguments that do not fit and tools that are not there are told in sentences", async () => {
    const service = await start({ model: scriptedModel([speaks]) });
    const client = await connect(service);
    const wrong = await call(client, "ask_agent", { message: 1 });
    expect(wrong).toMatchObject({
      isError: true,
      content: [{ text: "message has to be a string, but it is 1." }],
    });
    const missing = await json(await rpc(service, "tools/call", { name: "other" }));
    expect(missing.error).toMatchObject({ code: -32602, message: expect.stringContaining("ask_agent") });
    const method = await json(await rpc(service, "resources/list"));
    expect(method.error).toMatchObject({ code: -32601, message: expect.stringContaining("resources/list") });
  });

  test("our own failure is told as ours, without detail, and logged", async () => {
    const service = await start({ model: scriptedModel([speaks]) });
    service.store.sessions.list = () => Promise.reject(new Error("a broken thing"));
    const { error } = await json(await rpc(service, "tools/call", { name: "list_sessions" }));
    expect(error).toMatchObject({ code: -32603, message: expect.not.stringContaining("broken") });
    expect(JSON.stringify(service.logged)).toContain("a broken thing");
  });

  test.each(["GET", "DELETE", "PUT"])("%s is not for this server", async (method) => {
    const service = await start({ model: scriptedModel([speaks]) });
    const response = await service.request("/mcp", { method, headers: HEADERS });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe("POST");
    expect((await json(response)).error.data.code).toBe("method_not_allowed");
  });

  test("A3: bodies are held to the same rules as everywhere", async () => {
    const service = await start({ model: scriptedModel([speaks]), env: { API_BODY_LIMIT: "65536" } });
    const send = async (body: string, headers: Record<string, string> = {}) => {
      const all = { ...HEADERS, "content-type": "application/json", ...headers };
      const response = await service.request("/mcp", { method: "POST", body, headers: all });
      return [response.status, (await json(response)).error.message] as const;
    };
    const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    expect(await send(list, { "content-type": "text/plain" })).toEqual([415, expect.any(String)]);
    expect(await send(list, { accept: "application/json" })).toEqual([406, expect.any(String)]);
    expect(await send(`"${"a".repeat(70_000)}"`)).toEqual([413, expect.any(String)]);
    expect(await send("[".repeat(70))).toEqual([400, expect.stringContaining("nested")]);
    expect(await send("{")).toEqual([400, expect.stringContaining("valid JSON")]);
    const asks = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "ask_agent" },
    });
    expect(await send(asks, { accept: "application/json" })).toEqual([406, expect.any(String)]);
    expect(await send("{}")).toEqual([400, expect.stringContaining("JSON-RPC 2.0")]);
    expect(await send("[]")).toEqual([400, expect.stringContaining("JSON-RPC 2.0")]);
    const early = { jsonrpc: "2.0", id: 1, method: "initialize", params: {} };
    expect(await send(JSON.stringify(early))).toEqual([400, expect.stringContaining("protocolVersion")]);
  });

  test("R9: no message breaks it, and none is left without an answer", async () => {
    const service = await start({ model: scriptedModel([speaks]) });
    const method = fc.constantFrom(
      "initialize",
      "ping",
      "tools/list",
      "tools/call",
      "notifications/cancelled",
      "x",
    );
    const name = fc.constantFrom(
      "list_sessions",
      "read_session",
      "ask_agent",
      "decide_approval",
      "__proto__",
      7,
    );
    const args = fc.record(
      { session_id: fc.jsonValue(), message: fc.jsonValue(), limit: fc.jsonValue() },
      { requiredKeys: [] },
    );
    const message = fc.record(
      {
        jsonrpc: fc.constantFrom("2.0", "1.0"),
        id: fc.oneof(fc.string(), fc.integer(), fc.constant(null)),
        method,
        params: fc.oneof(fc.record({ name, arguments: args, requestId: fc.jsonValue() }), fc.jsonValue()),
      },
      { requiredKeys: ["jsonrpc"] },
    );
    const body = fc.oneof(message, fc.array(message, { maxLength: 3 }), fc.jsonValue());
    await fc.assert(
      fc.asyncProperty(body, async (value) => {
        const response = await service.post("/mcp", value, HEADERS);
        expect([200, 202, 400]).toContain(response.status);
        const text = await response.text();
        expect(text).not.toContain("-32603");
        if (response.status !== 202) expect(text.length).toBeGreaterThan(0);
      }),
      { numRuns: 150 },
    );
  });
});

describe("giving up", () => {
  const runs = async (service: TestService) => (await service.store.runs.list("local", { limit: 10 })).runs;

  const running = (service: TestService, count = 1) =>
    vi.waitFor(async () => expect(await runs(service)).toHaveLength(count));

  test("R2: a cancelled call stops its run, in whatever process it is", async () => {
    const service = await start({ model: scriptedModel([hangs]) });
    const other = await start({ model: scriptedModel([hangs]) });
    for (const receiver of [service, other]) {
      const session = { "mcp-session-id": `mcp_of-${receiver === other}` };
      const params = { name: "ask_agent", arguments: { message: "think" } };
      const answer = rpc(service, "tools/call", params, session).then((response) => response.text());
      await vi.waitFor(async () =>
        expect((await runs(service)).map(({ status }) => status)).toContain("running"),
      );
      const told = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
      expect((await receiver.post("/mcp", told, { ...HEADERS, ...session })).status).toBe(202);
      expect(await answer).toContain("stopped");
      expect((await runs(service)).map(({ status }) => status)).not.toContain("running");
    }
  });

  test("a client cancels its own calls only, though another has the same number", async () => {
    const service = await start({ model: scriptedModel([hangs]) });
    const [one, two] = [await connect(service), await connect(service)];
    const abort = new AbortController();
    const args = { name: "ask_agent", arguments: { message: "think" } };
    const cancelled = one.callTool(args, undefined, { signal: abort.signal }).catch(String);
    const kept = two.callTool(args);
    await running(service, 2);
    abort.abort("enough");
    expect(await cancelled).toContain("enough");
    await vi.waitFor(async () =>
      expect((await runs(service)).map(({ status }) => status).sort()).toEqual(["running", "stopped"]),
    );
    const left = (await runs(service)).find(({ status }) => status === "running");
    await service.services.runs.stop("local", left?.id ?? "");
    expect(((await kept) as Result).content[0]?.text).toContain("stopped");
  });

  test.each([
    ["stops the run", {}, "stopped"],
    ["lets it go on where that is asked for", { "x-on-disconnect": "continue" }, "running"],
  ])("a client that goes %s", async (_, headers: Record<string, string>, status) => {
    const service = await start({ model: scriptedModel([hangs]) });
    const params = { name: "ask_agent", arguments: { message: "think" }, _meta: { progressToken: 1 } };
    const response = await rpc(service, "tools/call", params, headers);
    const reader = response.body?.getReader();
    await reader?.read();
    await running(service);
    await reader?.cancel();
    await vi.waitFor(async () => expect((await runs(service))[0]?.status).toBe(status));
    for (const { id } of await runs(service)) await service.services.runs.stop("local", id);
  });

  test("the number of an earlier call may be used again", async () => {
    const service = await start({ model: scriptedModel([speaks]) });
    const session = { "mcp-session-id": "mcp_of-a-client" };
    const params = { name: "ask_agent", arguments: { message: "hi" } };
    for (let i = 0; i < 2; i++)
      expect(await (await rpc(service, "tools/call", params, session)).text()).toContain("Done.");
    expect(new Set((await runs(service)).map(({ id }) => id)).size).toBe(2);
  });
});
