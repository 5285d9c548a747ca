/** Nothing that goes wrong with a job is silent: keys, budgets, failures in a row, webhooks, dead claimers. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { webhookHeaders } from "../../src/automation/webhook.ts";
import type { GuardedFetch } from "../../src/core/fetch.ts";
import { AppError } from "../../src/errors.ts";
import { DAY, HOUR, later, MINUTE, newOccurrence } from "../automation/records.ts";
import { type Cron, createCron, EVERY_MINUTE } from "./cron-service.ts";
import { json, START } from "./service.ts";

let cron: Cron;
beforeEach(async () => {
  cron = await createCron();
});
afterEach(() => cron.close());

describe("nothing is silent", () => {
  test("a key that has gone", async () => {
    await cron.serve();
    const { job_id } = await cron.create();
    await cron.serve([{ text: "x" }], { env: { OPENAI_API_KEY: "" } });
    await cron.tickAt(MINUTE);
    await cron.ended(job_id, 1);
    expect((await cron.runsOf(job_id))[0]).toMatchObject({
      fate: "blocked",
      run_id: expect.any(String),
      session_id: null,
    });
    expect((await cron.runsOf(job_id))[0].reason).toContain("No provider key");
    expect(await cron.get(`/api/cron/${job_id}`)).toMatchObject({ last_fate: "blocked", failures: 1 });
    expect((await cron.patch(job_id, { api_key: "sk-another" })).status).toBe(200);
    await cron.tickAt(2 * MINUTE);
    await cron.ended(job_id, 2);
    expect(await cron.fatesOf(job_id)).toEqual(["ran", "blocked"]);
    expect(cron.service.keys.at(-1)).toBe("sk-another");
  });

  test("a budget that is spent: of the day until the next, of the job until it is raised", async () => {
    const usage = { input: 900, output: 100 };
    await cron.serve([{ text: "x", usage }], {
      env: { MODEL_PRICES: "scripted=10/100", AUTOMATION_DAY_TOKENS: "1000" },
    });
    const { job_id } = await cron.create({ command: "x", schedule: "0 */12 * * *" });
    cron.home.clock.now = START;
    await cron.tickAt(2 * HOUR);
    await cron.ended(job_id, 1);
    expect((await cron.runsOf(job_id))[0].usage).toEqual({ tokens: 1_000, money: 0.019 });
    const second = await cron.create({ command: "y", interval_minutes: 10 });
    await cron.tickAt(2 * HOUR + 10 * MINUTE);
    await cron.ended(second.job_id, 1);
    expect((await cron.runsOf(second.job_id))[0]).toMatchObject({
      fate: "blocked",
      reason: expect.stringContaining("for a day is spent"),
    });
    expect((await cron.get(`/api/cron/${second.job_id}`)).status).toBe("active");
    await cron.tickAt(14 * HOUR);
    await cron.ended(job_id, 2);
    expect((await cron.fatesOf(job_id))[0]).toBe("ran");
    await cron.tickAt(38 * HOUR);
    await cron.patch(second.job_id, { status: "paused" });
    await cron.ended(job_id, 3);
    expect((await cron.patch(job_id, { budget: { job_tokens: 2_000 } })).status).toBe(200);
    await cron.tickAt(62 * HOUR);
    await cron.until(async () => (await cron.get(`/api/cron/${job_id}`)).status === "paused");
    const job = await cron.get(`/api/cron/${job_id}`);
    expect(job.reason).toContain("The job's budget of 2000 tokens is spent");
    expect(job.last_fate).toBe("blocked");
  });

  test("a run ends at its own budget", async () => {
    const usage = { input: 60, output: 0 };
    const calls = [{ id: "1", name: "look", args: { n: 1 } }];
    const model = await cron.serve([
      { calls, usage },
      { calls: [{ id: "2", name: "look", args: { n: 2 } }], usage },
    ]);
    const { job_id } = await cron.create({ ...EVERY_MINUTE, budget: { run_tokens: 100 } });
    await cron.tickAt(MINUTE);
    await cron.ended(job_id, 1);
    expect(model.requests).toHaveLength(2);
    expect((await cron.runsOf(job_id))[0]).toMatchObject({
      fate: "ran",
      usage: { tokens: 120 },
      reason: expect.stringContaining("100"),
    });
  });

  test("ten failures in a row pause it, with the reason, and it can be resumed", async () => {
    const fault = { code: "upstream_error" as const, message: "The model is out.", status: 500 };
    const model = await cron.serve([{ fault }]);
    const { job_id } = await cron.create();
    for (let n = 1; n <= 11; n++) {
      await cron.tickAt(n * MINUTE);
      await cron.ended(job_id, Math.min(n, 10));
    }
    expect(model.requests).toHaveLength(10);
    expect(await cron.get(`/api/cron/${job_id}`)).toMatchObject({
      ...{ status: "paused", failures: 10, next_run_time: null, last_fate: "failed" },
      reason: "Paused after 10 failures in a row. The last: The model is out.",
    });
    expect((await json(await cron.patch(job_id, { status: "active" }))).job).toMatchObject({
      ...{
        status: "active",
        failures: 0,
        reason: null,
        next_run_time: later(12 * MINUTE, START).toISOString(),
      },
    });
  });

  test("a webhook that is down: tried again, on record, and signed each time", async () => {
    const posts: { url: string; headers: Headers; body: string }[] = [];
    let answer: () => Response = () => {
      throw new AppError("unreachable", "Nobody listens at example.com.");
    };
    const fetch: GuardedFetch = async (url, init) => {
      posts.push({ url: String(url), headers: new Headers(init?.headers), body: String(init?.body) });
      return answer();
    };
    await cron.serve([{ text: "the news" }], { fetch });
    const { job_id, webhook_secret } = await cron.create({
      ...{ command: "x", interval_minutes: 60, webhook_url: "https://example.com/hook" },
    });
    await cron.tickAt(HOUR);
    await cron.until(async () => (await cron.runsOf(job_id))[0]?.delivery?.last_error);
    expect((await cron.runsOf(job_id))[0].delivery).toMatchObject({
      ...{ status: "pending", last_error: "Nobody listens at example.com.", last_status: null },
      next_at: later(HOUR + 5_000, START).toISOString(),
    });
    answer = () => new Response("no", { status: 503 });
    await cron.tickAt(HOUR + 5_000);
    await cron.until(async () => (await cron.runsOf(job_id))[0]?.delivery?.last_status === 503);
    answer = () => new Response(null, { status: 204 });
    await cron.tickAt(HOUR + 70_000);
    await cron.until(async () => (await cron.runsOf(job_id))[0]?.delivery?.status === "delivered");
    expect(posts.map(({ url }) => url)).toEqual(Array(3).fill("https://example.com/hook"));
    expect(new Set(posts.map(({ headers }) => headers.get("webhook-id"))).size).toBe(1);
    for (const { headers, body } of posts) {
      const at = new Date(Number(headers.get("webhook-timestamp")) * 1000);
      const id = headers.get("webhook-id") ?? "";
      expect(headers.get("webhook-signature")).toBe(
        (await webhookHeaders(webhook_secret, { id, at, body }))["webhook-signature"],
      );
      expect(JSON.parse(body)).toMatchObject({
        type: "job.ran",
        data: { job_id, fate: "ran", reply: "the news" },
      });
    }
    answer = () => {
      throw new AppError("forbidden", "The address is private.");
    };
    await cron.tickAt(2 * HOUR);
    await cron.until(async () => (await cron.runsOf(job_id))[0]?.delivery?.status === "failed");
    expect((await cron.runsOf(job_id))[0]).toMatchObject({
      fate: "ran",
      delivery: { attempts: 1, last_error: "The address is private." },
    });
  });

  test("R3: a claimer that died before its run began: reported, or begun again where the job says so", async () => {
    const model = await cron.serve();
    const plain = await cron.create();
    const repeated = await cron.create({ ...EVERY_MINUTE, repeat_after_crash: true });
    cron.home.clock.now = later(MINUTE, START);
    const { automation } = cron.service.store;
    const until_ = later(2 * MINUTE, START);
    const claimed = await automation.jobs.claim({
      kind: "cron",
      claim: "dead",
      now: cron.home.clock.now,
      until: until_,
      limit: 9,
    });
    expect(claimed).toHaveLength(2);
    for (const { id } of claimed) {
      const record = newOccurrence({ scheduledAt: cron.home.clock.now, runId: `run_of_${id}` });
      await automation.jobs.settle(
        id,
        "dead",
        { records: [record], nextAt: later(DAY, START), done: null },
        { holder: "dead", at: until_ },
      );
    }
    await cron.tickAt(MINUTE + 1_000);
    expect(model.requests).toHaveLength(0);
    await cron.tickAt(2 * MINUTE);
    await cron.ended(plain.job_id, 1);
    await cron.ended(repeated.job_id, 1);
    expect((await cron.runsOf(plain.job_id))[0]).toMatchObject({
      fate: "failed",
      reason: expect.stringContaining("The service stopped"),
    });
    expect((await cron.runsOf(repeated.job_id))[0]).toMatchObject({
      fate: "ran",
      run_id: `run_of_${repeated.job_id}`,
    });
    expect(model.requests).toHaveLength(1);
  });

  test("R3: a claimer that died in the middle of its run: another goes on, and it is recorded once", async () => {
    await cron.serve([{ hang: true, text: "half" }]);
    const { job_id } = await cron.create();
    cron.home.clock.now = later(MINUTE, START);
    await cron.service.services.tick();
    await cron.until(
      async () =>
        (await cron.runsOf(job_id))[0]?.session_id !== null && cron.service.services.runs.active === 1,
    );
    cron.service.kill();
    await cron.serve([{ text: "whole" }]);
    await cron.tickAt(3 * MINUTE);
    await cron.tickAt(5 * MINUTE);
    await cron.until(async () => (await cron.runsOf(job_id)).at(-1).ended_at !== null);
    const first = (await cron.runsOf(job_id)).at(-1);
    expect(first.fate).toBe("ran");
    const { messages } = await cron.get(`/api/sessions/${first.session_id}/messages`);
    expect(messages.at(-1).content).toContain("whole");
  });
});
