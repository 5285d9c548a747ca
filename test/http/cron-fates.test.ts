/** What becomes of times that do not simply run: paused meanwhile, waited for in vain, cut short, deleted, another's. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DAY, HOUR, later, MINUTE } from "../automation/records.ts";
import { type Cron, createCron, EVERY_MINUTE } from "./cron-service.ts";
import { json, START } from "./service.ts";

let cron: Cron;
beforeEach(async () => {
  cron = await createCron();
});
afterEach(() => cron.close());

const write = { calls: [{ id: "1", name: "write", args: {} }] };

test("those in the queue run one behind the other, without waiting for anything else", async () => {
  const model = await cron.serve([{ hang: true, text: "…" }, { text: "done" }]);
  const { job_id } = await cron.create({ ...EVERY_MINUTE, overlap: "queue" });
  for (const minute of [1, 2, 3, 4]) {
    cron.home.clock.now = later(minute * MINUTE, START);
    await cron.service.services.tick();
  }
  await cron.service.post(`/api/cron/${job_id}/run`, {});
  const runs = await cron.runsOf(job_id);
  expect(runs.map(({ fate }: { fate: string }) => fate)).toEqual([...Array(4).fill("queued"), "claimed"]);
  await cron.service.post(`/api/runs/${runs[4].run_id}/stop`, {});
  await cron.ended(job_id, 5);
  expect(await cron.fatesOf(job_id)).toEqual([...Array(4).fill("ran"), "failed"]);
  expect(model.requests).toHaveLength(5);
});

describe("a pause", () => {
  test("holds for times that were waiting for the run before, but not for those asked for by hand", async () => {
    const model = await cron.serve([{ hang: true, text: "…" }, { text: "done" }]);
    const { job_id } = await cron.create({ ...EVERY_MINUTE, overlap: "queue" });
    for (const minute of [1, 2]) {
      cron.home.clock.now = later(minute * MINUTE, START);
      await cron.service.services.tick();
    }
    cron.home.clock.now = later(2 * MINUTE + 1, START);
    await cron.service.post(`/api/cron/${job_id}/run`, {});
    expect(await cron.fatesOf(job_id)).toEqual(["queued", "queued", "claimed"]);
    await cron.patch(job_id, { status: "paused" });
    const { run_id } = (await cron.runsOf(job_id))[2];
    await cron.service.post(`/api/runs/${run_id}/stop`, {});
    await cron.ended(job_id, 3);
    expect(
      (await cron.runsOf(job_id)).map(({ trigger, fate }: Record<string, string>) => [trigger, fate]),
    ).toEqual([
      ["manual", "ran"],
      ["schedule", "skipped"],
      ["schedule", "failed"],
    ]);
    expect((await cron.runsOf(job_id))[1].reason).toContain("paused");
    expect(model.requests).toHaveLength(2);
    expect((await cron.get(`/api/cron/${job_id}`)).status).toBe("paused");
  });
});

describe("a call that would ask", () => {
  test("is reported as denied even where the run's budget ends right behind it", async () => {
    await cron.serve([{ ...write, usage: { input: 60, output: 0 } }]);
    const { job_id } = await cron.create({ ...EVERY_MINUTE, budget: { run_tokens: 10 } });
    await cron.tickAt(MINUTE);
    await cron.ended(job_id, 1);
    expect((await cron.runsOf(job_id))[0]).toMatchObject({ fate: "ran", denied_tools: ["write"] });
  });

  test("that nobody decides on in a day is not run, and the job's times go on", async () => {
    await cron.serve([write, { text: "done" }]);
    const { job_id } = await cron.create({ command: "x", interval_minutes: 60, approval: "wait" });
    for (let hour = 1; hour <= 26; hour++) await cron.tickAt(hour * HOUR);
    await cron.ended(job_id, 26);
    const runs = (await cron.runsOf(job_id)).toReversed();
    expect(runs[0]).toMatchObject({
      fate: "failed",
      reason: expect.stringMatching(/expired|in time|decide/i),
    });
    expect(runs[1].fate).toBe("skipped");
    expect(runs.at(-1).fate).toBe("ran");
  });

  test("is decided on for a job that was deleted meanwhile, and its run ends", async () => {
    await cron.serve([write, { text: "written" }]);
    const { job_id } = await cron.create({ ...EVERY_MINUTE, approval: "wait" });
    await cron.tickAt(MINUTE);
    const [{ session_id, run_id }] = await cron.runsOf(job_id);
    await cron.service.request(`/api/cron/${job_id}`, { method: "DELETE" });
    const answer = await json(await cron.service.post("/api/chat/approve", { session_id, approved: true }));
    expect(answer).toMatchObject({ run_id, reply: "written" });
    await cron.tickAt(DAY);
    expect(cron.service.logged.filter(([level]) => level === "error")).toEqual([]);
  });
});

describe("A5: what is another's", () => {
  test("neither a session nor an agent of somebody else's is there", async () => {
    const env = { ACCESS_TOKENS: "ann:token-of-ann,bob:token-of-bob" };
    await cron.serve([{ text: "hi" }], { env });
    const as = (token: string) => ({ method: "POST", token });
    const chat = { ...as("token-of-ann"), json: { message: "hi" } };
    const { session_id: session } = await json(await cron.service.request("/api/chat", chat));
    const agent = { ...as("token-of-ann"), json: { name: "helper" } };
    expect((await cron.service.request("/api/agents", agent)).status).toBe(201);
    const { job_id } = await cron.create(EVERY_MINUTE, "token-of-bob");
    for (const reference of [{ session }, { agent_name: "helper" }]) {
      const fields = { ...EVERY_MINUTE, ...reference };
      const theirs = await cron.service.request("/api/cron", { ...as("token-of-bob"), json: fields });
      expect([reference, theirs.status]).toEqual([reference, 404]);
      const init = { method: "PATCH", token: "token-of-bob", json: reference };
      expect((await cron.service.request(`/api/cron/${job_id}`, init)).status).toBe(404);
      expect((await cron.create(fields, "token-of-ann")).job).toMatchObject(reference);
    }
  });

  test("K1: under AUTH=key the key of the header is the job's, encrypted, and its owner is no key", async () => {
    const key = "sk-of-somebody-with-a-key-0123456789";
    await cron.serve([{ text: "done" }], { env: { AUTH: "key" } });
    const { job_id, job } = await cron.create(EVERY_MINUTE, key);
    expect(job.has_api_key).toBe(true);
    // Nor is the operator's to be had by giving one's own back.
    const init = { method: "PATCH", token: key, json: { api_key: null } };
    expect((await cron.service.request(`/api/cron/${job_id}`, init)).status).toBe(200);
    await cron.tickAt(MINUTE);
    await cron.until(async () => cron.service.keys.length > 0);
    expect(cron.service.keys).toEqual([key]);
    expect(await cron.stored()).not.toContain(key);
    expect((await cron.service.request(`/api/cron/${job_id}`, { token: "sk-of-another" })).status).toBe(404);
  });
});
