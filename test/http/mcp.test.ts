/** `/api/mcp`: servers connected, listed, approved, disconnected and forgotten, each owner's own. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { type HostileHttp, startHostileHttp } from "../mcp/hostile-http.ts";
import { scriptedModel } from "../scripted-model.ts";
import { reply, startUpstream } from "../upstream-server.ts";
import { createHome, createService, json, type TestHome, type TestService } from "./service.ts";

let far: HostileHttp;
let url: string;
beforeAll(async () => {
  far = await startHostileHttp();
  url = far.url;
});
afterAll(() => far.stop());

let home: TestHome;
let service: TestService;
const start = async (env: Record<string, string> = {}) => {
  service = await createService(home, { model: scriptedModel([]), fetch: createLocalFetch(), env });
};
beforeEach(async () => {
  home = await createHome();
});
afterEach(async () => {
  await service.close();
  await home.close();
});

const connect = (more: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
  service.post("/api/mcp/connect", { name: "Far", url, ...more }, headers);

describe("over the routes", () => {
  test("connect, list, disconnect, connect again, forget", async () => {
    await start();
    const connected = await connect({
      headers: { authorization: "Bearer secret-of-the-test" },
      tools: { include: ["count"] },
    });
    expect(connected.status).toBe(201);
    expect(await json(connected)).toEqual({
      status: "connected",
      id: "far",
      tools: ["far__count"],
      problem: null,
    });
    const facts = { name: "Far", transport: "http", command: null, args: [], url };
    const listed = await service.request("/api/mcp/servers");
    const text = await listed.text();
    expect(text).not.toContain("secret-of-the-test");
    expect(JSON.parse(text)).toMatchObject({
      servers: {
        far: { ...facts, status: "connected", toolNames: ["far__count"], error: null, held_back: [] },
      },
      saved_servers: [
        {
          ...{ id: "far", ...facts, is_active: true, tools: { include: ["count"], exclude: [] } },
          ...{
            env: [],
            headers: ["authorization"],
            last_error: null,
            created_at: "2026-11-20T10:00:00.000Z",
          },
        },
      ],
    });
    const left = await service.post("/api/mcp/disconnect/far", {});
    expect(await json(left)).toEqual({ status: "disconnected", id: "far" });
    expect(await json(await service.request("/api/mcp/servers"))).toMatchObject({
      servers: {},
      saved_servers: [{ id: "far", is_active: false }],
    });
    expect((await service.post("/api/mcp/connect", { server_id: "far" })).status).toBe(201);
    const gone = await service.request("/api/mcp/saved/far", { method: "DELETE" });
    expect(await json(gone)).toEqual({ status: "deleted", deleted: 1 });
    expect(await json(await service.request("/api/mcp/servers"))).toEqual({ servers: {}, saved_servers: [] });
  });

  test("what is held back is approved, with or without a body", async () => {
    await start();
    await connect();
    const definition = { description: "Other.", inputSchema: { type: "object" } };
    await service.store.mcp.observe("local", "far", [
      { name: "count", hash: "h1", definition },
      { name: "hang", hash: "h2", definition },
    ]);
    const wrong = await service.post("/api/mcp/servers/far/approve", {
      tools: [{ name: "count", hash: "h0" }],
    });
    expect(wrong.status).toBe(409);
    const one = await service.post("/api/mcp/servers/far/approve", {
      tools: [{ name: "count", hash: "h1" }],
    });
    expect(await json(one)).toEqual({ status: "approved", approved: 1 });
    const rest = await service.request("/api/mcp/servers/far/approve", { method: "POST" });
    expect(await json(rest)).toEqual({ status: "approved", approved: 1 });
    expect((await json(await service.request("/api/mcp/servers"))).servers.far.held_back).toEqual([]);
  });

  test("the same Idempotency-Key connects once", async () => {
    await start();
    const key = { "idempotency-key": "once" };
    expect((await connect({}, key)).status).toBe(201);
    const again = await connect({}, key);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
  });

  test("what cannot be reached is a 502 with the reason, saved as inactive", async () => {
    await start();
    const failed = await connect({ name: "Gone", url: "http://127.0.0.1:9/mcp" });
    expect(failed.status).toBe(502);
    expect(await json(failed)).toMatchObject({
      code: "unreachable",
      detail: expect.stringContaining("refuses connections"),
    });
    expect(await json(await service.request("/api/mcp/servers"))).toMatchObject({
      servers: {},
      saved_servers: [
        { id: "gone", is_active: false, last_error: expect.stringContaining("refuses connections") },
      ],
    });
  });

  test.each([
    [{ name: "x" }, "transport"],
    [{ name: "x", url: "nowhere" }, "url"],
    [{ name: "x", url: "https://x.example", headers: { host: "y" } }, "headers"],
    [{ server_id: "a b", url: "https://x.example" }, "server_id"],
    [{ name: "x", url: "https://x.example", tools: { include: "all" } }, "tools.include"],
  ])("%j is a 400 that names the field", async (body, path) => {
    await start();
    const refused = await service.post("/api/mcp/connect", body);
    expect(refused.status).toBe(400);
    expect((await json(refused)).errors[0].path).toContain(path);
  });

  test("what is not there is a 404", async () => {
    await start();
    const statuses = await Promise.all([
      service.post("/api/mcp/disconnect/none", {}),
      service.post("/api/mcp/servers/none/approve", {}),
      service.request("/api/mcp/saved/none", { method: "DELETE" }),
      service.post("/api/mcp/connect", { server_id: "none" }),
    ]);
    expect(statuses.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
  });

  test("A5: with tokens each name has servers of its own, and E1: those of this network are refused", async () => {
    await start({ ACCESS_TOKENS: "ada:token-of-ada,bob:token-of-bob" });
    const spec = {
      ...{ id: "far", name: "Far", transport: "http" as const, command: null, args: [], url },
      tools: { include: [], exclude: [] },
    };
    await service.store.mcp.save("ada", spec, { sealed: null, active: true, lastError: null });
    const ask = (path: string, method: string, token: string) => service.request(path, { method, token });
    expect((await json(await ask("/api/mcp/servers", "GET", "token-of-bob"))).saved_servers).toEqual([]);
    expect((await ask("/api/mcp/saved/far", "DELETE", "token-of-bob")).status).toBe(404);
    expect((await json(await ask("/api/mcp/servers", "GET", "token-of-ada"))).saved_servers).toHaveLength(1);
    const near = await service.request("/api/mcp/connect", {
      method: "POST",
      token: "token-of-bob",
      json: { name: "Near", url },
    });
    expect(near.status).toBe(502);
    expect((await json(near)).detail).toContain("may not be fetched");
  });
});

test.each([
  [{ server_id: "a__b" }, "server_id has to be letters and digits, with single - or _ between them."],
  [{ headers: { "x-a": "1\r\nx-b: 2" } }, "headers.x-a has to be the value of a header, on one line."],
  [{ headers: { "a b": "1" } }, 'headers["a b"] has to be the name of a header.'],
  [{ headers: { Host: "x" } }, "headers.Host has to be another header: the connection sets this one itself."],
  [{ env: { "A=B": "1" } }, 'env["A=B"] has to be the name of an environment variable.'],
  [{ args: ["\0"] }, "args[0] has to be without NUL characters."],
])("%j is refused with the rule that it breaks", async (more, detail) => {
  await start();
  const refused = await connect(more);
  expect(refused.status).toBe(400);
  expect((await json(refused)).detail).toBe(detail);
});

test("a server that knows no OAuth is not authorized, and a sentence says so", async () => {
  await start();
  await using site = await startUpstream(reply(404, "<!doctype html><pre>Cannot POST /register</pre>"));
  expect((await connect({ url: `${site.url}/mcp` })).status).toBe(502);
  const begun = await service.request("/api/mcp/oauth/far/start");
  expect(begun.status).toBe(502);
  expect((await json(begun)).detail).toMatch(
    /^The MCP server Far cannot be authorized: .* wants no authorization\.$/,
  );
});

describe("programs", () => {
  test.each([
    [{ TERMINAL: "virtual" }, 403, "MCP_STDIO=on"],
    [{ TERMINAL: "host", MCP_STDIO: "off" }, 403, "MCP_STDIO=on"],
    // Any text is a key, and would start any program.
    [{ TERMINAL: "host", AUTH: "key" }, 403, "MCP_STDIO=on"],
    // This platform has no way to start one.
    [{ TERMINAL: "virtual", MCP_STDIO: "on" }, 501, "Linux or macOS"],
  ])("with %j they are refused with %i and a sentence", async (env, status, sentence) => {
    await start(env as unknown as Record<string, string>);
    const refused = await service.request("/api/mcp/connect", {
      ...{ method: "POST", token: "sk-any-text", json: { name: "Program", command: "true" } },
    });
    expect(refused.status).toBe(status);
    expect((await json(refused)).detail).toContain(sentence);
  });
});

test("P4: what the service's own connections send is refused by the service", async () => {
  await start();
  const mark = await service.services.mcp.callerMark;
  const own = await service.request("/api/sessions", { headers: { "x-dragoman-caller": mark } });
  expect(own.status).toBe(403);
  const other = await service.request("/api/sessions", {
    headers: { "x-dragoman-caller": "of another Dragoman" },
  });
  expect(other.status).toBe(200);
});
