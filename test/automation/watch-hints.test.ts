/** Which directories a process watches, and how much it makes of what it is told. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DirectoryHints } from "../../src/automation/watch-hints.ts";
import type { WatchedDirectory } from "../../src/core/automation.ts";
import type { DirectoryEvents, Log } from "../../src/core/platform.ts";

const NOW = new Date("2026-11-20T10:00:00.000Z");

/** A system that watches, and a store that takes hints. */
function setUp() {
  const open = new Map<string, DirectoryEvents>();
  const logged: Parameters<Log>[] = [];
  const failed: unknown[] = [];
  const it = {
    ...{ open, logged, failed, stored: [] as WatchedDirectory[], busy: [] as string[], sooner: 1, reads: 0 },
    ...{ told: [] as string[][], woken: 0, fault: undefined as Error | undefined },
  };
  const hints = new DirectoryHints({
    wake: () => void it.woken++,
    platform: {
      now: () => NOW,
      log: (...entry) => void logged.push(entry),
      background: (work) => void work.catch((error) => failed.push(error)),
      watch(owner, path, events) {
        const key = `${owner} ${path}`;
        if (open.has(key)) throw new Error(`${key} is watched twice`);
        open.set(key, events);
        return () => void open.delete(key);
      },
    },
    hints: {
      async directories() {
        it.reads += 1;
        return it.stored;
      },
      async hint(changes) {
        if (it.fault) throw it.fault;
        it.told.push(changes.map(({ id }) => id));
        return { sooner: it.sooner, busy: it.busy };
      },
    },
  });
  return Object.assign(it, { hints });
}

let it: ReturnType<typeof setUp>;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  it = setUp();
});
afterEach(() => {
  it.hints.close();
  vi.useRealTimers();
});

const at = (id: string, directory = "in", owner = "ann") => ({ id, owner, directory });
const change = (key = "ann in", times = 1) => {
  for (let i = 0; i < times; i++) it.open.get(key)?.onChange();
};
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test("10,000 changes are one hint, and nothing is kept of them", async () => {
  it.hints.put(at("wdg_1"));
  it.hints.put(at("wdg_2"));
  change("ann in", 10_000);
  expect(vi.getTimerCount()).toBe(1);
  await pass(5_000);
  expect([it.told, it.woken, vi.getTimerCount()]).toEqual([[["wdg_1", "wdg_2"]], 1, 0]);
});

test("a directory that never rests is hinted at no more than once a second", async () => {
  it.hints.put(at("wdg_1"));
  for (let i = 0; i < 100; i++) {
    change();
    it.hints.looked("wdg_1", { ms: 1, found: true });
    await pass(100);
  }
  expect(it.told.length).toBeGreaterThan(8);
  expect(it.told.length).toBeLessThan(12);
});

test("less and less while nothing comes of it, at once again after a rest, and never more than looks may cost", async () => {
  it.hints.put(at("wdg_1"));
  const during = async (ms: number, look: { ms: number; found: boolean }) => {
    const before = it.told.length;
    for (let each = 0; each < ms; each += 250) {
      change();
      const told = it.told.length;
      await pass(250);
      if (it.told.length > told) it.hints.looked("wdg_1", look);
    }
    return it.told.length - before;
  };
  const fruitless = await during(120_000, { ms: 1, found: false });
  expect(fruitless).toBeGreaterThan(6);
  expect(fruitless).toBeLessThan(10);
  await pass(60_000);
  const before = it.told.length;
  change();
  await pass(250);
  expect(it.told.length).toBe(before + 1);
  // Looks of 6 seconds: not more often than once a minute.
  it.hints.looked("wdg_1", { ms: 6_000, found: true });
  expect(await during(119_000, { ms: 6_000, found: true })).toBe(1);
});

test("what somebody was looking at just then is told again, and so is what could not be stored", async () => {
  it.hints.put(at("wdg_1"));
  it.busy = ["wdg_1"];
  it.sooner = 0;
  change();
  await pass(250);
  it.busy = [];
  await pass(1_000);
  expect([it.told, it.woken]).toEqual([[["wdg_1"], ["wdg_1"]], 0]);
  it.fault = new Error("the disk is full");
  change();
  await pass(1_500);
  it.fault = undefined;
  await pass(1_500);
  expect([it.told.length, it.failed.length > 0]).toEqual([3, true]);
});

test("is watched as long as there is an active watchdog on it, whoever has made or ended it", async () => {
  it.stored = [at("wdg_1"), at("wdg_2"), at("wdg_3", "in", "bob")];
  await it.hints.refresh();
  expect([...it.open.keys()]).toEqual(["ann in", "bob in"]);
  it.stored = [at("wdg_2", "elsewhere"), at("wdg_4")];
  await it.hints.refresh();
  // Not with every tick.
  expect([it.reads, it.open.has("bob in")]).toEqual([1, true]);
  await pass(61_000);
  it.hints.put(at("wdg_5", "made meanwhile"));
  await pass(1);
  const refreshing = it.hints.refresh();
  it.hints.put(at("wdg_6", "made just now"));
  await refreshing;
  expect([...it.open.keys()].sort()).toEqual(["ann elsewhere", "ann in", "ann made just now"]);
  it.hints.drop("wdg_4");
  it.hints.drop("wdg_4");
  expect([...it.open.keys()].sort()).toEqual(["ann elsewhere", "ann made just now"]);
  it.hints.close();
  it.hints.put(at("wdg_7"));
  expect([it.open.size, vi.getTimerCount()]).toEqual([0, 0]);
});

test("a hint that waits when its directory is no longer watched is not given", async () => {
  it.hints.put(at("wdg_1"));
  change();
  it.hints.drop("wdg_1");
  await pass(1_000);
  expect(it.told).toEqual([]);
});

test("where it cannot be watched natively, that is said once, and the interval is left", async () => {
  for (let i = 0; i < 3; i++) it.hints.put(at(`wdg_${i}`, `in${i}`));
  for (const events of it.open.values()) events.onEnd("the system lets its user watch no more directories");
  await it.hints.refresh();
  const warnings = it.logged.filter(([level]) => level === "warning");
  expect(warnings).toEqual([
    [
      "warning",
      "a directory is looked at by interval only",
      { directory: "in0", reason: "the system lets its user watch no more directories" },
    ],
  ]);
});

test("no more than 500 directories are watched", async () => {
  it.stored = Array.from({ length: 600 }, (_, i) => at(`wdg_${i}`, `in${i}`));
  await it.hints.refresh();
  expect(it.open.size).toBe(500);
  it.hints.drop("wdg_0");
  await pass(61_000);
  it.stored = it.stored.slice(1).reverse();
  await it.hints.refresh();
  // Those that were stay, and one more is.
  expect([it.open.size, it.open.has("ann in1"), it.open.has("ann in599")]).toEqual([500, true, true]);
});
