/**
 * `npm run bench [-- --runtime bun] [--quick] [--requests 100000]`: what the service costs beside a direct call and a
 * bare Hono pass-through, all measured in one run on one machine. Only ratios travel to other machines.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  createLoad,
  forkHelper,
  memoryOf,
  type Runtime,
  startTarget,
  startUpstream,
  stop,
  type Target,
} from "./processes.ts";
import { FULL, measureDoor, measurePaced, type Paced, QUICK, type Row, wearOut } from "./scenarios.ts";
import { figure, type Line, ratio, table } from "./table.ts";

const { values: args } = parseArgs({
  options: {
    runtime: { type: "string", default: "node" },
    quick: { type: "boolean", default: false },
    requests: { type: "string" },
    "cpu-prof": { type: "string" },
  },
});
if (args.runtime !== "node" && args.runtime !== "bun") throw new Error("--runtime has to be node or bun.");
const runtime: Runtime = args.runtime;
const amounts = args.quick ? QUICK : FULL;
const wearRequests = Number(args.requests ?? (args.quick ? 4000 : 20_000));
const WEAR_PORTIONS = 4;
const IDLE_MS = 1500;

/** Microseconds a request and a chunk, MB idle. */
const TARGETS = {
  node: { request: 250, chunk: 10, idle: 100 },
  bun: { request: 100, chunk: 5, idle: 60 },
}[runtime];
/** What bare Hono cost on the machine for which those microseconds were set: by it they travel to this one. */
const REFERENCE = { node: { request: 119, chunk: 1.9 }, bun: { request: 27, chunk: 0.5 } }[runtime];
const ADDED_MS = { plain: 0.5, first: 1 };
const PACED = { share: 0.97, lateMs: 30 };
const START_MS = 200;

const say = (text: string) => process.stderr.write(`${text}\n`);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const scratch = mkdtempSync(join(tmpdir(), "dragoman-bench-"));
const upstream = await startUpstream();
const loadProcess = forkHelper("load.ts");
const load = createLoad(loadProcess);

const startService = (run: string) =>
  startTarget(
    "dragoman",
    runtime,
    `../../src/entry/${runtime}.ts`,
    {
      APPROVAL: "auto",
      DATA_DIR: join(scratch, run, "data"),
      WORKSPACE: join(scratch, run, "workspace"),
      OPENAI_BASE_URL: `${upstream.url}/v1`,
      ANTHROPIC_BASE_URL: upstream.url,
    },
    run === "main" && args["cpu-prof"] ? ["--cpu-prof", `--cpu-prof-dir=${args["cpu-prof"]}`] : [],
  );
const startBare = () => startTarget("bare", runtime, "pass-through.ts", { UPSTREAM: upstream.url });

/** Of several starts with warm caches; the first of all warms them. */
async function startTimes(start: () => Promise<Awaited<ReturnType<typeof startTarget>>>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < (args.quick ? 4 : 7); i++) {
    const { child, ms } = await start();
    if (i > 0) times.push(ms);
    await stop(child);
  }
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}

const started = performance.now();
say(`start-up …`);
const startMs = { bare: await startTimes(startBare), ours: await startTimes(() => startService("start")) };
const direct: Target = { name: "direct", url: upstream.url };
const bare = await startBare();
const ours = await startService("main");
await pause(IDLE_MS);
const idle = { bare: memoryOf(bare), ours: memoryOf(ours) };

const targets = [direct, bare, ours];
say("chat completions …");
const chat = await measureDoor("chat", targets, load, amounts);
say("messages …");
const messages = await measureDoor("messages", targets, load, { ...amounts, rounds: 1 });
say("256 paced streams …");
const paced = new Map<Target, Paced>();
for (const target of targets) paced.set(target, await measurePaced(target, load, amounts));
say(`${wearRequests} requests …`);
const worn: number[] = [memoryOf(ours)];
await wearOut(ours, load, wearRequests, WEAR_PORTIONS, () => worn.push(memoryOf(ours)));

for (const child of [ours.child, bare.child]) await stop(child);
for (const child of [upstream.child, loadProcess]) child.disconnect();
rmSync(scratch, { recursive: true, force: true });
process.stdout.write(`\n${report()}\n`);

function report(): string {
  const lines: Line[] = [
    ...doorLines("chat", chat, true),
    "rule",
    ...doorLines("messages", messages, false),
    "rule",
    ...pacedLines(),
    "rule",
    line(
      "start to healthy",
      [Number.NaN, startMs.bare, startMs.ours],
      "ms",
      `≤ ${START_MS} ms`,
      startMs.ours <= START_MS,
    ),
    line(
      "memory, idle",
      [Number.NaN, idle.bare, idle.ours],
      "MB",
      `≤ ${TARGETS.idle} MB`,
      idle.ours <= TARGETS.idle,
    ),
  ];
  const head = ["", "direct", "bare Hono", "dragoman", "to bare", "added to direct", "target", ""];
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  const [cpu] = cpus();
  return [
    `${runtime}, full agent with all tools; ${cpus().length} × ${cpu?.model ?? "CPU"}; ${seconds} s`,
    "",
    table(head, lines),
    "",
    `memory over ${wearRequests} more requests: ${worn.map((mb) => mb.toFixed(0)).join(" → ")} MB (target: no growth)`,
  ].join("\n");
}

function doorLines(door: string, rows: Map<Target, Row>, timed: boolean): Line[] {
  const of = (pick: (row: Row) => number) => targets.map((target) => pick(rows.get(target) as Row));
  const added = (values: number[]) => (values[2] ?? 0) - (values[0] ?? 0);
  const plain = of((row) => row.plain[0]);
  const first = of((row) => row.first[0]);
  const cpuPlain = of((row) => row.cpuPlain);
  const cpuStream = of((row) => row.cpuStream);
  const cpuChunk = of((row) => row.cpuChunk);
  return [
    line(
      `${door}: plain reply, p50`,
      plain,
      "ms",
      `+ ≤ ${ADDED_MS.plain} ms`,
      added(plain) <= ADDED_MS.plain,
    ),
    line(
      "  p99",
      of((row) => row.plain[1]),
      "ms",
    ),
    ...(timed
      ? [
          line(
            "  16 connections, p50",
            of((row) => row.plainBusy[0]),
            "ms",
          ),
          line(
            "  16 connections, p99",
            of((row) => row.plainBusy[1]),
            "ms",
          ),
        ]
      : []),
    line(
      `${door}: first token, p50`,
      first,
      "ms",
      `+ ≤ ${ADDED_MS.first} ms`,
      added(first) <= ADDED_MS.first,
    ),
    line(
      "  p99",
      of((row) => row.first[1]),
      "ms",
    ),
    cpuLine(`${door}: CPU a plain reply`, cpuPlain, "request"),
    cpuLine(`${door}: CPU a streamed reply`, cpuStream, "request"),
    cpuLine(`${door}: CPU a chunk`, cpuChunk, "chunk"),
  ];
}

/** Met in microseconds, or, on a slower machine, by the ratio that they were on the one they were set for. */
function cpuLine(name: string, values: number[], what: "request" | "chunk"): string[] {
  const [, bareValue = 1, value = Number.NaN] = values;
  const most = TARGETS[what] / REFERENCE[what];
  const cells = line(name, values, "µs", `≤ ${TARGETS[what]} µs, or ${most.toFixed(1)}×`);
  cells[7] = value <= TARGETS[what] ? "✓" : value / bareValue <= most ? "✓ (ratio)" : "✗";
  return cells;
}

function pacedLines(): Line[] {
  const of = (pick: (it: Paced) => number) => targets.map((target) => pick(paced.get(target) as Paced));
  const rate = of((it) => it.chunksPerSecond);
  const late = of((it) => it.late[1]);
  const share = (rate[2] ?? 0) / (rate[0] ?? 1);
  return [
    line(
      "256 paced streams: chunks/s",
      rate,
      "/s",
      `≥ ${PACED.share * 100} % of direct`,
      share >= PACED.share,
    ),
    line(
      "  delay, p50",
      of((it) => it.late[0]),
      "ms",
    ),
    line("  delay, p99", late, "ms", `< ${PACED.lateMs} ms`, (late[2] ?? 0) < PACED.lateMs),
    line(
      "  CPU a chunk",
      of((it) => it.cpuChunk),
      "µs",
    ),
  ];
}

/** `values`: direct, bare, ours. */
function line(name: string, values: number[], unit: string, target = "", met?: boolean): string[] {
  const [own = Number.NaN, bareValue = Number.NaN, value = Number.NaN] = values;
  const added =
    Number.isFinite(own) && unit === "ms"
      ? `+${figure(value - own, "ms")}`
      : unit === "/s"
        ? `${((value / own) * 100).toFixed(1)} %`
        : "";
  return [
    name,
    figure(own, unit),
    figure(bareValue, unit),
    figure(value, unit),
    ratio(value, bareValue),
    added,
    target,
    met === undefined ? "" : met ? "✓" : "✗",
  ];
}
