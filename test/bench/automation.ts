/**
 * `node test/bench/automation.ts [--jobs 100000] [--due 100]`: a tick over many stored jobs of which few are due, the memory
 * and the time of an idle runner. Figures are of one process over a database file.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { parseConfig } from "../../src/config.ts";
import type { ModelAdapter } from "../../src/core/model.ts";
import type { Platform } from "../../src/core/platform.ts";
import { createClient } from "../../src/platform/local-database.ts";
import { createVirtualWorkspace } from "../../src/platform/virtual-workspace.ts";
import { createServices } from "../../src/services.ts";
import { openFileDatabase } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { createStore } from "../../src/store/store.ts";
import { newSpec } from "../automation/records.ts";
import { noFetch } from "../no-fetch.ts";
import { scriptedEvents } from "../scripted-model.ts";
import { MIGRATIONS } from "../store/backends.ts";
import { figure, type Line, table } from "./table.ts";

const { values: args } = parseArgs({
  options: { jobs: { type: "string", default: "100000" }, due: { type: "string", default: "100" } },
});
const JOBS = Number(args.jobs);
const DUE = Number(args.due);
const ROUNDS = 10;
const IDLE_MS = 30_000;
const MADE_AT_ONCE = 500;
const OWNERS = 20;
const STARTS_CPU_MS = 100;
const IDLE_SHARE = 0.1;

let now = new Date("2026-11-20T10:00:00.000Z");
const folder = mkdtempSync(join(tmpdir(), "dragoman-bench-"));
const database = await openFileDatabase(join(folder, "dragoman.db"), createClient);
await migrate(database, MIGRATIONS);
const pending = new Set<Promise<unknown>>();
const background = (work: Promise<unknown>): void => {
  const settled: Promise<unknown> = work.finally(() => pending.delete(settled));
  pending.add(settled);
};
const store = createStore({ database, log: () => {}, now: () => now, background });

/** Runs wait here, so that what starting them takes is seen by itself. */
let open = () => {};
let gate = Promise.resolve();
let asked = 0;
const model: ModelAdapter = {
  provider: "openai",
  models: async () => [],
  async *stream() {
    asked++;
    await gate;
    yield* scriptedEvents({ text: "done" });
  },
};
function servicesOf(runtime: Platform["runtime"]) {
  const platform: Platform = {
    runtime,
    files: (owner) => createVirtualWorkspace(store.files, owner),
    fetch: noFetch,
    background,
    now: () => (runtime === "workerd" ? now : new Date()),
    log: () => {},
    secret: "a-secret-of-the-bench-with-enough-characters",
  };
  const env = {
    OPENAI_API_KEY: "sk-operator",
    AUTOMATION_CONCURRENCY: "1000",
    AUTOMATION_DAY_TOKENS: "1000000000",
  };
  const models = { choose: () => ({ provider: "openai" as const, key: "sk" }), adapter: async () => model };
  return createServices(parseConfig(env, { runtime: "node" }), platform, store, { models, tools: [] });
}

const MINUTE_MS = 60_000;
for (let from = 0; from < JOBS; from += MADE_AT_ONCE)
  await Promise.all(
    Array.from({ length: Math.min(MADE_AT_ONCE, JOBS - from) }, (_, i) => {
      const n = from + i;
      const minute = n % Math.ceil(JOBS / DUE);
      const at = new Date(now.getTime() + (minute + 1) * MINUTE_MS);
      const spec = newSpec({
        name: `job ${n}`,
        schedule: { kind: "cron", expression: "0 0 * * *", timezone: "UTC" },
      });
      return store.automation.jobs.create(`owner-${n % OWNERS}`, spec, {
        fingerprint: String(n),
        nextAt: at,
      });
    }),
  );

const services = servicesOf("workerd");
const lines: Line[] = [];
const cpu: number[] = [];
const wall: number[] = [];
const whole: number[] = [];
for (let round = 1; round <= ROUNDS; round++) {
  now = new Date(now.getTime() + MINUTE_MS);
  gate = new Promise((resolve) => {
    open = resolve;
  });
  asked = 0;
  const before = process.cpuUsage();
  const begun = performance.now();
  const { claimed } = await services.automation.tick();
  while (asked < claimed) await new Promise((resolve) => setImmediate(resolve));
  const { user, system } = process.cpuUsage(before);
  cpu.push((user + system) / 1000);
  wall.push(performance.now() - begun);
  if (claimed !== DUE) throw new Error(`${claimed} were claimed, ${DUE} are due.`);
  open();
  while (pending.size > 0) await Promise.all(pending);
  const all = process.cpuUsage(before);
  whole.push((all.user + all.system) / 1000);
}
const median = (values: number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
lines.push([
  `${JOBS} jobs, ${DUE} due: CPU until all have started`,
  figure(median(cpu), "ms"),
  figure(STARTS_CPU_MS, "ms"),
]);
lines.push(["the same, by the clock", figure(median(wall), "ms"), "–"]);
lines.push(["CPU until all have ended and are recorded", figure(median(whole), "ms"), "–"]);
const empty: number[] = [];
for (let round = 0; round < 100; round++) {
  const begun = performance.now();
  await services.automation.tick();
  empty.push(performance.now() - begun);
}
lines.push(["a tick with nothing due", figure(median(empty), "ms"), "–"]);
await services.close();

// Nothing is due for long: the runner sleeps.
await database.write.execute("UPDATE jobs SET next_at = next_at + 315360000000");
const idle = servicesOf("node");
await new Promise((resolve) => setTimeout(resolve, 1_000));
const before = process.cpuUsage();
await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
const { user, system } = process.cpuUsage(before);
lines.push([
  `idle, with ${JOBS} jobs: share of a core`,
  figure((user + system) / 10 / IDLE_MS, "%"),
  figure(IDLE_SHARE, "%"),
]);
await idle.close();
await store.close();
rmSync(folder, { recursive: true });
process.stdout.write(`${table(["", "measured", "at most"], lines)}\n`);
