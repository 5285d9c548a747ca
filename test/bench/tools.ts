/**
 * `node test/bench/tools.ts [--runs 400] [--only read]`: what a tool's round trip costs, its journal included, over the model
 * calls: the CPU of this process for a run of so many calls, less that of a run without any, for each call. The
 * model answers at once. Beside it the bare work that the tool does, measured in the same run: by it the figures travel.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createApp } from "../../src/app.ts";
import { parseConfig } from "../../src/config.ts";
import type { ModelEvent } from "../../src/core/event.ts";
import type { ModelAdapter, ModelRegistry } from "../../src/core/model.ts";
import { createClient } from "../../src/platform/local-database.ts";
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { createLocalTerminal } from "../../src/platform/local-terminal.ts";
import { createLocalWorkspace } from "../../src/platform/local-workspace.ts";
import { createModelRegistry } from "../../src/providers/registry.ts";
import { createServices } from "../../src/services.ts";
import { openFileDatabase } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { createStore } from "../../src/store/store.ts";
import { MIGRATIONS } from "../store/backends.ts";
import { forkHelper, startTarget, startUpstream, stop, cpuOf as targetCpu } from "./processes.ts";
import { figure, type Line, ratio, table } from "./table.ts";

const { values: args } = parseArgs({
  options: { runs: { type: "string", default: "400" }, only: { type: "string", default: "" } },
});
const RUNS = Number(args.runs);
/** The kinds take turns, so that what the machine does meanwhile meets all of them. */
const PORTIONS = 8;
const CALLS = 8;
/** To bare Hono. */
const REQUESTS = 4000;
/** Microseconds, on the machine on which bare Hono cost so many a request: by it they travel to this one. */
const TARGET_US = 400;
const REFERENCE_US = 119;

interface Kind {
  name: string;
  calls: number;
  tool: string;
  /** Another one for each call, since a model that repeats itself is stopped. */
  args(n: number): object;
  /** The work without us. */
  bare?(n: number): Promise<unknown>;
}

const folder = mkdtempSync(join(tmpdir(), "dragoman-bench-"));
const workspace = join(folder, "workspace");
mkdirSync(workspace);
for (let n = 0; n < CALLS; n++) writeFileSync(join(workspace, `${n}.txt`), "A line of it.\n".repeat(40));

const mcpServer = forkHelper("mcp-server.ts");
const [{ port }] = (await once(mcpServer, "message")) as [{ port: number }];
const mcpUrl = `http://127.0.0.1:${port}/mcp`;
const rpc = (n: number) => ({
  jsonrpc: "2.0",
  id: n,
  method: "tools/call",
  params: { name: "echo", arguments: { text: `${n}` } },
});

const ALL: Kind[] = [
  { name: "no call", calls: 0, tool: "", args: () => ({}) },
  {
    ...{ name: "read_file", calls: CALLS, tool: "read_file" },
    args: (n) => ({ path: `${n}.txt` }),
    bare: (n) => readFile(join(workspace, `${n}.txt`), "utf8"),
  },
  {
    ...{ name: "MCP tool over HTTP", calls: CALLS, tool: "bench__echo" },
    args: (n) => ({ text: `${n}` }),
    bare: async (n) =>
      (
        await fetch(mcpUrl, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(rpc(n)),
        })
      ).json(),
  },
  {
    ...{ name: "run_terminal_command", calls: CALLS, tool: "run_terminal_command" },
    args: (n) => ({ command: `true ${n}` }),
    bare: async (n) => {
      const child = spawn("/bin/sh", ["-c", `true ${n}`], { stdio: ["ignore", "pipe", "ignore"] });
      await once(child, "close");
    },
  },
];
const KINDS = ALL.filter(({ name, calls }) => calls === 0 || name.includes(args.only));

/** Makes one call of the kind's after the other, then says that it is done. */
let kind = KINDS[0] as Kind;
const model: ModelAdapter = {
  provider: "openai",
  models: async () => [],
  async *stream({ messages }): AsyncGenerator<ModelEvent> {
    const n = messages.filter(({ role }) => role === "tool").length;
    yield { type: "open", model: "scripted" };
    if (n < kind.calls) {
      const json = JSON.stringify(kind.args(n));
      yield { type: "part-open", index: 0, part: { kind: "call", id: `call_${n}`, name: kind.tool } };
      yield { type: "part-delta", index: 0, delta: json };
    } else {
      yield { type: "part-open", index: 0, part: { kind: "text" } };
      yield { type: "part-delta", index: 0, delta: "Done." };
    }
    yield { type: "part-close", index: 0 };
    yield {
      type: "done",
      stop: n < kind.calls ? "tool-calls" : "stop",
      usage: { input: 10, output: 5 },
    };
  },
};

const database = await openFileDatabase(join(folder, "dragoman.db"), createClient);
await migrate(database, MIGRATIONS);
const pending = new Set<Promise<unknown>>();
const files = createLocalWorkspace(workspace);
const terminal = createLocalTerminal(workspace);
const platform = {
  runtime: "node" as const,
  files: () => files,
  terminal: () => terminal,
  fetch: createLocalFetch({ allow: ["127.0.0.1"] }),
  background(work: Promise<unknown>) {
    const settled: Promise<unknown> = work.finally(() => pending.delete(settled));
    pending.add(settled);
  },
  now: () => new Date(),
  log: () => {},
  secret: "a-secret-of-the-bench-with-enough-characters",
};
const store = createStore({ ...platform, database });
const config = parseConfig(
  { OPENAI_API_KEY: "sk-operator", OPENAI_MODEL: "scripted", RATE_LIMIT: "0", APPROVAL: "auto" },
  { runtime: "node" },
);
const real = createModelRegistry({ providers: config.providers, limits: config.upstream, strictKeys: false });
const models: ModelRegistry = { choose: (wish) => real.choose(wish), adapter: async () => model };
const services = createServices(config, platform, store, { models });
const app = createApp(services);

async function post(path: string, body: object): Promise<{ tools?: { is_error: boolean; name: string }[] }> {
  const response = await app.request(`http://127.0.0.1:8000${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

/** Microseconds of CPU for each time. */
async function cpuOf(times: number, work: (n: number) => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let n = 0; n < times; n++) await work(n);
  // What was put off belongs to those who caused it.
  while (pending.size > 0) await Promise.all(pending);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}

async function run(): Promise<void> {
  const { tools = [] } = await post("/api/chat", { message: "Go on, please." });
  const right = tools.filter(({ name, is_error }) => name === kind.tool && !is_error);
  if (right.length !== kind.calls) throw new Error(`${kind.name}: ${JSON.stringify(tools)}`);
}

/** Microseconds of CPU that bare Hono takes to pass a plain request on. */
async function bareHono(): Promise<number> {
  const upstream = await startUpstream();
  const target = await startTarget("bare", "node", "pass-through.ts", { UPSTREAM: upstream.url });
  const body = JSON.stringify({
    model: "bench-1",
    stream: false,
    messages: [{ role: "user", content: "Hi." }],
  });
  const init = { method: "POST", headers: { "content-type": "application/json" }, body };
  const ask = async () => {
    const before = targetCpu(target);
    const some = async () => {
      for (let n = 0; n < REQUESTS / 16; n++)
        await (await fetch(`${target.url}/v1/chat/completions`, init)).text();
    };
    await Promise.all(Array.from({ length: 16 }, some));
    return (targetCpu(target) - before) / REQUESTS;
  };
  await ask();
  const cost = await ask();
  await stop(target.child);
  upstream.child.disconnect();
  return cost;
}

await post("/api/mcp/connect", { server_id: "bench", url: mcpUrl });
const whole = KINDS.map((): number[] => []);
const bare = KINDS.map((): number[] => []);
const each = Math.ceil(RUNS / PORTIONS);
// The first portion warms up.
for (let portion = 0; portion <= PORTIONS; portion++)
  for (const [index, next] of KINDS.entries()) {
    kind = next;
    const cpu = await cpuOf(each, run);
    const work = next.bare ? await cpuOf(each * CALLS, (n) => next.bare?.(n % CALLS) as Promise<unknown>) : 0;
    if (portion === 0) continue;
    whole[index]?.push(cpu);
    bare[index]?.push(work);
  }

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
const none = median(whole[0] ?? []);
const lines: Line[] = KINDS.slice(1).map(({ name, calls }, index) => {
  const call = (median(whole[index + 1] ?? []) - none) / calls;
  const work = median(bare[index + 1] ?? []);
  return [name, figure(call, "µs"), figure(work, "µs"), figure(call - work, "µs"), ratio(call, work)];
});
const head = ["a tool's round trip, CPU", "whole", "its bare work", "over it", "ratio"];
process.stdout.write(`${table(head, lines)}\n`);
const reference = await bareHono();
const target = (TARGET_US * reference) / REFERENCE_US;
process.stdout.write(
  `a run without a call: ${figure(none, "µs")}; bare Hono, a request: ${figure(reference, "µs")}; target: ${TARGET_US} µs where that is ${REFERENCE_US} µs, here ${figure(target, "µs")}\n`,
);
await services.close();
await store.close();
mcpServer.disconnect();
rmSync(folder, { recursive: true, force: true });
