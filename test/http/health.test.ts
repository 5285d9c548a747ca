import { expect, test } from "vitest";
import { healthRoutes } from "../../src/http/health.ts";
import type { Services } from "../../src/services.ts";

function routesWith(ping: () => Promise<void>, { full = false, stalled = false } = {}) {
  const lines: unknown[] = [];
  const log = (...line: unknown[]) => lines.push(line);
  const automation = { check: () => void (stalled && fail("no look at what is due has ended well")) };
  const disk = async () => void (full && fail("only 5 bytes are free"));
  const services = { store: { ping }, platform: { log, disk }, automation };
  return { app: healthRoutes(services as unknown as Services), lines };
}

function fail(words: string): never {
  throw new Error(words);
}

test("a database that answers makes the service ready", async () => {
  const { app, lines } = routesWith(async () => {});
  const response = await app.request("/readyz");
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({
    status: "ok",
    checks: { database: "ok", disk: "ok", automation: "ok" },
  });
  expect(lines).toEqual([]);
});

test("one that does not makes it unready, alive still, and only the log says why", async () => {
  const { app, lines } = routesWith(() => Promise.reject(new Error("ECONNREFUSED db.internal:8080")));
  const response = await app.request("/readyz");
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toBe("1");
  expect(await response.json()).toEqual({
    status: "unavailable",
    checks: { database: "failing", disk: "ok", automation: "ok" },
  });
  expect(lines).toEqual([
    ["warning", "not ready", { check: "database", error: "Error: ECONNREFUSED db.internal:8080" }],
  ]);
  expect((await app.request("/healthz")).status).toBe(200);
});

test.each([
  ["disk", { full: true }, "only 5 bytes are free"],
  ["automation", { stalled: true }, "no look at what is due has ended well"],
])("so does %s that does not work", async (check, trouble, words) => {
  const { app, lines } = routesWith(async () => {}, trouble);
  const response = await app.request("/readyz");
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ checks: { database: "ok", [check]: "failing" } });
  expect(lines).toEqual([["warning", "not ready", { check, error: `Error: ${words}` }]]);
});
