/** Jobs whose time has come: run, late, beside one another, and taken over from processes that died. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BEGIN_AGAIN_MS } from "../../src/automation/occurrence-runs.ts";
import { DAY, HOUR, later, MINUTE } from "../automation/records.ts";
import { type Cron, createCron, EVERY_MINUTE } from "./cron-service.ts";
import { json, START } from "./service.ts";

let cron: Cron;
beforeEach(async () => {
  cron = await createCron();
});
afterEach(() => cron.close());

describe("a job that is due", () => {
  test("runs as an ordinary run in a session of its own, and every time has its record", async () => {
    const model = await cron.serve([{ text: "all is well", usage: { input: 100, output: 20 } }]);
    const { job_id } = await cron.create();
    await cron.tickAt(MINUTE - 1);
    expect(model.requests).toHaveLength(0);
    await cron.tickAt(MINUTE);
    await cron.ended(job_id, 1);
    const { runs, upcoming } = await cron.get(`/api/cron/${job_id}/runs`);
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
    const { messages } = await cron.get(`/api/sessions/${runs[0].session_id}/messages`);
    expect(messages.map(({ role, content }: { role: string; content: string }) => [role, content])).toEqual([
      ["user", "look around"],
      ["assistant", "all is well"],
    ]);
    expect((await cron.get(`/api/runs/${runs[0].run_id}`)).status).toBe("completed");
    expect(model.requests[0]?.system.at(-1)?.text).toContain(
      'You run by yourself, as the scheduled job "look around"',
    );
    expect(await cron.get(`/api/cron/${job_id}`)).toMatchObject({
      ...{
        last_fate: "ran",
        last_run: later(MINUTE, START).toISOString(),
        runs_made: 1,
        usage: { tokens: 120 },
      },
    });
    await cron.tickAt(2 * MINUTE);
    await cron.ended(job_id, 2);
    const sessions = (await cron.runsOf(job_id)).map((run: { session_id: string }) => run.session_id);
    expect(new Set(sessions).size).toBe(2);
  });

  test("in a session of one's own it goes on with what is there", async () => {
    const model = await cron.serve([{ text: "hello" }, { text: "again" }]);
    const { session_id } = await json(await cron.service.post("/api/chat", { message: "hi" }));
    const { job_id } = await cron.create({ ...EVERY_MINUTE, session: session_id });
    await cron.tickAt(MINUTE);
    await cron.ended(job_id, 1);
    expect(model.requests[1]?.messages).toHaveLength(3);
    expect((await cron.runsOf(job_id))[0].session_id).toBe(session_id);
  });

  test("R4: an hour's jump, a day's jump and two days asleep leave no time without a fate", async () => {
    const model = await cron.serve();
    const { job_id } = await cron.create({ command: "x", schedule: "0 * * * *" });
    await cron.tickAt(HOUR + 45 * MINUTE);
    await cron.ended(job_id, 1);
    expect(await cron.fatesOf(job_id)).toEqual(["late"]);
    await cron.tickAt(DAY);
    await cron.ended(job_id, 3);
    // Exactly on time again, and 22 others are one record.
    expect(await cron.fatesOf(job_id)).toEqual(["ran", "missed", "late"]);
    expect((await cron.runsOf(job_id))[1]).toMatchObject({
      count: 22,
      scheduled_at: "2026-11-20T12:00:00.000Z",
    });
    await cron.tickAt(3 * DAY + 90 * MINUTE);
    await cron.ended(job_id, 5);
    expect(await cron.fatesOf(job_id)).toEqual(["late", "missed", "ran", "missed", "late"]);
    expect(model.requests).toHaveLength(3);
    // The clock goes back: nothing is due, and nothing is done twice.
    await cron.tickAt(3 * DAY);
    expect(model.requests).toHaveLength(3);
    expect((await cron.get(`/api/cron/${job_id}/runs`)).upcoming[0]).toBe("2026-11-23T12:00:00.000Z");
  });

  test("P1: what would ask is denied and reported; what the job names runs unasked; policy's denial stands", async () => {
    const call = (id: string, name: string) => ({ id, name, args: {} });
    const calls = [call("1", "look"), call("2", "write")];
    const rules = { rules: [{ tool: "look", decision: "deny" }] };
    await cron.serve([{ calls }, { text: "so" }, { calls: [call("3", "write")] }, { text: "did" }]);
    const denying = await cron.create();
    await cron.tickAt(MINUTE);
    await cron.ended(denying.job_id, 1);
    expect((await cron.runsOf(denying.job_id))[0]).toMatchObject({ fate: "ran", denied_tools: ["write"] });
    await cron.patch(denying.job_id, { status: "paused" });
    const naming = await cron.create({ ...EVERY_MINUTE, allowed_tools: ["write"] });
    await cron.tickAt(2 * MINUTE);
    await cron.ended(naming.job_id, 1);
    const [run] = await cron.runsOf(naming.job_id);
    expect(run).toMatchObject({ fate: "ran", denied_tools: [] });
    const { messages } = await cron.get(`/api/sessions/${run.session_id}/messages`);
    expect(JSON.stringify(messages)).toContain("write has done it");
    const model = await cron.serve([{ calls }, { text: "so" }], { env: { APPROVAL: JSON.stringify(rules) } });
    await cron.patch(naming.job_id, { status: "paused" });
    const denied = await cron.create({ ...EVERY_MINUTE, command: "z", allowed_tools: ["look", "write"] });
    await cron.tickAt(3 * MINUTE);
    await cron.ended(denied.job_id, 1);
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["write"]);
  });

  test("waits for approval where the job says so, and its times go on", async () => {
    await cron.serve([{ calls: [{ id: "1", name: "write", args: {} }] }, { text: "written" }]);
    const { job_id } = await cron.create({ ...EVERY_MINUTE, approval: "wait" });
    await cron.tickAt(MINUTE);
    const [run] = await cron.runsOf(job_id);
    expect([run.fate, (await cron.get(`/api/runs/${run.run_id}`)).status]).toEqual(["claimed", "paused"]);
    await cron.tickAt(2 * MINUTE);
    expect(await cron.fatesOf(job_id)).toEqual(["skipped", "claimed"]);
    await cron.service.post("/api/chat/approve", { session_id: run.session_id, approved: true });
    await cron.settled();
    await cron.tickAt(2 * MINUTE + 50_000);
    await cron.ended(job_id, 2);
    expect(await cron.fatesOf(job_id)).toEqual(["skipped", "ran"]);
  });

  test("does not push aside a call that a person has yet to decide on", async () => {
    await cron.serve([{ calls: [{ id: "1", name: "write", args: {} }] }, { text: "x" }]);
    const { session_id, run_id } = await json(await cron.service.post("/api/chat", { message: "hi" }));
    const { job_id } = await cron.create({ ...EVERY_MINUTE, session: session_id, max_runs: 1 });
    await cron.tickAt(MINUTE);
    expect((await cron.get(`/api/runs/${run_id}`)).status).toBe("paused");
    expect((await cron.runsOf(job_id))[0]).toMatchObject({
      fate: "queued",
      attempts: 1,
      reason: expect.stringContaining(run_id),
    });
    await cron.service.post("/api/chat/approve", { session_id, approved: false });
    await cron.settled();
    await cron.tickAt(MINUTE + (BEGIN_AGAIN_MS[0] ?? 0));
    await cron.ended(job_id, 1);
    expect(await cron.fatesOf(job_id)).toEqual(["ran"]);
  });

  test("one at a time: skipped or in the queue, by hand too; max_runs ends it", async () => {
    await cron.serve([{ hang: true, text: "…" }, { text: "done" }]);
    const { job_id } = await cron.create({ ...EVERY_MINUTE, overlap: "queue", max_runs: 3 });
    const byHand = await cron.service.post(`/api/cron/${job_id}/run`, {});
    const { status, run } = await json(byHand);
    expect([byHand.status, status, run.trigger]).toEqual([202, "started", "manual"]);
    expect(byHand.headers.get("x-run-id")).toBe(run.run_id);
    cron.home.clock.now = later(MINUTE, START);
    await cron.service.services.tick();
    expect(await cron.fatesOf(job_id)).toEqual(["queued", "claimed"]);
    await cron.service.post(`/api/runs/${run.run_id}/stop`, {});
    await cron.ended(job_id, 2);
    expect(await cron.fatesOf(job_id)).toEqual(["ran", "failed"]);
    expect((await cron.runsOf(job_id))[1].reason).toContain("cancelled");
    const skipping = await cron.create({ command: "y", interval_minutes: 60 });
    await cron.serve([{ hang: true, text: "…" }]);
    const hanging = await json(await cron.service.post(`/api/cron/${skipping.job_id}/run`, {}));
    const second = await cron.service.post(`/api/cron/${skipping.job_id}/run`, {});
    expect([second.status, (await json(second)).code]).toEqual([409, "conflict"]);
    await cron.service.post(`/api/runs/${hanging.run.run_id}/stop`, {});
    await cron.patch(job_id, { max_runs: 1 });
    await cron.tickAt(2 * MINUTE);
    expect(await cron.get(`/api/cron/${job_id}`)).toMatchObject({
      ...{ status: "done", next_run_time: null, reason: expect.stringContaining("max_runs: 1") },
    });
  });
});
