/** Hints that a directory has changed, on the rows that all processes share. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { later, MINUTE, newOccurrence, newSpec, outcome } from "../automation/records.ts";
import { BACKENDS, type Backend, openStore, type TestStore } from "./backends.ts";

describe.each(BACKENDS.filter(({ available }) => available))("on $name", ({ create }) => {
  let backend: Backend;
  let store: TestStore;
  let now: Date;
  beforeEach(async () => {
    backend = await create();
    store = await openStore(backend);
    now = store.clock.now;
  });
  afterEach(async () => {
    await store.close();
    await backend.close();
  });

  const AN_HOUR = 60 * MINUTE;
  const watchOf = (change: object = {}) => ({
    ...{ target: { directory: "in" }, intervalMs: AN_HOUR, debounceMs: 2_000, cooldownMs: 0, ...change },
  });

  async function make(watch: object = {}, nextAt: Date | null = later(AN_HOUR, now), owner = "ann") {
    const spec = newSpec({ kind: "watchdog", schedule: null, watch: watchOf(watch) });
    const fingerprint = crypto.randomUUID();
    return (await store.automation.jobs.create(owner, spec, { fingerprint, nextAt })).job.id;
  }
  const hint = (id: string, at = now, time = now) => store.automation.hints.hint([{ id, at }], time);
  const nextOf = async (id: string) => (await store.automation.jobs.get("ann", null, id))?.nextAt;
  const claim = (time = now) =>
    store.automation.jobs.claim({
      ...{ kind: "watchdog", claim: "c", now: time, until: later(30_000, time), limit: 10 },
    });
  const NONE = { sooner: 0, busy: [] };

  /** It has fired at `time`, and its run is under way. */
  async function fire(id: string, time: Date): Promise<void> {
    await store.automation.jobs.update("ann", "watchdog", id, { nextAt: time });
    await claim(time);
    const watchState = { lastCheckedAt: time, lastFiredAt: time, lastError: null };
    const records = [newOccurrence({ scheduledAt: time, trigger: "watchdog", runId: "run_1", finding: "f" })];
    const plan = { records, nextAt: later(AN_HOUR, time), done: null, watchState };
    await store.automation.jobs.settle(id, "c", plan, { holder: "h", at: later(MINUTE, time) });
  }

  test("R3: a hint makes it due once, for one of all who claim", async () => {
    const id = await make();
    const other = await make();
    expect(await hint(id)).toEqual({ sooner: 1, busy: [] });
    expect(await hint(id)).toEqual(NONE);
    expect([await nextOf(id), await nextOf(other)]).toEqual([now, later(AN_HOUR, now)]);
    expect((await Promise.all([claim(), claim()])).flat().map((job) => job.id)).toEqual([id]);
  });

  test("one that is being looked at is named, and told again when it has been", async () => {
    const id = await make({}, now);
    await claim();
    expect(await hint(id)).toEqual({ sooner: 0, busy: [id] });
    const plan = { records: [], nextAt: later(AN_HOUR, now), done: null };
    await store.automation.jobs.settle(id, "c", plan, { holder: "h", at: now });
    expect(await hint(id)).toEqual({ sooner: 1, busy: [] });
  });

  test("a look within the pause for debouncing stays where it is", async () => {
    const id = await make({}, later(2_000, now));
    expect([await hint(id), await nextOf(id)]).toEqual([NONE, later(2_000, now)]);
  });

  test("nothing comes of one that is paused, done, gone or watches something else", async () => {
    const paused = await make();
    await store.automation.jobs.update("ann", "watchdog", paused, { status: "paused" });
    for (const id of [paused, await make({}, null), "wdg_gone"]) expect(await hint(id)).toEqual(NONE);
    const spec = newSpec({ kind: "cron" });
    const options = { fingerprint: "cron", nextAt: later(AN_HOUR, now) };
    const { job } = await store.automation.jobs.create("ann", spec, options);
    expect([await hint(job.id), await nextOf(job.id)]).toEqual([NONE, options.nextAt]);
  });

  test("a cooldown holds it back, and what came during its own run waits for the interval", async () => {
    const id = await make({ cooldownMs: 5 * MINUTE });
    await fire(id, now);
    const minute = later(MINUTE, now);
    expect(await hint(id, minute, minute)).toEqual(NONE);
    const key = { jobId: id, scheduledAt: now };
    await store.automation.occurrences.finish(key, outcome({ at: later(2 * MINUTE, now) }), null);
    const [before, behind] = [later(2 * MINUTE, now), later(2 * MINUTE + 1, now)];
    expect(await hint(id, before, behind)).toEqual(NONE);
    expect(await hint(id, behind, behind)).toEqual({ sooner: 1, busy: [] });
    expect(await nextOf(id)).toEqual(later(5 * MINUTE, now));
  });

  test("watched are the directories of all owners whose watchdogs are active", async () => {
    const first = await make();
    const second = await make({ target: { directory: "a 'b'", pattern: "*" } }, now, "bob");
    const paused = await make();
    await store.automation.jobs.update("ann", "watchdog", paused, { status: "paused" });
    await make({}, null);
    await make({ target: { url: "https://example.com" } });
    expect(await store.automation.hints.directories()).toEqual([
      { id: first, owner: "ann", directory: "in" },
      { id: second, owner: "bob", directory: "a 'b'" },
    ]);
  });
});
