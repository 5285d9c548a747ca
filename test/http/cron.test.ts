/** `/api/cron`: what a job is, who sees it, and how it is changed. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DAY, later, MINUTE } from "../automation/records.ts";
import { type Cron, createCron, EVERY_MINUTE } from "./cron-service.ts";
import { json, START } from "./service.ts";

let cron: Cron;
beforeEach(async () => {
  cron = await createCron();
});
afterEach(() => cron.close());

describe("a job", () => {
  test("has every field, and the same again is the first", async () => {
    await cron.serve([], { env: { OPENAI_API_KEY: "sk-operator", ANTHROPIC_API_KEY: "sk-ant-operator" } });
    const { id: session } = await cron.service.store.sessions.open("local", "new");
    const fields = {
      ...{ prompt: "  do it\nnow ", schedule: "30 7 * * 1-5", timezone: "Europe/Berlin", session },
      ...{ provider: "claude", model: "m", api_key: "sk-ant-of-my-own", allowed_tools: ["write"] },
      ...{ misfire: "all", overlap: "queue", max_runs: 5, approval: "wait", repeat_after_crash: true },
      ...{ webhook_url: "https://example.com/hook", budget: { run_tokens: 9_000, day_money: 0.5 } },
    };
    const { job_id, job, webhook_secret } = await cron.create(fields);
    expect(job).toMatchObject({
      ...{ id: job_id, name: "do it", command: "  do it\nnow ", schedule: "30 7 * * 1-5", session },
      ...{ timezone: "Europe/Berlin", interval_minutes: null, provider: "claude", model: "m" },
      ...{ has_api_key: true, allowed_tools: ["write"], misfire: "all", overlap: "queue", max_runs: 5 },
      ...{ approval: "wait", repeat_after_crash: true, webhook_url: "https://example.com/hook" },
      ...{ budget: { run_tokens: 9_000, day_money: 0.5 }, status: "active", last_run: null },
      next_run_time: "2026-11-23T06:30:00.000Z",
    });
    expect(webhook_secret).toMatch(/^whsec_/);
    const again = await cron.service.post("/api/cron", fields);
    expect([again.status, await json(again)]).toEqual([200, { status: "exists", job_id, job }]);
    cron.home.clock.now = later(1, START);
    expect((await cron.create({ ...fields, max_runs: 6 })).job_id).not.toBe(job_id);
    expect(await cron.get("/api/cron")).toMatchObject({
      jobs: [{ max_runs: 6 }, { id: job_id }],
      next_cursor: null,
    });
    expect(await cron.get(`/api/cron/${job_id}`)).toEqual(job);
    const { upcoming, runs } = await cron.get(`/api/cron/${job_id}/runs`);
    expect([upcoming.length, upcoming[0], runs]).toEqual([5, "2026-11-23T06:30:00.000Z", []]);
    expect(JSON.stringify(await cron.get("/api/cron"))).not.toContain("sk-ant-of-my-own");
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
    await cron.serve();
    const response = await cron.service.post("/api/cron", { command: "x", ...fields });
    const body = await json(response);
    expect([response.status, body.code]).toEqual([400, "invalid_request"]);
    expect(body.errors?.[0]?.path ?? body.param).toBe(param);
    expect(body.detail).toContain(quoted);
    expect((await cron.get("/api/cron")).jobs).toEqual([]);
  });

  test("needs a command, a session and an agent that are there, and a key", async () => {
    await cron.serve([], { env: { OPENAI_API_KEY: "" } });
    const refused = async (fields: object) => {
      const response = await cron.service.post("/api/cron", { interval_minutes: 1, ...fields });
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
    await cron.serve([{ text: "done" }], { env });
    const { job_id } = await cron.create(EVERY_MINUTE, "token-of-ann");
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
        const response = await cron.service.request(`/api/cron/${id}${path}`, { method, token, json: body });
        const { request_id: _, ...problem } = await json(response);
        answers.push([response.status, problem]);
      }
      expect(answers[0]?.[0]).toBe(404);
      expect(answers[0]).toEqual(answers[1]);
    }
    expect((await json(await cron.service.request("/api/cron", { token }))).jobs).toEqual([]);
    const { job_id: theirs } = await json(
      await cron.service.request("/api/cron", { method: "POST", token, json: EVERY_MINUTE }),
    );
    expect(theirs).not.toBe(job_id);
  });

  test("is changed, paused, resumed and deleted", async () => {
    await cron.serve();
    const { job_id } = await cron.create();
    const changed = await json(
      await cron.patch(job_id, { cron_time: "08:15", timezone: "Asia/Tokyo", name: "n" }),
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
    expect((await json(await cron.patch(job_id, { timezone: "UTC" }))).job.next_run_time).toBe(
      "2026-11-21T08:15:00.000Z",
    );
    expect((await json(await cron.patch(job_id, { status: "paused" }))).job).toMatchObject({
      ...{ status: "paused", next_run_time: null },
    });
    await cron.tickAt(3 * DAY);
    expect(await cron.runsOf(job_id)).toEqual([]);
    expect((await json(await cron.patch(job_id, { status: "active" }))).job).toMatchObject({
      ...{ status: "active", next_run_time: "2026-11-24T08:15:00.000Z" },
    });
    expect((await cron.patch(job_id, { schedule: "x" })).status).toBe(400);
    const other = await cron.create();
    expect((await cron.patch(other.job_id, { cron_time: "08:15", name: "n" })).status).toBe(409);
    expect(await json(await cron.service.request(`/api/cron/${job_id}`, { method: "DELETE" }))).toMatchObject(
      {
        deleted: 1,
      },
    );
    expect((await cron.service.request(`/api/cron/${job_id}`)).status).toBe(404);
  });
});

describe("POST /api/automation/tick", () => {
  test("does what is due, and says when to come again", async () => {
    await cron.serve([{ text: "done" }], { env: { ACCESS_TOKENS: "ann:token-of-ann" } });
    const { job_id } = await cron.create(EVERY_MINUTE, "token-of-ann");
    cron.home.clock.now = later(MINUTE, START);
    const path = "/api/automation/tick";
    expect((await cron.service.request(path, { method: "POST" })).status).toBe(401);
    const response = await cron.service.request(path, { method: "POST", token: "token-of-ann" });
    expect([response.status, (await json(response)).status]).toEqual([200, "ticked"]);
    await cron.settled();
    const { runs } = await json(
      await cron.service.request(`/api/cron/${job_id}/runs`, { token: "token-of-ann" }),
    );
    expect(runs).toHaveLength(1);
  });

  test("is not for those who have a provider key and nothing else", async () => {
    await cron.serve([], { env: { AUTH: "key" } });
    const response = await cron.service.request("/api/automation/tick", {
      method: "POST",
      token: "sk-anybody",
    });
    expect([response.status, (await json(response)).code]).toEqual([403, "forbidden"]);
  });
});
