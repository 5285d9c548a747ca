/** Any words for any fields of a watchdog. */
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { type Cron, createCron } from "./cron-service.ts";
import { json } from "./service.ts";

let cron: Cron;
beforeEach(async () => {
  cron = await createCron();
});
afterEach(() => cron.close());

test("R9: whatever is said of one, it is made or refused with the field at fault, and can be shown, tried and changed", async () => {
  await cron.serve([{ text: "done" }], { fetch: createLocalFetch() });
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 30 }),
    fc.constantFrom(
      ...["", " ", ".", "..", "/", "in", "a/../..", "in\0", "\ud800", "http://127.0.0.1:1/", "*", "["],
      ...["{a,", "$.a[0]", "(", "__proto__", "date", "x".repeat(600)],
    ),
  );
  const odd = fc.oneof(fc.constantFrom(null, -1, 0, 4, 5, 5.5, 604_800, 604_801, 1e308, true, [], {}), text);
  const some = <T>(value: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 12, arbitrary: value as fc.Arbitrary<unknown> }, { weight: 1, arbitrary: odd });
  const expectation = fc.record(
    {
      status: some(fc.integer({ min: 100, max: 599 })),
      exit_code: some(fc.nat(255)),
      body: some(text),
      regex: some(text),
      json_path: some(text),
      equals: fc.jsonValue(),
      on: some(fc.constantFrom("change", "met", "unmet")),
    },
    { requiredKeys: [] },
  );
  const seconds = some(fc.integer({ min: 5, max: 600 }));
  const all = {
    action: some(text),
    directory: text,
    url: text,
    command: text,
    pattern: some(text),
    expect: some(expectation),
    interval_seconds: seconds,
    debounce_seconds: seconds,
    cooldown_seconds: seconds,
    name: some(text),
    session: some(fc.constant("new")),
    agent_name: some(fc.constant("dragoman")),
    allowed_tools: some(fc.array(fc.constantFrom("run_terminal_command", "*", "look", "\0"))),
    approval: some(fc.constantFrom("deny", "wait")),
    overlap: some(fc.constantFrom("skip", "queue")),
    max_runs: some(fc.integer({ min: 1 })),
    webhook_url: some(fc.constant("https://example.com/")),
    budget: some(fc.record({ run_tokens: odd }, { requiredKeys: [] })),
    status: some(fc.constantFrom("active", "paused")),
  };
  const names = Object.keys(all) as (keyof typeof all)[];
  const fields = fc
    .subarray(names, { maxLength: 4 })
    .chain((chosen) => fc.record(Object.fromEntries(chosen.map((name) => [name, all[name]]))));
  const target = fc.constantFrom(...[{ directory: "in" }, { url: "http://127.0.0.1:1/" }, {}], {
    command: "date",
    allowed_tools: ["run_terminal_command"],
  });
  const one = fc.tuple(target, fields).map(([watched, rest]) => ({ action: "x", ...rest, ...watched }));
  await fc.assert(
    fc.asyncProperty(one, fields, async (wire, change) => {
      const response = await cron.service.post("/api/watchdog", wire);
      const body = await json(response);
      if (response.status !== 201) {
        expect([400, 404, 200]).toContain(response.status);
        if (response.status !== 200) expect(body.detail.length).toBeGreaterThan(20);
        return;
      }
      const path = `/api/watchdog/${body.watchdog_id}`;
      expect(await cron.get(path)).toEqual(body.watchdog);
      expect((await cron.service.post(`${path}/test`, {})).status).toBe(200);
      const patched = await cron.service.request(path, { method: "PATCH", json: change });
      expect([200, 400, 404, 409]).toContain(patched.status);
      const after = await cron.get(path);
      if (patched.status === 200) expect((await json(patched)).watchdog).toEqual(after);
      else expect(after).toEqual(body.watchdog);
      expect([after.directory, after.url, after.command].filter((each) => each !== null)).toHaveLength(1);
      expect((await cron.service.request(path, { method: "DELETE" })).status).toBe(200);
    }),
    { numRuns: 60 },
  );
  expect(cron.service.logged.filter(([level]) => level === "error")).toEqual([]);
});
