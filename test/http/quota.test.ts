import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createQuota } from "../../src/http/quota.ts";
import { scriptedModel } from "../scripted-model.ts";
import { createHome, createService, json, START, type TestHome } from "./service.ts";

let home: TestHome;
beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());

test("no more than a minute's requests come through in any minute but the first burst", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 200 }),
      (requestsPerMinute, gaps) => {
        let now = 0;
        const quota = createQuota({ requestsPerMinute, runs: 0, now: () => now });
        let passed = 0;
        for (const gap of gaps) {
          now += gap;
          try {
            quota.request("ann");
            passed++;
          } catch (error) {
            const { retryAfter } = error as { retryAfter: number };
            expect(retryAfter).toBeGreaterThan(0);
            now += Math.ceil(retryAfter * 1000);
            quota.request("ann");
            passed++;
          }
          quota.request("bob".repeat(passed));
        }
        expect(passed).toBeLessThanOrEqual(requestsPerMinute + (now * requestsPerMinute) / 60_000 + 1e-6);
      },
    ),
  );
});

test("runs are counted until they are over, each once", () => {
  const quota = createQuota({ requestsPerMinute: 0, runs: 2, now: () => 0 });
  const leave = quota.run("ann");
  quota.run("ann");
  expect(() => quota.run("ann")).toThrow("MAX_RUNS");
  quota.run("bob");
  leave();
  leave();
  quota.run("ann");
  expect(() => quota.run("ann")).toThrow("MAX_RUNS");
});

test("over it: 429 with retry-after, on every door; others are not concerned", async () => {
  home.clock.now = START;
  const env = { RATE_LIMIT: "3", ACCESS_TOKENS: "ann:token-a,bob:token-b" };
  const service = await createService(home, { model: scriptedModel([{ text: "ok" }]), env });
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++)
    statuses.push((await service.request("/api/sessions", { token: "token-a" })).status);
  expect(statuses).toEqual([200, 200, 200, 429]);
  const over = await service.request("/v1/models", { headers: { "x-access-token": "token-a" } });
  expect(over.status).toBe(429);
  expect(over.headers.get("retry-after")).toBe("20");
  expect(await json(over)).toMatchObject({ error: { type: "rate_limit_error" } });
  expect((await service.request("/api/sessions", { token: "token-b" })).status).toBe(200);
  home.clock.now = new Date(START.getTime() + 20_000);
  expect((await service.request("/api/sessions", { token: "token-a" })).status).toBe(200);
  await service.close();
});

test("MAX_RUNS: a run under way is in the way of the next, until it has ended", async () => {
  const model = scriptedModel([{ text: "…", hang: true }, { text: "ok" }]);
  const service = await createService(home, { model, env: { MAX_RUNS: "1" } });
  const first = await service.post("/api/chat", { message: "a", stream: true });
  const body = { model: "m", messages: [{ role: "user", content: "b" }] };
  const statuses = async () => [
    (await service.post("/api/chat", { message: "b" })).status,
    (await service.post("/v1/chat/completions", body)).status,
  ];
  expect(await statuses()).toEqual([429, 429]);
  await service.post(`/api/runs/${first.headers.get("x-run-id")}/stop`, {});
  await first.text();
  expect(await statuses()).toEqual([200, 200]);
  await service.close();
});
