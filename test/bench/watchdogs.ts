/**
 * `node test/bench/watchdogs.ts [--watchdogs 1000] [--minutes 3]`: what watchdogs on urls cost that find nothing, without
 * their requests: those are answered from memory. CPU of one process over a database file, with a clock that is set.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parseConfig } from "../../src/config.ts";
import type { Platform } from "../../src/core/platform.ts";
import { createClient } from "../../src/platform/local-database.ts";
import { digest } from "../../src/platform/local-digest.ts";
import { createVirtualWorkspace } from "../../src/platform/virtual-workspace.ts";
import { createServices } from "../../src/services.ts";
import { openFileDatabase } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { createStore } from "../../src/store/store.ts";
import { MIGRATIONS } from "../store/backends.ts";
import { figure, type Line, table } from "./table.ts";

const { values: args } = parseArgs({
  options: { watchdogs: { type: "string", default: "1000" }, minutes: { type: "string", default: "3" } },
});
const WATCHDOGS = Number(args.watchdogs);
const MINUTES = Number(args.minutes);
const OWNERS = 20;
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
/** Of a core, with 1,000 of them. Percent. */
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
let writes = 0;
const { batch } = database.write;
database.write.batch = (...call: Parameters<typeof batch>) => {
  writes += 1;
  return batch.apply(database.write, call);
};
const store = createStore({ database, log: () => {}, now: () => now, background });
const PAGE = "All is well. ".repeat(100);
let asked = 0;
const perSecond: number[] = [];
const platform: Platform = {
  // Nothing happens by itself: the bench says when it is time.
  runtime: "workerd",
  digest,
  files: (owner) => createVirtualWorkspace(store.files, owner),
  async fetch() {
    asked += 1;
    return new Response(PAGE);
  },
  ...{ background, now: () => now, log: () => {}, secret: "a-secret-of-the-bench-with-enough-characters" },
};
const services = createServices(
  parseConfig({ OPENAI_API_KEY: "sk-operator" }, { runtime: "node" }),
  platform,
  store,
  {
    tools: [],
  },
);

const made = process.cpuUsage();
for (let n = 0; n < WATCHDOGS; n++)
  await services.automation.watchdogs.create(
    `owner-${n % OWNERS}`,
    { url: `https://host-${n}.example/`, job: { command: `look ${n}` } },
    {},
  );
const making = process.cpuUsage(made);

async function minute(): Promise<void> {
  for (let second = 0; second < 60; second++) {
    now = new Date(now.getTime() + SECOND_MS);
    const before = asked;
    await services.automation.tick();
    while (pending.size > 0) await Promise.all(pending);
    perSecond.push(asked - before);
  }
}

// The first look of each, and what is compiled by then.
await minute();
await minute();
perSecond.length = 0;
asked = 0;
writes = 0;
const before = process.cpuUsage();
for (let n = 0; n < MINUTES; n++) await minute();
const { user, system } = process.cpuUsage(before);
const cpuMs = (user + system) / 1_000;
const looks = asked;
const transactions = writes;

/** What the answers themselves cost: made and read, and nothing else done about them. */
const bare = process.cpuUsage();
for (let n = 0; n < looks; n++) await (await platform.fetch("https://host.example/", {})).text();
const answers = process.cpuUsage(bare);
const answersMs = (answers.user + answers.system) / 1_000;

const wholeMs = MINUTES * MINUTE_MS;
const lines: Line[] = [
  [`${WATCHDOGS} made: CPU for each`, figure((making.user + making.system) / 1_000 / WATCHDOGS, "ms"), "–"],
  ["looks in a minute", figure(looks / MINUTES), figure(WATCHDOGS)],
  ["looks in the busiest second", figure(Math.max(...perSecond)), "–"],
  ["transactions in a minute", figure(transactions / MINUTES), "–"],
  ["CPU of a look", figure(((cpuMs - answersMs) / looks) * 1_000, "µs"), "–"],
  ["share of a core", figure(((cpuMs - answersMs) / wholeMs) * 100, "%"), figure(IDLE_SHARE, "%")],
];
await services.close();
await store.close();
rmSync(folder, { recursive: true });
process.stdout.write(`${table(["", "measured", "at most"], lines)}\n`);
process.exit(0);
