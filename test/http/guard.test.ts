import * as fc from "fast-check";
import { Hono } from "hono";
import { expect, test } from "vitest";
import { type Config, parseConfig } from "../../src/config.ts";
import type { AppEnv } from "../../src/http/env.ts";
import { guard } from "../../src/http/guard.ts";
import { errorResponse } from "../../src/http/problem.ts";

type Heads = Record<string, string>;

const SECRET = "s".repeat(40);

function access(env: Record<string, string> = {}): Config["access"] {
  return parseConfig(env, { runtime: "node" }).access;
}

/** An app whose every path behind the guard says who the caller is. */
function serviceWith(env: Record<string, string> = {}, now?: () => number) {
  const app = new Hono<AppEnv>();
  app.use(guard(access(env), { secret: SECRET, ...(now ? { now } : {}) }));
  app.all("*", (c) => c.json({ owner: c.get("owner"), key: c.get("providerKey") ?? null }));
  app.onError((error, c) => errorResponse(c, error));
  return (path: string, headers: Heads = {}, method = "GET", address = "10.0.0.1") =>
    app.request(`http://localhost:8000${path}`, { method, headers }, { address: () => address });
}

async function bodyOf(response: Response): Promise<Record<string, unknown>> {
  return (await response.json()) as Record<string, unknown>;
}

test("A2: loopback names may call without a token, under any port", async () => {
  const call = serviceWith();
  for (const host of [
    "localhost",
    "LOCALHOST:1",
    "127.0.0.1:8000",
    "127.9.9.9",
    "[::1]:8000",
    "app.localhost:80",
  ]) {
    const response = await call("/api/x", { host });
    expect(await bodyOf(response)).toEqual({ owner: "local", key: null });
  }
});

test("A2: another name in Host is refused on every path, and says what to set", async () => {
  const call = serviceWith({ ALLOWED_HOSTS: "box.lan,10.0.0.5:8000" });
  const hosts = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "0.0.0.0",
    "10.0.0.5",
    "[::2]",
    "a@localhost",
    "",
  ];
  for (const host of hosts)
    for (const path of ["/api/x", "/v1/messages", "/healthz", "/", "/nowhere"]) {
      const response = await call(path, { host });
      expect(response.status).toBe(403);
      expect(await response.text()).toContain("ALLOWED_HOSTS");
    }
  for (const host of ["box.lan", "BOX.lan:9", "10.0.0.5:8000"])
    expect((await call("/", { host })).status).toBe(200);
});

test("A2: foreign and null origins and cross-site requests are refused, our own origin is not", async () => {
  const call = serviceWith();
  const host = "localhost:8000";
  for (const origin of [
    "https://evil.example",
    "null",
    "http://localhost:3000",
    "http://127.0.0.1:8000",
    "file://",
  ])
    expect((await call("/v1/chat/completions", { host, origin }, "POST")).status).toBe(403);
  expect((await call("/healthz", { host, "sec-fetch-site": "cross-site" })).status).toBe(403);
  for (const own of [
    { origin: "http://localhost:8000" },
    { "sec-fetch-site": "same-origin" },
    { "sec-fetch-site": "none" },
  ] as Heads[]) {
    const response = await call("/api/x", { host, ...own }, "POST");
    expect(response.status).toBe(200);
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
  }
});

test("CORS_ORIGINS lets those pages in, with a preflight that needs no token", async () => {
  const call = serviceWith({ CORS_ORIGINS: "https://chat.example", ACCESS_TOKENS: "alice:t1" });
  const origin = "https://chat.example";
  const preflight = await call(
    "/v1/messages",
    { origin, "access-control-request-method": "POST", "access-control-request-headers": "x-api-key" },
    "OPTIONS",
  );
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-origin")).toBe(origin);
  expect(preflight.headers.get("access-control-allow-headers")).toBe("x-api-key");
  const refused = await call("/v1/messages", { origin, "sec-fetch-site": "cross-site" }, "POST");
  expect(refused.status).toBe(401);
  expect(refused.headers.get("access-control-allow-origin")).toBe(origin);
  expect(refused.headers.get("vary")).toContain("origin");
  expect((await call("/v1/messages", { origin: "https://other.example" }, "OPTIONS")).status).toBe(403);
});

test("A6: no spelling of a path passes the guard by", async () => {
  const call = serviceWith({ ACCESS_TOKENS: "alice:t1" });
  const spellings = [
    "//v1/models",
    "/v1//models",
    "/v1%2Fmodels",
    "/v1%2fmodels",
    "/v1%5cmodels",
    "/a%00",
    "/v1/models//",
  ];
  for (const path of spellings) {
    const response = await call(path, { authorization: "Bearer t1" });
    expect(response.status).toBe(404);
    expect((await call(path)).status).toBe(404);
  }
  for (const path of ["/V1/models", "/v1/models/", "/healthz/", "/HEALTHZ", "/%76%31/models", "/api", "/v1"])
    expect((await call(path)).status).toBe(401);
});

test("A6: whatever the path, a request without a token gets nothing but health", async () => {
  const call = serviceWith({ ACCESS_TOKENS: "alice:t1" });
  const segment = fc.constantFrom(
    "v1",
    "V1",
    "api",
    "healthz",
    "readyz",
    "..",
    ".",
    "",
    "%2e",
    "%2f",
    "models",
    "%76",
    ";x",
    "a b",
    "é",
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(segment, { maxLength: 6 }),
      fc.constantFrom("", "?x=/healthz", "#/healthz"),
      async (parts, tail) => {
        const path = `/${parts.join("/")}${tail}`;
        const resolved = new URL(`http://localhost:8000${path}`).pathname;
        const { status } = await call(path);
        if (resolved === "/healthz" || resolved === "/readyz") expect(status).toBe(200);
        else expect([401, 404]).toContain(status);
      },
    ),
  );
});

test("A4: /api takes the token as Bearer", async () => {
  const call = serviceWith({ ACCESS_TOKENS: "alice:t1,bob:t2" });
  expect(await bodyOf(await call("/api/x", { authorization: "Bearer t2" }))).toEqual({
    owner: "bob",
    key: null,
  });
  for (const headers of [
    {},
    { authorization: "Bearer t3" },
    { authorization: "Basic t1" },
    { "x-access-token": "t1" },
    { "x-api-key": "t1" },
  ] as Heads[]) {
    const response = await call("/api/x", headers);
    expect(response.status).toBe(401);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(await bodyOf(response)).toMatchObject({
      status: 401,
      code: "unauthorized",
      request_id: response.headers.get("x-request-id"),
    });
  }
});

test("A4: /v1 takes the token beside the key, before it, or alone", async () => {
  const call = serviceWith({ ACCESS_TOKENS: "alice:t1" });
  const cases: [Heads, string | null][] = [
    [{ "x-access-token": "t1", authorization: "Bearer sk-1" }, "sk-1"],
    [{ "x-access-token": "t1", "x-api-key": "sk:with:colons" }, "sk:with:colons"],
    [{ "x-access-token": "t1" }, null],
    [{ authorization: "Bearer t1:sk-1" }, "sk-1"],
    [{ "x-api-key": "t1:sk-ant-1" }, "sk-ant-1"],
    [{ "x-goog-api-key": "t1:AIza" }, "AIza"],
    [{ "x-api-key": "t1" }, null],
    [{ authorization: "bearer t1:" }, null],
  ];
  for (const path of ["/v1/models", "/v1/messages", "/openai/v1/chat/completions", "/v1/v1/messages"])
    for (const [headers, key] of cases)
      expect(await bodyOf(await call(path, headers))).toEqual({ owner: "alice", key });
  for (const headers of [
    { authorization: "Bearer sk-1" },
    { "x-api-key": "t2:sk-1" },
    { "x-access-token": "no", "x-api-key": "t1" },
  ] as Heads[])
    expect((await call("/v1/models", headers)).status).toBe(401);
});

test("A4: a refusal has the shape of its door", async () => {
  const call = serviceWith({ ACCESS_TOKENS: "alice:t1" });
  const messages = await call("/v1/messages", {}, "POST");
  expect(await bodyOf(messages)).toMatchObject({ type: "error", error: { type: "authentication_error" } });
  expect(messages.headers.get("request-id")).toBe(messages.headers.get("x-request-id"));
  const chat = await call("/v1/chat/completions", {}, "POST");
  expect(await bodyOf(chat)).toMatchObject({ error: { message: expect.stringContaining("x-access-token") } });
  expect(await bodyOf(await call("/v1/models", { "anthropic-version": "2023-06-01" }))).toMatchObject({
    type: "error",
  });
});

test("A4: ten wrong tokens a minute close the door for that address alone", async () => {
  let now = 0;
  const call = serviceWith({ ACCESS_TOKENS: "alice:t1" }, () => now);
  const guess = (address: string, token = "wrong") =>
    call("/api/x", { authorization: `Bearer ${token}` }, "GET", address);
  for (let i = 0; i < 10; i++) expect((await guess("10.0.0.1")).status).toBe(401);
  const closed = await guess("10.0.0.1", "t1");
  expect(closed.status).toBe(429);
  expect(closed.headers.get("retry-after")).toBe("60");
  expect((await guess("10.0.0.2", "t1")).status).toBe(200);
  for (let i = 0; i < 10; i++) await guess(`2001:db8:1:2::${i}`);
  expect((await guess("2001:db8:1:2:3:4:5:6", "t1")).status).toBe(429);
  expect((await guess("2001:db8:1:3::1", "t1")).status).toBe(200);
  now = 60_000;
  expect((await guess("10.0.0.1", "t1")).status).toBe(200);
});

test("A4: requests without any token are no guesses", async () => {
  const call = serviceWith({ ACCESS_TOKENS: "alice:t1" });
  for (let i = 0; i < 20; i++) expect((await call("/api/x")).status).toBe(401);
});

test("A5: with AUTH=key the owner follows from the key and does not show it", async () => {
  const call = serviceWith({ AUTH: "key" });
  const ownerOf = async (key: string, path = "/v1/models") =>
    (await bodyOf(await call(path, { authorization: `Bearer ${key}` }))).owner;
  const owner = await ownerOf("sk-canary-1");
  expect(owner).toMatch(/^key_[0-9a-f]{64}$/);
  expect(await ownerOf("sk-canary-1", "/api/x")).toBe(owner);
  expect(await ownerOf("sk-canary-2")).not.toBe(owner);
  expect((await call("/v1/models")).status).toBe(401);
  expect((await call("/healthz")).status).toBe(200);
});

test("in open mode the key of /v1 is passed on whole", async () => {
  const call = serviceWith();
  expect(await bodyOf(await call("/v1/models", { authorization: "Bearer a:b" }))).toEqual({
    owner: "local",
    key: "a:b",
  });
  expect(await bodyOf(await call("/v1/models", { "x-goog-api-key": "AIza" }))).toEqual({
    owner: "local",
    key: "AIza",
  });
});

test("every response has a request id: the caller's where it is well formed, else ours", async () => {
  const call = serviceWith();
  const given = await call("/api/x", { "x-request-id": "trace-0001" });
  expect(given.headers.get("x-request-id")).toBe("trace-0001");
  for (const bad of ["short", "with blanks in it", "x".repeat(200)]) {
    const made = await call("/api/x", { "x-request-id": bad });
    expect(made.headers.get("x-request-id")).toMatch(/^req_[a-z2-7]{32}$/);
  }
});

test("P4: the agent's own commands may ask whether the service is well, and nothing else", async () => {
  const app = new Hono<AppEnv>();
  app.use(guard(access({ ACCESS_TOKENS: "alice:token-of-alice" }), { secret: SECRET }));
  app.all("*", (c) => c.text("served"));
  const call = (path: string, isAgent: boolean) =>
    app.request(
      `http://localhost:8000${path}`,
      { headers: { authorization: "Bearer token-of-alice", host: "localhost" } },
      { address: () => "127.0.0.1", startedByAgent: async () => isAgent },
    );
  for (const path of [
    "/api/chat/approve",
    "/v1/models",
    "/openapi.json",
    "/docs",
    "/",
    "/healthz/",
    "/HEALTHZ",
  ]) {
    const refused = await call(path, true);
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain("an agent may not call the service it runs in");
    expect((await call(path, false)).status).toBe(200);
  }
  for (const path of ["/healthz", "/readyz"]) expect((await call(path, true)).status).toBe(200);
});
