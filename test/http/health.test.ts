import { expect, test } from "vitest";
import { healthRoutes } from "../../src/http/health.ts";
import type { Services } from "../../src/services.ts";

function routesWith(ping: () => Promise<void>) {
  const lines: unknown[] = [];
  const log = (...line: unknown[]) => lines.push(line);
  return { app: healthRoutes({ store: { ping }, platform: { log } } as unknown as Services), lines };
}

test("a database that answers makes the service ready", async () => {
  const { app, lines } = routesWith(async () => {});
  const response = await app.request("/readyz");
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ status: "ok", checks: { database: "ok" } });
  expect(lines).toEqual([]);
});

test("one that does not makes it unready, alive still, and only the log says why", async () => {
  const { app, lines } = routesWith(() => Promise.reject(new Error("ECONNREFUSED db.internal:8080")));
  const response = await app.request("/readyz");
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toBe("1");
  expect(await response.json()).toEqual({ status: "unavailable", checks: { database: "failing" } });
  expect(lines).toEqual([
    ["warning", "not ready", { check: "database", error: "Error: ECONNREFUSED db.internal:8080" }],
  ]);
  expect((await app.request("/healthz")).status).toBe(200);
});
