/** `/api/cron`: jobs from their creation to what became of each of their times. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BEGIN_AGAIN_MS } from "../../src/automation/tick.ts";
import { webhookHeaders } from "../../src/automation/webhook.ts";
import type { GuardedFetch } from "../../src/core/fetch.ts";
import { AppError } from "../../src/errors.ts";
import { DAY, HOUR, later, MINUTE, newOccurrence } from "../automation/records.ts";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";
import {
  createHome,
  createService,
  json,
  START,
  type TestHome,
  type TestOptions,
  type TestService,
} from "./service.ts";

let home: TestHome;
let service: TestService;
const opened: TestService[] = [];
beforeEach(async () => {
  home = await createHome();
});
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
  await home.close();
});

async function serve(replies: ScriptedReply[] = [{ text: "done" }], options: Partial<TestOptions> = {}) {
  const model = scriptedModel(replies);
  service = await createService(home, { model, ...options });
  opened.push(service);
  return model;
}

const EVERY_MINUTE = { command: "look around", interval_minutes: 1 };

async function create(fields: object = EVERY_MINUTE, token?: string) {
  const response = await service.request("/api/cron", {
    method: "POST",
    json: fields,
    ...(token ? { token } : {}),
  });
  const body = await json(response);
  expect([response.status, body]).toMatchObject([201, { status: "created" }]);
  return body;
}

const get = async (path: string) => json(await service.request(path));
const runsOf = async (id: string) => (await get(`/api/cron/${id}/runs`)).runs;
const patch = (id: string, body: object) =>
  service.request(`/api/cron/${id}`, { method: "PATCH", json: body });

/** Time passes, somebody ticks, and what comes of it is awaited. */
async function tickAt(ms: number): Promise<void> {
  home.clock.now = later(ms, START);
  await service.services.tick();
  await settled();
}

/** Nothing is under way but what waits for a person or its time. */
async function settled(): Promise<void> {
  for (let quiet = 0; quiet < 20; ) {
    await new Promise((resolve) => setImmediate(resolve));
    quiet = service.services.runs.active === 0 ? quiet + 1 : 0;
  }
}

async function until(isSo: () => Promise<unknown>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve));
}

const fatesOf = async (id: string) => (await runsOf(id)).map((run: { fate: string }) => run.fate);
const ended = (id: string, count: number) =>
  until(
    async () => (await runsOf(id)).filter((run: { ended_at: string | null }) => run.ended_at).length >= count,
  );

describe("a job", () => {
  test("has every field, and the same again is the first", async () => {
    await serve([], { env: { OPENAI_API_KEY: "sk-operator", ANTHROPIC_API_KEY: "sk-ant-operator" } });
    const { id: session } = await service.store.sessions.open("local", "new");
    const fields = {
      ...{ prompt: "  do it\nnow ", schedule: "30 7 * * 1-5", timezone: "Europe/Berlin", session },
      ...{ provider: "claude", model: "m", api_key: "sk-ant-of-my-own", allowed_tools: ["write"] },
      ...{ misfire: "all", overlap: "queue", max_runs: 5, approval: "wait", repeat_after_crash: true },
      ...{ webhook_url: "https://example.com/hook", budget: { run_tokens: 9_000, day_money: 0.5 } },
    };
    const { job_id, job, webhook_secret } = await create(fields);
    expect(job).toMatchObject({
      ...{ id: job_id, name: "do it", command: "  do it\nnow ", schedule: "30 7 * * 1-5", session },
      ...{ timezone: "Europe/Berlin", interval_minutes: null, provider: "claude", model: "m" },
      ...{ has_api_key: true, allowed_tools: ["write"], misfire: "all", overlap: "queue", max_runs: 5 },
      ...{ approval: "wait", repeat_after_crash: true, webhook_url: "https://example.com/hook" },
      ...{ budget: { run_tokens: 9_000, day_money: 0.5 }, status: "active", last_run: null },
      next_run_time: "2026-11-23T06:30:00.000Z",
    });
    expect(webhook_secret).toMatch(/^whsec_/);
    const again = await service.post("/api/cron", fields);
    expect([again.status, await json(again)]).toEqual([200, { status: "exists", job_id, job }]);
    home.clock.now = later(1, START);
    expect((await create({ ...fields, max_runs: 6 })).job_id).not.toBe(job_id);
    expect(await get("/api/cron")).toMatchObject({
      jobs: [{ max_runs: 6 }, { id: job_id }],
      next_cursor: null,
    });
    expect(await get(`/api/cron/${job_id}`)).toEqual(job);
    const { upcoming, runs } = await get(`/api/cron/${job_id}/runs`);
    expect([upcoming.length, upcoming[0], runs]).toEqual([5, "2026-11-23T06:30:00.000Z", []]);
    expect(JSON.stringify(await get("/api/cron"))).not.toContain("sk-ant-of-my-own");
  });

  test.each([
    [{ schedule: "61 * * * *" }, "schedule", "61 * * * *"],
    [{ schedule: "0 0 30 2 *" }, "schedule", "0 0 30 2 *"],
    [{ schedule: "* * * * *", timezone: "Mars/Olympus" }, "timezone", "Mars/Olympus"],
    [{ cron_time: "25:00" }, "cron_time", "25:00"],
    [{ run_at: "2020-01-01T00:00:00Z" }, "run_at", "2020-01-01"],
    [{ interval_minutes: 0 }, "interval_minutes", "interval_minutes"],
    [{ interval_minutes: 1, cron_time: "07:00" }, "interval_minutes", "exactly one of"],
    [{}, "schedule", "exactly one of"],
    [{ interval_minutes: 1, budget: { run_tokens: 9e9 } }, "budget.run_tokens", "AUTOMATION_RUN_TOKENS"],
    [{ interval_minutes: 1, session: "mine" }, "session", "id of a session"],
    [{ interval_minutes: 1, webhook_url: "ftp://a" }, "webhook_url", "http"],
    [{ interval_minutes: 1, webhook_url: "https://a", webhook_secret: "x" }, "webhook_secret", "whsec_"],
  ])("%j is a 400 that names %s", async (fields, param, quoted) => {
    await serve();
    const response = await service.post("/api/cron", { command: "x", ...fields });
    const body = await json(response);
    expect([response.status, body.code]).toEqual([400, "invalid_request"]);
    expect(body.errors?.[0]?.path ?? body.param).toBe(param);
    expect(body.detail).toContain(quoted);
    expect((await get("/api/cron")).jobs).toEqual([]);
  });

  test("needs a command, a session and an agent that are there, and a key", async () => {
    await serve([], { env: { OPENAI_API_KEY: "" } });
    const refused = async (fields: object) => {
      const response = await service.post("/api/cron", { interval_minutes: 1, ...fields });
      return [response.status, (await json(response)).code];
    };
    expect(await refused({ api_key: "sk-x" })).toEqual([400, "invalid_request"]);
    expect(await refused({ command: "x" })).toEqual([401, "missing_key"]);
    expect(await refused({ command: "x", api_key: "sk-x", session: "ses_gone" })).toEqual([404, "not_found"]);
    expect(await refused({ command: "x", api_key: "sk-x", agent_name: "nobody" })).toEqual([
      404,
      "not_found",
    ]);
  });

  test("A5: is its owner's alone", async () => {
    const env = { ACCESS_TOKENS: "ann:token-of-ann,bob:token-of-bob" };
    await serve([{ text: "done" }], { env });
    const { job_id } = await create(EVERY_MINUTE, "token-of-ann");
    const token = "token-of-bob";
    for (const [method, path, body] of [
      ["GET", "", undefined],
      ["PATCH", "", { name: "x" }],
      ["DELETE", "", undefined],
      ["POST", "/run", {}],
      ["GET", "/runs", undefined],
    ] as const) {
      const answers = [];
      for (const id of [job_id, "job_gone"]) {
        const response = await service.request(`/api/cron/${id}${path}`, { method, token, json: body });
        const { request_id: _, ...problem } = await json(response);
        answers.push([response.status, problem]);
      }
      expect(answers[0]?.[0]).toBe(404);
      expect(answers[0]).toEqual(answers[1]);
    }
    expect((await json(await service.request("/api/cron", { token }))).jobs).toEqual([]);
    const { job_id: theirs } = await json(
      await service.request("/api/cron", { method: "POST", token, json: EVERY_MINUTE }),
    );
    expect(theirs).not.toBe(job_id);
  });

  test("is changed, paused, resumed and deleted", async () => {
    await serve();
    const { job_id } = await create();
    const changed = await json(
      await patch(job_id, { cron_time: "08:15", timezone: "Asia/Tokyo", name: "n" }),
    );
    expect(changed).toMatchObject({
      ...{ status: "updated", job_id },
      job: {
        name: "n",
        schedule: "15 8 * * *",
        interval_minutes: null,
        next_run_time: "2026-11-20T23:15:00.000Z",
      },
    });
    expect((await json(await patch(job_id, { timezone: "UTC" }))).job.next_run_time).toBe(
      "2026-11-21T08:15:00.000Z",
    );
    expect((await json(await patch(job_id, { status: "paused" }))).job).toMatchObject({
      ...{ status: "paused", next_run_time: null },
    });
    await tickAt(3 * DAY);
    expect(await runsOf(job_id)).toEqual([]);
    expect((await json(await patch(job_id, { status: "active" }))).job).toMatchObject({
      ...{ status: "active", next_run_time: "2026-11-24T08:15:00.000Z" },
    });
    expect((await patch(job_id, { schedule: "x" })).status).toBe(400);
    const other = await create();
    expect((await patch(other.job_id, { cron_time: "08:15", name: "n" })).status).toBe(409);
    expect(await json(await service.request(`/api/cron/${job_id}`, { method: "DELETE" }))).toMatchObject({
      deleted: 1,
    });
    expect((await service.request(`/api/cron/${job_id}`)).status).toBe(404);
  });
});

describe("a job that is due", () => {
  test("runs as an ordinary run in a session of its own, and every time has its record", async () => {
    const model = await serve([{ text: "all is well", usage: { input: 100, output: 20 } }]);
    const { job_id } = await create();
    await tickAt(MINUTE - 1);
    expect(model.requests).toHaveLength(0);
    await tickAt(MINUTE);
    await ended(job_id, 1);
    const { runs, upcoming } = await get(`/api/cron/${job_id}/runs`);
    expect(runs).toMatchObject([
      {
        fate: "ran",
        trigger: "schedule",
        scheduled_at: later(MINUTE, START).toISOString(),
        reason: null,
        usage: { tokens: 120 },
      },
    ]);
    expect(upcoming).toEqual(
      Array.from({ length: 10 }, (_, n) => later((n + 2) * MINUTE, START).toISOString()),
    );
    const { messages } = await get(`/api/sessions/${runs[0].session_id}/messages`);
    expect(messages.map(({ role, content }: { role: string; content: string }) => [role, content])).toEqual([
      ["user", "look around"],
      ["assistant", "all is well"],
    ]);
    expect((await get(`/api/runs/${runs[0].run_id}`)).status).toBe("completed");
    expect(model.requests[0]?.system.at(-1)?.text).toContain(
      'You run by yourself, as the scheduled job "look around"',
    );
    expect(await get(`/api/cron/${job_id}`)).toMatchObject({
      ...{
        last_fate: "ran",
        last_run: later(MINUTE, START).toISOString(),
        runs_made: 1,
        usage: { tokens: 120 },
      },
    });
    await tickAt(2 * MINUTE);
    await ended(job_id, 2);
    const sessions = (await runsOf(job_id)).map((run: { session_id: string }) => run.session_id);
    expect(new Set(sessions).size).toBe(2);
  });

  test("in a session of one's own it goes on with what is there", async () => {
    const model = await serve([{ text: "hello" }, { text: "again" }]);
    const { session_id } = await json(await service.post("/api/chat", { message: "hi" }));
    const { job_id } = await create({ ...EVERY_MINUTE, session: session_id });
    await tickAt(MINUTE);
    await ended(job_id, 1);
    expect(model.requests[1]?.messages).toHaveLength(3);
    expect((await runsOf(job_id))[0].session_id).toBe(session_id);
  });

  test("R4: an hour's jump, a day's jump and two days asleep leave no time without a fate", async () => {
    const model = await serve();
    const { job_id } = await create({ command: "x", schedule: "0 * * * *" });
    await tickAt(HOUR + 45 * MINUTE);
    await ended(job_id, 1);
    expect(await fatesOf(job_id)).toEqual(["late"]);
    await tickAt(DAY);
    await ended(job_id, 3);
    // Exactly on time again, and 22 others are one record.
    expect(await fatesOf(job_id)).toEqual(["ran", "missed", "late"]);
    expect((await runsOf(job_id))[1]).toMatchObject({ count: 22, scheduled_at: "2026-11-20T12:00:00.000Z" });
    await tickAt(3 * DAY + 90 * MINUTE);
    await ended(job_id, 5);
    expect(await fatesOf(job_id)).toEqual(["late", "missed", "ran", "missed", "late"]);
    expect(model.requests).toHaveLength(3);
    // The clock goes back: nothing is due, and nothing is done twice.
    await tickAt(3 * DAY);
    expect(model.requests).toHaveLength(3);
    expect((await get(`/api/cron/${job_id}/runs`)).upcoming[0]).toBe("2026-11-23T12:00:00.000Z");
  });

  test("P1: what would ask is denied and reported; what the job names runs unasked; policy's denial stands", async () => {
    const call = (id: string, name: string) => ({ id, name, args: {} });
    const calls = [call("1", "look"), call("2", "write")];
    const rules = { rules: [{ tool: "look", decision: "deny" }] };
    await serve([{ calls }, { text: "so" }, { calls: [call("3", "write")] }, { text: "did" }]);
    const denying = await create();
    await tickAt(MINUTE);
    await ended(denying.job_id, 1);
    expect((await runsOf(denying.job_id))[0]).toMatchObject({ fate: "ran", denied_tools: ["write"] });
    await patch(denying.job_id, { status: "paused" });
    const naming = await create({ ...EVERY_MINUTE, allowed_tools: ["write"] });
    await tickAt(2 * MINUTE);
    await ended(naming.job_id, 1);
    const [run] = await runsOf(naming.job_id);
    expect(run).toMatchObject({ fate: "ran", denied_tools: [] });
    const { messages } = await get(`/api/sessions/${run.session_id}/messages`);
    expect(JSON.stringify(messages)).toContain("write has done it");
    const model = await serve([{ calls }, { text: "so" }], { env: { APPROVAL: JSON.stringify(rules) } });
    await patch(naming.job_id, { status: "paused" });
    const denied = await create({ ...EVERY_MINUTE, command: "z", allowed_tools: ["look", "write"] });
    await tickAt(3 * MINUTE);
    await ended(denied.job_id, 1);
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["write"]);
  });

  test("waits for approval where the job says so, and its times go on", async () => {
    await serve([{ calls: [{ id: "1", name: "write", args: {} }] }, { text: "written" }]);
    const { job_id } = await create({ ...EVERY_MINUTE, approval: "wait" });
    await tickAt(MINUTE);
    const [run] = await runsOf(job_id);
    expect([run.fate, (await get(`/api/runs/${run.run_id}`)).status]).toEqual(["claimed", "paused"]);
    await tickAt(2 * MINUTE);
    expect(await fatesOf(job_id)).toEqual(["skipped", "claimed"]);
    await service.post("/api/chat/approve", { session_id: run.session_id, approved: true });
    await settled();
    await tickAt(2 * MINUTE + 50_000);
    await ended(job_id, 2);
    expect(await fatesOf(job_id)).toEqual(["skipped", "ran"]);
  });

  test("does not push aside a call that a person has yet to decide on", async () => {
    await serve([{ calls: [{ id: "1", name: "write", args: {} }] }, { text: "x" }]);
    const { session_id, run_id } = await json(await service.post("/api/chat", { message: "hi" }));
    const { job_id } = await create({ ...EVERY_MINUTE, session: session_id, max_runs: 1 });
    await tickAt(MINUTE);
    expect((await get(`/api/runs/${run_id}`)).status).toBe("paused");
    expect((await runsOf(job_id))[0]).toMatchObject({
      fate: "queued",
      attempts: 1,
      reason: expect.stringContaining(run_id),
    });
    await service.post("/api/chat/approve", { session_id, approved: false });
    await settled();
    await tickAt(MINUTE + (BEGIN_AGAIN_MS[0] ?? 0));
    await ended(job_id, 1);
    expect(await fatesOf(job_id)).toEqual(["ran"]);
  });

  test("one at a time: skipped or in the queue, by hand too; max_runs ends it", async () => {
    await serve([{ hang: true, text: "…" }, { text: "done" }]);
    const { job_id } = await create({ ...EVERY_MINUTE, overlap: "queue", max_runs: 3 });
    const byHand = await service.post(`/api/cron/${job_id}/run`, {});
    const { status, run } = await json(byHand);
    expect([byHand.status, status, run.trigger]).toEqual([202, "started", "manual"]);
    expect(byHand.headers.get("x-run-id")).toBe(run.run_id);
    home.clock.now = later(MINUTE, START);
    await service.services.tick();
    expect(await fatesOf(job_id)).toEqual(["queued", "claimed"]);
    await service.post(`/api/runs/${run.run_id}/stop`, {});
    await ended(job_id, 2);
    expect(await fatesOf(job_id)).toEqual(["ran", "failed"]);
    expect((await runsOf(job_id))[1].reason).toContain("cancelled");
    const skipping = await create({ command: "y", interval_minutes: 60 });
    await serve([{ hang: true, text: "…" }]);
    const hanging = await json(await service.post(`/api/cron/${skipping.job_id}/run`, {}));
    const second = await service.post(`/api/cron/${skipping.job_id}/run`, {});
    expect([second.status, (await json(second)).code]).toEqual([409, "conflict"]);
    await service.post(`/api/runs/${hanging.run.run_id}/stop`, {});
    await patch(job_id, { max_runs: 1 });
    await tickAt(2 * MINUTE);
    expect(await get(`/api/cron/${job_id}`)).toMatchObject({
      ...{ status: "done", next_run_time: null, reason: expect.stringContaining("max_runs: 1") },
    });
  });
});

describe("nothing is silent", () => {
  test("a key that has gone", async () => {
    await serve();
    const { job_id } = await create();
    await serve([{ text: "x" }], { env: { OPENAI_API_KEY: "" } });
    await tickAt(MINUTE);
    await ended(job_id, 1);
    expect((await runsOf(job_id))[0]).toMatchObject({
      fate: "blocked",
      run_id: expect.any(String),
      session_id: null,
    });
    expect((await runsOf(job_id))[0].reason).toContain("No provider key");
    expect(await get(`/api/cron/${job_id}`)).toMatchObject({ last_fate: "blocked", failures: 1 });
    expect((await patch(job_id, { api_key: "sk-another" })).status).toBe(200);
    await tickAt(2 * MINUTE);
    await ended(job_id, 2);
    expect(await fatesOf(job_id)).toEqual(["ran", "blocked"]);
    expect(service.keys.at(-1)).toBe("sk-another");
  });

  test("a budget that is spent: of the day until the next, of the job until it is raised", async () => {
    const usage = { input: 900, output: 100 };
    await serve([{ text: "x", usage }], {
      env: { MODEL_PRICES: "scripted=10/100", AUTOMATION_DAY_TOKENS: "1000" },
    });
    const { job_id } = await create({ command: "x", schedule: "0 */12 * * *" });
    home.clock.now = START;
    await tickAt(2 * HOUR);
    await ended(job_id, 1);
    expect((await runsOf(job_id))[0].usage).toEqual({ tokens: 1_000, money: 0.019 });
    const second = await create({ command: "y", interval_minutes: 10 });
    await tickAt(2 * HOUR + 10 * MINUTE);
    await ended(second.job_id, 1);
    expect((await runsOf(second.job_id))[0]).toMatchObject({
      fate: "blocked",
      reason: expect.stringContaining("for a day is spent"),
    });
    expect((await get(`/api/cron/${second.job_id}`)).status).toBe("active");
    await tickAt(14 * HOUR);
    await ended(job_id, 2);
    expect((await fatesOf(job_id))[0]).toBe("ran");
    await tickAt(38 * HOUR);
    await patch(second.job_id, { status: "paused" });
    await ended(job_id, 3);
    expect((await patch(job_id, { budget: { job_tokens: 2_000 } })).status).toBe(200);
    await tickAt(62 * HOUR);
    await until(async () => (await get(`/api/cron/${job_id}`)).status === "paused");
    const job = await get(`/api/cron/${job_id}`);
    expect(job.reason).toContain("The job's budget of 2000 tokens is spent");
    expect(job.last_fate).toBe("blocked");
  });

  test("a run ends at its own budget", async () => {
    const usage = { input: 60, output: 0 };
    const calls = [{ id: "1", name: "look", args: { n: 1 } }];
    const model = await serve([
      { calls, usage },
      { calls: [{ id: "2", name: "look", args: { n: 2 } }], usage },
    ]);
    const { job_id } = await create({ ...EVERY_MINUTE, budget: { run_tokens: 100 } });
    await tickAt(MINUTE);
    await ended(job_id, 1);
    expect(model.requests).toHaveLength(2);
    expect((await runsOf(job_id))[0]).toMatchObject({
      fate: "ran",
      usage: { tokens: 120 },
      reason: expect.stringContaining("100"),
    });
  });

  test("ten failures in a row pause it, with the reason, and it can be resumed", async () => {
    const fault = { code: "upstream_error" as const, message: "The model is out.", status: 500 };
    const model = await serve([{ fault }]);
    const { job_id } = await create();
    for (let n = 1; n <= 11; n++) {
      await tickAt(n * MINUTE);
      await ended(job_id, Math.min(n, 10));
    }
    expect(model.requests).toHaveLength(10);
    expect(await get(`/api/cron/${job_id}`)).toMatchObject({
      ...{ status: "paused", failures: 10, next_run_time: null, last_fate: "failed" },
      reason: "Paused after 10 failures in a row. The last: The model is out.",
    });
    expect((await json(await patch(job_id, { status: "active" }))).job).toMatchObject({
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
    await serve([{ text: "the news" }], { fetch });
    const { job_id, webhook_secret } = await create({
      ...{ command: "x", interval_minutes: 60, webhook_url: "https://example.com/hook" },
    });
    await tickAt(HOUR);
    await until(async () => (await runsOf(job_id))[0]?.delivery?.last_error);
    expect((await runsOf(job_id))[0].delivery).toMatchObject({
      ...{ status: "pending", last_error: "Nobody listens at example.com.", last_status: null },
      next_at: later(HOUR + 5_000, START).toISOString(),
    });
    answer = () => new Response("no", { status: 503 });
    await tickAt(HOUR + 5_000);
    await until(async () => (await runsOf(job_id))[0]?.delivery?.last_status === 503);
    answer = () => new Response(null, { status: 204 });
    await tickAt(HOUR + 70_000);
    await until(async () => (await runsOf(job_id))[0]?.delivery?.status === "delivered");
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
    await tickAt(2 * HOUR);
    await until(async () => (await runsOf(job_id))[0]?.delivery?.status === "failed");
    expect((await runsOf(job_id))[0]).toMatchObject({
      fate: "ran",
      delivery: { attempts: 1, last_error: "The address is private." },
    });
  });

  test("R3: a claimer that died before its run began: reported, or begun again where the job says so", async () => {
    const model = await serve();
    const plain = await create();
    const repeated = await create({ ...EVERY_MINUTE, repeat_after_crash: true });
    home.clock.now = later(MINUTE, START);
    const { automation } = service.store;
    const until_ = later(2 * MINUTE, START);
    const claimed = await automation.jobs.claim({
      kind: "cron",
      claim: "dead",
      now: home.clock.now,
      until: until_,
      limit: 9,
    });
    expect(claimed).toHaveLength(2);
    for (const { id } of claimed) {
      const record = newOccurrence({ scheduledAt: home.clock.now, runId: `run_of_${id}` });
      await automation.jobs.settle(
        id,
        "dead",
        { records: [record], nextAt: later(DAY, START), done: null },
        { holder: "dead", at: until_ },
      );
    }
    await tickAt(MINUTE + 1_000);
    expect(model.requests).toHaveLength(0);
    await tickAt(2 * MINUTE);
    await ended(plain.job_id, 1);
    await ended(repeated.job_id, 1);
    expect((await runsOf(plain.job_id))[0]).toMatchObject({
      fate: "failed",
      reason: expect.stringContaining("The service stopped"),
    });
    expect((await runsOf(repeated.job_id))[0]).toMatchObject({
      fate: "ran",
      run_id: `run_of_${repeated.job_id}`,
    });
    expect(model.requests).toHaveLength(1);
  });

  test("R3: a claimer that died in the middle of its run: another goes on, and it is recorded once", async () => {
    await serve([{ hang: true, text: "half" }]);
    const { job_id } = await create();
    home.clock.now = later(MINUTE, START);
    await service.services.tick();
    await until(
      async () => (await runsOf(job_id))[0]?.session_id !== null && service.services.runs.active === 1,
    );
    service.kill();
    await serve([{ text: "whole" }]);
    await tickAt(3 * MINUTE);
    await tickAt(5 * MINUTE);
    await until(async () => (await runsOf(job_id)).at(-1).ended_at !== null);
    const first = (await runsOf(job_id)).at(-1);
    expect(first.fate).toBe("ran");
    const { messages } = await get(`/api/sessions/${first.session_id}/messages`);
    expect(messages.at(-1).content).toContain("whole");
  });
});

describe("POST /api/automation/tick", () => {
  test("does what is due, and says when to come again", async () => {
    await serve([{ text: "done" }], { env: { ACCESS_TOKENS: "ann:token-of-ann" } });
    const { job_id } = await create(EVERY_MINUTE, "token-of-ann");
    home.clock.now = later(MINUTE, START);
    const path = "/api/automation/tick";
    expect((await service.request(path, { method: "POST" })).status).toBe(401);
    const response = await service.request(path, { method: "POST", token: "token-of-ann" });
    expect([response.status, (await json(response)).status]).toEqual([200, "ticked"]);
    await settled();
    const { runs } = await json(await service.request(`/api/cron/${job_id}/runs`, { token: "token-of-ann" }));
    expect(runs).toHaveLength(1);
  });

  test("is not for those who have a provider key and nothing else", async () => {
    await serve([], { env: { AUTH: "key" } });
    const response = await service.request("/api/automation/tick", { method: "POST", token: "sk-anybody" });
    expect([response.status, (await json(response)).code]).toEqual([403, "forbidden"]);
  });
});
