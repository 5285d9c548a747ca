/**
 * `node test/bench/watchdogs-service.ts [--runtime node|bun] [--watchdogs 1000] [--seconds 120]`: CPU of the real service
 * with watchdogs on urls of a local server, their requests included, beside the same service without any.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";
import { type Runtime, startService } from "../service.ts";
import { figure, type Line, table } from "./table.ts";

const { values: args } = parseArgs({
  options: {
    runtime: { type: "string", default: "node" },
    watchdogs: { type: "string", default: "1000" },
    seconds: { type: "string", default: "120" },
  },
});
const WATCHDOGS = Number(args.watchdogs);
const SECONDS = Number(args.seconds);
/** Until each has looked once, and what is compiled by then. Milliseconds. */
const SETTLED_MS = 65_000;
const MADE_AT_ONCE = 20;
/** Of a tick of the system's clock. Milliseconds. */
const CLOCK_TICK_MS = 10;

const PAGE = "All is well. ".repeat(100);
let asked = 0;
const pages = createServer((_, response) => {
  asked += 1;
  response.end(PAGE);
}).listen(0, "127.0.0.1");
await once(pages, "listening");
const host = `127.0.0.1:${(pages.address() as AddressInfo).port}`;

const env = { OPENAI_API_KEY: "sk-operator", FETCH_ALLOW: host };
const service = await startService({ runtime: args.runtime as Runtime, env });
const pid = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ")[0];
function cpuMs(): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_MS;
}
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function shareOf(seconds: number): Promise<number> {
  const before = cpuMs();
  const since = performance.now();
  await pause(seconds * 1_000);
  return ((cpuMs() - before) / (performance.now() - since)) * 100;
}

async function make(n: number): Promise<void> {
  const body = JSON.stringify({ action: `look ${n}`, url: `http://${host}/${n}` });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${service.url}/api/watchdog`, { method: "POST", headers, body });
  if (response.status !== 201) throw new Error(await response.text());
  await response.body?.cancel();
}

await pause(5_000);
const without = await shareOf(SECONDS / 4);
for (let from = 0; from < WATCHDOGS; from += MADE_AT_ONCE)
  await Promise.all(Array.from({ length: MADE_AT_ONCE }, (_, i) => make(from + i)));
await pause(SETTLED_MS);
asked = 0;
const withAll = await shareOf(SECONDS);
const lines: Line[] = [
  ["without any: share of a core", figure(without, "%")],
  [`with ${WATCHDOGS}, their requests included`, figure(withAll, "%")],
  ["requests in a minute", figure((asked / SECONDS) * 60)],
  [
    "CPU of a look, its request included",
    figure((((withAll - without) / 100) * SECONDS * 1_000_000) / asked, "µs"),
  ],
];
await service.stop();
pages.close();
pages.closeAllConnections();
process.stdout.write(`${table([args.runtime, "measured"], lines)}\n`);
