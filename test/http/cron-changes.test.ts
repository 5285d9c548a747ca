/** What is changed of a job, and what stays as it was: its time, its zone, its key, its webhook, and that it is known again. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { GuardedFetch } from "../../src/core/fetch.ts";
import { HOUR, later, MINUTE } from "../automation/records.ts";
import { type Cron, createCron, EVERY_MINUTE } from "./cron-service.ts";
import { json, START } from "./service.ts";

let cron: Cron;
beforeEach(async () => {
  cron = await createCron();
});
afterEach(() => cron.close());

const job = async (id: string) => cron.get(`/api/cron/${id}`);
const changed = async (id: string, body: object) => {
  const response = await cron.patch(id, body);
  const answer = await json(response);
  expect([response.status, answer]).toMatchObject([200, { status: "updated", job_id: id }]);
  return answer;
};

describe("the same again", () => {
  test("of a job that is done, renamed or not, is a new one", async () => {
    await cron.serve();
    const spec = { command: "x", schedule: "*/5 * * * *", max_runs: 1 };
    const first = await cron.create(spec);
    await cron.tickAt(5 * MINUTE);
    await cron.ended(first.job_id, 1);
    expect((await changed(first.job_id, { name: "x" })).job.status).toBe("done");
    expect((await cron.create(spec)).job_id).not.toBe(first.job_id);
  });

  test("made by many at once is one, and after its deletion another", async () => {
    await cron.serve();
    const made = await Promise.all(
      Array.from({ length: 8 }, async () => json(await cron.service.post("/api/cron", EVERY_MINUTE))),
    );
    expect(made.map(({ status }) => status).toSorted()).toEqual(["created", ...Array(7).fill("exists")]);
    const [id, ...others] = new Set(made.map(({ job_id }) => job_id));
    expect(others).toEqual([]);
    await cron.service.request(`/api/cron/${id}`, { method: "DELETE" });
    expect((await cron.create()).job_id).not.toBe(id);
  });

  test("of what a job was before it was changed is a new one; of what it is now, that one", async () => {
    await cron.serve();
    const { job_id } = await cron.create();
    await changed(job_id, { interval_minutes: 2 });
    expect((await cron.create()).job_id).not.toBe(job_id);
    const same = await json(await cron.service.post("/api/cron", { ...EVERY_MINUTE, interval_minutes: 2 }));
    expect(same).toMatchObject({ status: "exists", job_id });
  });
});

describe("a change", () => {
  test("of a time without an offset is meant in the job's zone, whatever kind of time it has", async () => {
    await cron.serve();
    const zoned = { command: "x", timezone: "Asia/Kolkata" };
    const once = await cron.create({ ...zoned, run_at: "2026-12-24T18:00" });
    expect(once.job).toMatchObject({ timezone: "Asia/Kolkata", run_at: "2026-12-24T12:30:00.000Z" });
    const later_ = await changed(once.job_id, { run_at: "2026-12-25T18:00" });
    expect(later_.job).toMatchObject({ timezone: "Asia/Kolkata", run_at: "2026-12-25T12:30:00.000Z" });
    const interval = await cron.create({ ...zoned, interval_minutes: 5 });
    expect(interval.job.timezone).toBe("Asia/Kolkata");
    const daily = await changed(interval.job_id, { cron_time: "09:00" });
    expect(daily.job).toMatchObject({ schedule: "0 9 * * *", next_run_time: "2026-11-21T03:30:00.000Z" });
  });

  test("of the kind of time takes the other's away, and counts from now", async () => {
    await cron.serve();
    const { job_id } = await cron.create({ command: "x", cron_time: "09:00" });
    cron.home.clock.now = later(30_000, START);
    expect((await changed(job_id, { interval_minutes: 10 })).job).toMatchObject({
      ...{ schedule: null, interval_minutes: 10, run_at: null },
      next_run_time: later(10 * MINUTE + 30_000, START).toISOString(),
    });
    const both = await cron.patch(job_id, { interval_minutes: 10, cron_time: "09:00" });
    expect([both.status, (await json(both)).detail]).toEqual([400, expect.stringContaining("exactly one")]);
    expect((await changed(job_id, { run_at: "2026-11-20T12:00:00Z" })).job).toMatchObject({
      ...{ interval_minutes: null, run_at: "2026-11-20T12:00:00.000Z" },
    });
    await cron.tickAt(2 * HOUR);
    await cron.ended(job_id, 1);
    expect(await job(job_id)).toMatchObject({ status: "done", next_run_time: null });
    const over = await cron.patch(job_id, { status: "active" });
    expect([over.status, (await json(over)).detail]).toEqual([409, expect.stringContaining("new one")]);
    expect((await changed(job_id, { run_at: "2026-11-21T12:00:00Z" })).job.status).toBe("active");
  });

  test("of the zone alone moves times of day, and nothing else", async () => {
    await cron.serve();
    const daily = await cron.create({ command: "x", cron_time: "09:00", timezone: "Asia/Tokyo" });
    expect((await changed(daily.job_id, { timezone: null })).job).toMatchObject({
      ...{ timezone: "UTC", next_run_time: "2026-11-21T09:00:00.000Z" },
    });
    const interval = await cron.create({ command: "x", interval_minutes: 7 });
    cron.home.clock.now = later(MINUTE, START);
    expect((await changed(interval.job_id, { timezone: "Asia/Tokyo" })).job).toMatchObject({
      ...{ timezone: "Asia/Tokyo", next_run_time: interval.job.next_run_time },
    });
    const once = await cron.create({ command: "x", run_at: "2026-12-24T18:00" });
    const response = await cron.patch(once.job_id, { timezone: "Asia/Tokyo" });
    expect([response.status, (await json(response)).detail]).toEqual([
      400,
      expect.stringContaining("run_at"),
    ]);
    expect((await cron.patch(once.job_id, { timezone: "UTC" })).status).toBe(200);
  });

  test("to null gives the key back: the operator's is used", async () => {
    await cron.serve();
    const { job_id } = await cron.create({ ...EVERY_MINUTE, api_key: "sk-of-my-own" });
    expect((await changed(job_id, { name: "n" })).job.has_api_key).toBe(true);
    expect((await changed(job_id, { api_key: null })).job.has_api_key).toBe(false);
    await cron.tickAt(MINUTE);
    await cron.ended(job_id, 1);
    expect(cron.service.keys).toEqual(["sk-operator"]);
  });

  test("to tools that are not there is told, and they may come later", async () => {
    await cron.serve();
    const { job_id, unavailable_tools } = await cron.create({
      ...EVERY_MINUTE,
      allowed_tools: ["look", "wirte"],
    });
    expect(unavailable_tools).toEqual(["wirte"]);
    const { job, ...rest } = await changed(job_id, { allowed_tools: ["write"] });
    expect([job.allowed_tools, rest]).toEqual([["write"], { status: "updated", job_id }]);
  });

  test("of the name to null makes it the beginning of the command again", async () => {
    await cron.serve();
    const { job_id } = await cron.create({ ...EVERY_MINUTE, name: "mine" });
    expect((await changed(job_id, { command: "look\nthere" })).job.name).toBe("mine");
    expect((await changed(job_id, { name: null })).job.name).toBe("look");
    expect((await changed(job_id, { name: null, command: "go" })).job.name).toBe("go");
  });

  test("that is nothing is no change", async () => {
    await cron.serve();
    const { job_id, job: before } = await cron.create();
    cron.home.clock.now = later(20_000, START);
    const { updated_at, ...rest } = before;
    for (const body of [{}, { unknown: 1 }, { status: "active" }, { status: null }, { command: null }])
      expect((await changed(job_id, body)).job).toMatchObject(rest);
    expect(updated_at).toBe(START.toISOString());
  });
});

describe("a webhook", () => {
  const webhook_url = "https://example.com/hooks/@me?to=a@b";

  test("may have an @ in its path, and no user name", async () => {
    await cron.serve();
    expect((await cron.create({ ...EVERY_MINUTE, webhook_url })).job.webhook_url).toBe(webhook_url);
    for (const url of ["https://u:p@example.com/", "https://u@example.com/", "file:///etc/passwd", "/x"]) {
      const response = await cron.service.post("/api/cron", { ...EVERY_MINUTE, webhook_url: url });
      const { errors } = await json(response);
      expect([response.status, errors?.[0].path]).toEqual([400, "webhook_url"]);
    }
  });

  test("K1: its secret is shown once, and stored nowhere in clear, an Idempotency-Key's answer included", async () => {
    await cron.serve();
    const fields = { ...EVERY_MINUTE, webhook_url };
    const key = { "idempotency-key": "once" };
    const first = await json(await cron.service.post("/api/cron", fields, key));
    expect(first.webhook_secret).toMatch(/^whsec_/);
    const again = await cron.service.post("/api/cron", fields, key);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(await json(again)).toEqual(first);
    expect(await cron.stored()).not.toContain(first.webhook_secret.slice(6));
    expect(JSON.stringify(await cron.get("/api/cron"))).not.toContain("whsec_");
  });

  test("keeps its secret while its address stays, and gets one that can be read where that is lost", async () => {
    const signatures: (string | null)[] = [];
    const fetch: GuardedFetch = async (_url, init) => {
      signatures.push(new Headers(init?.headers).get("webhook-signature"));
      return new Response(null, { status: 204 });
    };
    await cron.serve([{ text: "done" }], { fetch });
    const { job_id } = await cron.create({ ...EVERY_MINUTE, webhook_url });
    expect((await changed(job_id, { webhook_url })).webhook_secret).toBeUndefined();
    expect((await changed(job_id, { webhook_url: `${webhook_url}2` })).webhook_secret).toMatch(/^whsec_/);
    // As if the server's secret had changed.
    const database = await cron.home.backend.open();
    await database.write.execute("UPDATE jobs SET sealed_webhook_secret = 'AAAA'");
    database.read.close();
    database.write.close();
    await cron.tickAt(MINUTE);
    await cron.until(async () => (await cron.runsOf(job_id))[0]?.delivery?.status === "failed");
    expect((await cron.runsOf(job_id))[0].delivery.last_error).toContain("set webhook_url anew");
    expect((await changed(job_id, { webhook_url: `${webhook_url}2` })).webhook_secret).toMatch(/^whsec_/);
    await cron.tickAt(2 * MINUTE);
    await cron.until(async () => (await cron.runsOf(job_id))[0]?.delivery?.status === "delivered");
    expect(signatures).toEqual([expect.stringMatching(/^v1,/)]);
  });
});

describe("POST …/run", () => {
  test("needs no body, and with an Idempotency-Key runs once", async () => {
    await cron.serve();
    const { job_id } = await cron.create();
    const path = `/api/cron/${job_id}/run`;
    const headers = { "idempotency-key": "once" };
    const first = await cron.service.request(path, { method: "POST", headers });
    expect(first.status).toBe(202);
    await cron.settled();
    const again = await cron.service.request(path, { method: "POST", headers });
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([202, "true"]);
    expect(await json(again)).toEqual(await json(first));
    expect(await cron.runsOf(job_id)).toHaveLength(1);
    expect((await cron.service.request(path, { method: "POST" })).status).toBe(202);
  });

  test("of a paused job runs it; twice at once is one, and the other is told", async () => {
    await cron.serve();
    const { job_id } = await cron.create();
    await changed(job_id, { status: "paused" });
    const answers = await Promise.all([1, 2].map(() => cron.service.post(`/api/cron/${job_id}/run`, {})));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 409]);
    await cron.ended(job_id, 1);
    expect(await job(job_id)).toMatchObject({ status: "paused", last_fate: "ran" });
  });

  test("again and again fills a queue only so far", async () => {
    await cron.serve([{ hang: true, text: "…" }, { text: "done" }]);
    const { job_id } = await cron.create({ ...EVERY_MINUTE, overlap: "queue" });
    const statuses: number[] = [];
    for (let n = 0; n < 8; n++)
      statuses.push((await cron.service.post(`/api/cron/${job_id}/run`, {})).status);
    expect(statuses).toEqual([...Array(6).fill(202), 409, 409]);
    const runs = await cron.runsOf(job_id);
    await cron.service.post(`/api/runs/${runs.at(-1).run_id}/stop`, {});
    await cron.ended(job_id, 6);
    expect(await cron.fatesOf(job_id)).toEqual([...Array(5).fill("ran"), "failed"]);
  });

  test("R3: in the very millisecond of a time of its schedule, the job goes on with the next", async () => {
    await cron.serve();
    const { job_id } = await cron.create();
    cron.home.clock.now = later(MINUTE, START);
    await cron.service.post(`/api/cron/${job_id}/run`, {});
    await cron.settled();
    for (const minute of [1, 2, 3]) await cron.tickAt(minute * MINUTE);
    await cron.ended(job_id, 3);
    const runs = await cron.runsOf(job_id);
    expect(runs.map(({ trigger }: { trigger: string }) => trigger)).toEqual([
      "schedule",
      "schedule",
      "manual",
    ]);
    expect(await job(job_id)).toMatchObject({ runs_made: 2 });
  });
});
