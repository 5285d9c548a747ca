/** Jobs, occurrences and deliveries on both kinds of database: each change is one statement or one batch. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Automation } from "../../src/core/automation.ts";
import { createAutomationStore } from "../../src/store/automation.ts";
import { closeDatabase, type Database } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { KEPT_OCCURRENCES } from "../../src/store/occurrences.ts";
import { Reader } from "../../src/store/reader.ts";
import { WriteQueue } from "../../src/store/write-queue.ts";
import { DAY, later, MINUTE, NOW, newOccurrence, newSpec, outcome } from "../automation/records.ts";
import { BACKENDS, type Backend, createFileBackend, MIGRATIONS } from "./backends.ts";

const look = { holder: "me", at: later(MINUTE) };
const plan = { nextAt: later(MINUTE), done: null };

function storeOver(database: Database): Automation {
  return createAutomationStore(new Reader(database), new WriteQueue(database), () => NOW);
}

let owners = 0;
let ann: string;
beforeEach(() => {
  ann = `ann-${owners++}`;
});

describe.each(BACKENDS.filter(({ available }) => available))("on $name", ({ create }) => {
  let backend: Backend;
  let database: Database;
  let store: Automation;
  beforeAll(async () => {
    backend = await create();
    database = await backend.open();
    await migrate(database, MIGRATIONS);
    store = storeOver(database);
  });
  afterEach(async () => {
    await database.write.execute("DELETE FROM jobs");
  });
  afterAll(async () => {
    closeDatabase(database);
    await backend.close();
  });

  const make = async (spec = {}, nextAt: Date | null = NOW, fingerprint = "f") =>
    (await store.jobs.create(ann, newSpec(spec), { fingerprint, nextAt })).job;
  const claim = (name: string, now = NOW, limit = 10) =>
    store.jobs.claim({ kind: "cron", claim: name, now, until: later(MINUTE, now), limit });
  /** A job with an occurrence that is claimed. */
  const taken = async (spec = {}) => {
    const job = await make(spec);
    await claim("a");
    const records = [newOccurrence()];
    expect(await store.jobs.settle(job.id, "a", { ...plan, records }, look)).toEqual(records);
    return { job, key: { jobId: job.id, scheduledAt: NOW } };
  };

  test("R3: looks that found nothing end their own claims alone, and leave the rest of a job as it is", async () => {
    const [first, second, other] = await Promise.all(["f", "g", "h"].map((each) => make({}, NOW, each)));
    if (!first || !second || !other) throw new Error("There are three.");
    await claim("a", NOW, 3);
    await store.jobs.update(ann, "cron", other.id, { name: "changed meanwhile" });
    const looked = { lastCheckedAt: NOW, lastFiredAt: null, lastError: null };
    await store.jobs.rest("a", [
      { ...looked, id: first.id, nextAt: later(MINUTE) },
      { ...looked, id: second.id, nextAt: later(DAY), lastFiredAt: later(-DAY), lastError: '7\0\ud800 "é' },
      { ...looked, id: other.id, nextAt: later(DAY) },
    ]);
    const jobs = await Promise.all([first, second, other].map(({ id }) => store.jobs.get(ann, "cron", id)));
    expect(jobs).toEqual([
      { ...first, nextAt: later(MINUTE), watchState: { ...first.watchState, ...looked } },
      {
        ...second,
        nextAt: later(DAY),
        watchState: {
          ...{ ...second.watchState, ...looked },
          ...{ lastFiredAt: later(-DAY), lastError: '7\ufffd "é' },
        },
      },
      { ...other, name: "changed meanwhile" },
    ]);
    expect((await claim("b", later(MINUTE))).map(({ id }) => id).sort()).toEqual([first.id, other.id].sort());
    // By now they are another's.
    await store.jobs.rest("a", [{ ...looked, id: first.id, nextAt: later(DAY) }]);
    expect((await store.jobs.get(ann, "cron", first.id))?.nextAt).toEqual(later(MINUTE));
  });

  test("keeps all that a job is, and the same one again is the first", async () => {
    const spec = newSpec({
      ...{ session: "ses_1", agentName: "a", provider: "openai", model: "m", sealedKey: "k", maxRuns: 3 },
      ...{ allowedTools: ["x"], approval: "wait", webhookUrl: "https://a", sealedWebhookSecret: "s" },
      ...{ budget: { runTokens: 5 }, overlap: "queue", misfire: "all", repeatAfterCrash: true },
      schedule: { kind: "interval", minutes: 5, anchor: NOW },
    });
    const { job, created } = await store.jobs.create(ann, spec, { fingerprint: "f", nextAt: NOW });
    expect([created, job]).toEqual([true, expect.objectContaining({ ...spec, owner: ann, nextAt: NOW })]);
    const again = await store.jobs.create(ann, spec, { fingerprint: "f", nextAt: later(1) });
    expect([again.created, again.job]).toEqual([false, job]);
    expect((await store.jobs.create("bob", spec, { fingerprint: "f", nextAt: NOW })).created).toBe(true);
    expect(await store.jobs.get(ann, "cron", job.id)).toEqual(job);
    expect(await store.jobs.get("bob", "cron", job.id)).toBeNull();
    expect(await store.jobs.get(ann, "watchdog", job.id)).toBeNull();
    expect(await store.jobs.delete("bob", "cron", job.id)).toBe(false);
    expect(await store.jobs.update("bob", "cron", job.id, { name: "x" })).toBeNull();
    expect(await store.jobs.update(ann, "cron", job.id, { name: "x" })).toMatchObject({
      name: "x",
      session: "ses_1",
    });
  });

  test("a change that comes as a job ends does not keep the same from being made anew", async () => {
    const ended = await make({ name: "ends" }, NOW, "twin");
    await store.jobs.update(ann, "cron", ended.id, { status: "done", fingerprint: null });
    await store.jobs.update(ann, "cron", ended.id, { name: "renamed", fingerprint: "twin" });
    const again = await store.jobs.create(ann, newSpec({ name: "ends" }), {
      fingerprint: "twin",
      nextAt: NOW,
    });
    expect(again.created).toBe(true);
  });

  test("lists newest first, in pages", async () => {
    const ids = [];
    for (const name of ["a", "b", "c"]) ids.push((await make({ name }, NOW, name)).id);
    const first = await store.jobs.list(ann, "cron", { limit: 2 });
    const second = await store.jobs.list(ann, "cron", { limit: 2, cursor: first.next ?? "" });
    const seen = [...first.jobs, ...second.jobs].map(({ id }) => id);
    expect(seen.toSorted()).toEqual(ids.toSorted());
    expect(second.next).toBeNull();
  });

  test("R3: of many who claim at once, one gets a job, and who lost it settles nothing", async () => {
    const job = await make();
    const claims = await Promise.all(["a", "b", "c", "d"].map((name) => claim(name)));
    expect(claims.flat().map(({ id }) => id)).toEqual([job.id]);
    const winner = ["a", "b", "c", "d"][claims.findIndex((jobs) => jobs.length > 0)] ?? "";
    const records = [newOccurrence()];
    expect(await store.jobs.settle(job.id, "nobody", { ...plan, records }, look)).toBeNull();
    expect(await store.occurrences.open([job.id])).toEqual([]);
    expect(await store.jobs.settle(job.id, winner, { ...plan, records }, look)).toEqual(records);
    expect(await store.jobs.settle(job.id, winner, { ...plan, records }, look)).toBeNull();
    expect(await store.occurrences.open([job.id])).toMatchObject([{ fate: "claimed", runId: "run_1" }]);
    expect(await store.jobs.get(ann, "cron", job.id)).toMatchObject({ nextAt: plan.nextAt, runsMade: 1 });
  });

  test("R3: a claim that has run out is another's, and what the first does late is not written", async () => {
    const job = await make();
    expect(await claim("dead")).toHaveLength(1);
    expect(await claim("b")).toHaveLength(0);
    expect(await claim("b", later(MINUTE))).toHaveLength(1);
    const records = [newOccurrence()];
    expect(await store.jobs.settle(job.id, "dead", { ...plan, records }, look)).toBeNull();
    expect(await store.jobs.settle(job.id, "b", { ...plan, records }, look)).toEqual(records);
    // Whoever changes a job takes it out of the claimer's hands.
    await claim("c", later(MINUTE));
    await store.jobs.update(ann, "cron", job.id, { nextAt: later(DAY) });
    const after = [newOccurrence({ scheduledAt: later(MINUTE) })];
    expect(await store.jobs.settle(job.id, "c", { ...plan, records: after }, look)).toBeNull();
    expect((await store.occurrences.list(ann, job.id, { limit: 9 })).occurrences).toHaveLength(1);
  });

  test("R3: an occurrence that is there already takes nothing twice", async () => {
    const { job } = await taken();
    await store.jobs.update(ann, "cron", job.id, { nextAt: NOW });
    await claim("b");
    const there = newOccurrence({ runId: "run_2" });
    const next = newOccurrence({ scheduledAt: later(MINUTE), runId: "run_3", fate: "queued" });
    expect(await store.jobs.settle(job.id, "b", { ...plan, records: [there, next] }, look)).toEqual([next]);
    // And the job is not stuck at that time.
    expect(await store.jobs.get(ann, "cron", job.id)).toMatchObject({ runsMade: 2, nextAt: plan.nextAt });
    const { occurrences } = await store.occurrences.list(ann, job.id, { limit: 9 });
    expect(occurrences.map(({ runId }) => runId)).toEqual(["run_3", "run_1"]);
  });

  test("ends once, with what it means for the job, the day and the webhook", async () => {
    const { job, key } = await taken({ webhookUrl: "https://a" });
    const delivery = { url: "https://a", sealedSecret: "s", body: "{}" };
    const ends = await Promise.all([1, 2, 3].map(() => store.occurrences.finish(key, outcome(), delivery)));
    expect(ends.filter(Boolean)).toHaveLength(1);
    expect(await store.jobs.get(ann, "cron", job.id)).toMatchObject({
      ...{ spent: { tokens: 15, money: 0.5 }, lastFate: "ran", lastRunAt: NOW, failures: 0 },
    });
    expect(await store.occurrences.spentOn(ann, NOW)).toEqual({ tokens: 15, money: 0.5 });
    expect(await store.occurrences.spentOn(ann, later(DAY))).toEqual({ tokens: 0, money: 0 });
    expect(await store.occurrences.spentOn("bob", NOW)).toEqual({ tokens: 0, money: 0 });
    expect(await store.occurrences.get(ann, key)).toMatchObject({
      ...{ fate: "ran", sessionId: "ses_1", endedAt: NOW },
      delivery: { status: "pending", attempts: 0, nextAt: NOW },
    });
    expect(await store.occurrences.get("bob", key)).toBeNull();
    expect(
      await store.occurrences.look({ now: later(DAY), until: later(DAY), limit: 9, queued: true }),
    ).toEqual([]);
  });

  test("ten failures in a row pause a job with the last reason, and a success forgets them", async () => {
    const { job, key } = await taken();
    const fail = async (at: Date) => {
      await store.occurrences.add(ann, job.id, newOccurrence({ scheduledAt: at }), {
        now: NOW,
        alone: false,
      });
      const end = outcome({ fate: "failed", counts: "failure", reason: "it broke" });
      await store.occurrences.finish({ ...key, scheduledAt: at }, end, null);
    };
    await store.occurrences.finish(key, outcome({ fate: "failed", counts: "failure" }), null);
    for (let n = 1; n <= 8; n++) await fail(later(n));
    expect(await store.jobs.get(ann, "cron", job.id)).toMatchObject({ status: "active", failures: 9 });
    await fail(later(9));
    const paused = await store.jobs.get(ann, "cron", job.id);
    expect(paused).toMatchObject({ status: "paused", failures: 10 });
    expect(paused?.reason).toBe("Paused after 10 failures in a row. The last: it broke");
    expect(await claim("z", later(DAY))).toEqual([]);
    await store.occurrences.add(ann, job.id, newOccurrence({ scheduledAt: later(20) }), {
      now: NOW,
      alone: true,
    });
    await store.occurrences.finish({ ...key, scheduledAt: later(20) }, outcome(), null);
    expect(await store.jobs.get(ann, "cron", job.id)).toMatchObject({ status: "paused", failures: 0 });
  });

  test("one of a job at a time, in order, and by hand not beside another where that is skipped", async () => {
    const { job, key } = await taken();
    const add = (ms: number, alone: boolean) => {
      const occurrence = newOccurrence({ scheduledAt: later(ms), fate: "queued" });
      return store.occurrences.add(ann, job.id, occurrence, { now: NOW, alone });
    };
    expect(await add(1, true)).toBeNull();
    expect(await add(1, false)).toMatchObject({ scheduledAt: later(1), fate: "queued" });
    expect(await add(1, false)).toMatchObject({ scheduledAt: later(2) });
    const start = (ms: number) =>
      store.occurrences.start({ ...key, scheduledAt: later(ms) }, { holder: "me", until: later(MINUTE) });
    expect(await start(1)).toBe(false);
    await store.occurrences.finish(key, outcome({ at: later(5) }), null);
    expect(await start(2)).toBe(false);
    expect(await Promise.all([start(1), start(1)])).toEqual(expect.arrayContaining([true, false]));
    expect(
      await store.occurrences.add("bob", job.id, newOccurrence(), { now: NOW, alone: false }),
    ).toBeNull();
    // What waits for its turn is looked at as soon as the one before has ended.
    await store.occurrences.finish({ ...key, scheduledAt: later(1) }, outcome({ at: later(6) }), null);
    const wish = { now: later(6), until: later(MINUTE), limit: 9 };
    // Who could begin none leaves them to others.
    expect(await store.occurrences.look({ ...wish, queued: false })).toEqual([]);
    const next = await store.occurrences.look({ ...wish, queued: true });
    expect(next.map(({ scheduledAt }) => scheduledAt)).toEqual([later(2)]);
  });

  test("what could not begin goes back into the queue, and is counted", async () => {
    const { key } = await taken();
    expect(await store.occurrences.requeue(key, "run_other", later(5), "busy")).toBe(false);
    expect(await store.occurrences.requeue(key, "run_1", later(5), "busy")).toBe(true);
    expect(await store.occurrences.hold(key, "run_1", later(MINUTE))).toBe(false);
    expect(
      await store.occurrences.look({ now: later(4), until: later(MINUTE), limit: 9, queued: true }),
    ).toEqual([]);
    expect(
      await store.occurrences.look({ now: later(5), until: later(MINUTE), limit: 9, queued: true }),
    ).toMatchObject([{ fate: "queued", attempts: 1, reason: "busy", runId: "run_1" }]);
    expect(
      await store.occurrences.look({ now: later(5), until: later(MINUTE), limit: 9, queued: true }),
    ).toEqual([]);
  });

  test("a delivery is one attempt's at a time, and an attempt that was overtaken says nothing", async () => {
    const { key } = await taken();
    await store.occurrences.finish(key, outcome(), { url: "https://a", sealedSecret: "s", body: "{}" });
    const { deliveries } = store;
    const claims = await Promise.all([1, 2].map(() => deliveries.claim(NOW, later(MINUTE), 9)));
    expect(claims.flat()).toMatchObject([{ ...key, attempt: 1, url: "https://a", body: "{}" }]);
    const [second] = await deliveries.claim(later(MINUTE), later(2 * MINUTE), 9);
    expect(second?.attempt).toBe(2);
    const result = { httpStatus: 500, error: "no", nextAt: later(DAY), at: NOW };
    await deliveries.settle(key, 1, { ...result, status: "delivered", nextAt: null });
    expect((await store.occurrences.get(ann, key))?.delivery?.status).toBe("pending");
    await deliveries.settle(key, 2, { ...result, status: "pending" });
    expect((await store.occurrences.get(ann, key))?.delivery).toEqual({
      ...{ status: "pending", attempts: 2, nextAt: later(DAY), lastStatus: 500, lastError: "no" },
    });
  });

  test("knows when something is due next, whatever it is", async () => {
    expect(await store.nextDue()).toBeNull();
    const job = await make({}, later(5));
    expect(await store.nextDue()).toEqual(later(5));
    await store.jobs.update(ann, "cron", job.id, { status: "paused" });
    expect(await store.nextDue()).toBeNull();
    await store.occurrences.add(ann, job.id, newOccurrence(), { now: later(3), alone: false });
    expect(await store.nextDue()).toEqual(later(3));
    await store.occurrences.finish({ jobId: job.id, scheduledAt: NOW }, outcome({ at: later(2) }), {
      ...{ url: "https://a", sealedSecret: "s", body: "{}" },
    });
    expect(await store.nextDue()).toEqual(later(2));
  });
});

describe("on a file", () => {
  test("keeps the newest occurrences of a job, and all that have not ended", async () => {
    const backend = await createFileBackend();
    const database = await backend.open();
    await migrate(database, MIGRATIONS);
    const store = storeOver(database);
    const { job } = await store.jobs.create("ann", newSpec(), { fingerprint: "f", nextAt: NOW });
    await store.jobs.claim({ kind: "cron", claim: "a", now: NOW, until: later(DAY), limit: 1 });
    const records = Array.from({ length: KEPT_OCCURRENCES + 20 }, (_, n) =>
      newOccurrence({ scheduledAt: later(n), fate: n === 0 ? "claimed" : "skipped" }),
    );
    const kept = async () => {
      const { rows } = await database.read.execute(
        "SELECT count(*) AS n, min(scheduled_at) AS first FROM occurrences",
      );
      return [rows[0]?.n, rows[0]?.first];
    };
    await store.jobs.settle(job.id, "a", { ...plan, records }, look);
    expect(await kept()).toEqual([KEPT_OCCURRENCES + 2, NOW.getTime()]);
    await store.occurrences.add("ann", job.id, newOccurrence({ scheduledAt: later(DAY) }), {
      now: NOW,
      alone: false,
    });
    await store.occurrences.finish({ jobId: job.id, scheduledAt: later(DAY) }, outcome(), null);
    expect(await kept()).toEqual([KEPT_OCCURRENCES + 2, NOW.getTime()]);
    closeDatabase(database);
    await backend.close();
  });
});
