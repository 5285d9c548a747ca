/**
 * `node test/bench/journal.ts [--turns 4000]`: what keeping a plain turn costs over a stateless one, in one
 * process, over a database file, with a model that answers at once. CPU of the whole process, so that what is written in
 * the background counts.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createApp } from "../../src/app.ts";
import { parseConfig } from "../../src/config.ts";
import type { ModelEvent } from "../../src/core/event.ts";
import type { ModelAdapter, ModelRegistry } from "../../src/core/model.ts";
import type { Platform } from "../../src/core/platform.ts";
import { createClient } from "../../src/platform/local-database.ts";
import { createVirtualWorkspace } from "../../src/platform/virtual-workspace.ts";
import { createModelRegistry } from "../../src/providers/registry.ts";
import { createServices } from "../../src/services.ts";
import { openFileDatabase } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { createStore } from "../../src/store/store.ts";
import { noFetch } from "../no-fetch.ts";
import { MIGRATIONS } from "../store/backends.ts";
import { figure, type Line, ratio, table } from "./table.ts";

const { values: args } = parseArgs({ options: { turns: { type: "string", default: "4000" } } });
const TURNS = Number(args.turns);
/** The kinds take turns, so that what the machine does meanwhile meets all of them. */
const PORTIONS = 8;
const WARM_UP = 300;
/** One client alone, and as many as a service has that is not idle: their writes share transactions. */
const AT_ONCE = [1, 16];
/** Turns of a session that is kept. */
const SESSION_LENGTH = 10;
const TARGET_US = 150;

const REPLY: ModelEvent[] = [
  { type: "open", model: "scripted" },
  { type: "part-open", index: 0, part: { kind: "text" } },
  ...Array.from(
    { length: 7 },
    (): ModelEvent => ({ type: "part-delta", index: 0, delta: "Some words of it. " }),
  ),
  { type: "part-close", index: 0 },
  { type: "done", stop: "stop", usage: { input: 10, output: 5 } },
];
const model: ModelAdapter = {
  provider: "openai",
  models: async () => [],
  async *stream() {
    yield* REPLY;
  },
};

const folder = mkdtempSync(join(tmpdir(), "dragoman-bench-"));
const database = await openFileDatabase(join(folder, "dragoman.db"), createClient);
await migrate(database, MIGRATIONS);
const pending = new Set<Promise<unknown>>();
const platform = createPlatform();
const store = createStore({ ...platform, database });
const config = parseConfig(
  { OPENAI_API_KEY: "sk-operator", OPENAI_MODEL: "scripted", RATE_LIMIT: "0" },
  { runtime: "node" },
);
const real = createModelRegistry({ providers: config.providers, limits: config.upstream, strictKeys: false });
const models: ModelRegistry = { choose: (wish) => real.choose(wish), adapter: async () => model };
const services = createServices(config, platform, store, { models });
const app = createApp(services);

function createPlatform(): Platform {
  return {
    runtime: "node",
    files: (owner) => createVirtualWorkspace(store.files, owner),
    fetch: noFetch,
    background(work) {
      const settled: Promise<unknown> = work.finally(() => pending.delete(settled));
      pending.add(settled);
    },
    now: () => new Date(),
    log: () => {},
    secret: "a-secret-of-the-bench-with-enough-characters",
  };
}

interface Kind {
  name: string;
  path: string;
  body(turn: number): unknown;
  headers?(turn: number): Record<string, string>;
}
const v1 = () => ({
  model: "gpt-4o",
  messages: [{ role: "user", content: "Say some words of it, please." }],
});
const native = () => ({ message: "Say some words of it, please." });
const label = (turn: number) => `bench-${Math.floor(turn / SESSION_LENGTH)}`;
const completions = { path: "/v1/chat/completions", body: v1 };
const KINDS: Kind[] = [
  { ...completions, name: "completions, stateless" },
  { ...completions, name: "completions, new session", headers: () => ({ "x-session-id": "new" }) },
  { ...completions, name: "completions, same session", headers: (turn) => ({ "x-session-id": label(turn) }) },
  { path: "/api/chat", body: native, name: "native, new session" },
];

/** Microseconds of CPU for each turn. */
async function turns(kind: Kind, from: number, count: number, atOnce: number): Promise<number> {
  const before = process.cpuUsage();
  const each = Math.ceil(count / atOnce);
  await Promise.all(
    Array.from({ length: atOnce }, (_, at) =>
      inARow(kind, from + at * each, from + Math.min(count, (at + 1) * each)),
    ),
  );
  // What was put off belongs to those who caused it.
  while (pending.size > 0) await Promise.all(pending);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

async function inARow(kind: Kind, from: number, end: number): Promise<void> {
  for (let turn = from; turn < end; turn++) {
    const response = await app.request(`http://127.0.0.1:8000${kind.path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...kind.headers?.(turn) },
      body: JSON.stringify(kind.body(turn)),
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${kind.name}: ${response.status} ${text}`);
  }
}

const figures = AT_ONCE.map(() => KINDS.map((): number[] => []));
for (const kind of KINDS) await turns(kind, 1_000_000, WARM_UP, 1);
const count = Math.ceil(TURNS / PORTIONS);
for (let portion = 0; portion < PORTIONS; portion++)
  for (const [mode, atOnce] of AT_ONCE.entries())
    for (const [index, kind] of KINDS.entries()) {
      const from = (portion * AT_ONCE.length + mode) * count;
      figures[mode]?.[index]?.push(await turns(kind, from, count, atOnce));
    }

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
for (const [mode, atOnce] of AT_ONCE.entries()) {
  const [stateless = Number.NaN, ...kept] = (figures[mode] ?? []).map(median);
  const lines: Line[] = [stateless, ...kept].map((cpu, index) => [
    KINDS[index]?.name ?? "",
    figure(cpu, "µs"),
    index === 0 ? "" : figure(cpu - stateless, "µs"),
    index === 0 ? "" : ratio(cpu, stateless),
  ]);
  const heading = `a plain turn, CPU, ${atOnce} at once`;
  process.stdout.write(`${table([heading, "whole", "over stateless", "ratio"], lines)}\n`);
}
process.stdout.write(`target: ${TARGET_US} µs over stateless\n`);
await services.close();
await store.close();
rmSync(folder, { recursive: true, force: true });
