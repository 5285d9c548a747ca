/**
 * R7, for `npm run test:load`: 1,000 open event streams, a tenth of them with readers that have stopped to read. Says
 * what the service takes of memory and how long /healthz takes meanwhile, and fails when it is more than promised.
 *
 * The provider and the readers are threads of their own, so that neither is measured.
 */

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, get, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const STREAMS = 1_000;
const PAUSED = STREAMS / 10;
/** How long every reply is. Milliseconds; beyond the time after which a stuck reader is dropped. */
const REPLY_MS = 60_000;
const PIECE_MS = 250;
const PIECE = "x".repeat(120);
/** What readers that do not read are sent, so that it fills all buffers on its way: thoughts, which no end repeats. */
const FLOOD = "y".repeat(64 * 1024);
const OPENED_AT_ONCE = 50;
const PROBE_MS = 20;

const RSS_LIMIT_MB = 400;
const HEALTH_LIMIT_MS = 100;

type Wire = { role: "upstream" } | { role: "readers"; url: string };

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Says a little and often; to a conversation that is about a flood, much. */
function upstream(): void {
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({
      ...{ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "load" },
      choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`;
  const small = chunk({ content: PIECE });
  const large = chunk({ reasoning_content: FLOOD });
  const server = createServer(async (incoming, response) => {
    let text = "";
    for await (const piece of incoming) text += piece;
    response.on("error", () => {});
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(chunk({ role: "assistant", content: "" }));
    const piece = text.includes("flood") ? large : small;
    const timer = setInterval(() => response.write(piece), PIECE_MS);
    setTimeout(() => {
      clearInterval(timer);
      response.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
    }, REPLY_MS);
  });
  server.listen(0, "127.0.0.1", () => parentPort?.postMessage((server.address() as AddressInfo).port));
}

/** Opens the streams, and reads all but the paused ones, which follow one run that says much. */
async function readers(url: string): Promise<void> {
  const ended = { whole: 0, broken: 0, dropped: 0 };
  const stuck: IncomingMessage[] = [];
  let flooded = "";
  const open = (method: "GET" | "POST", path: string, message: string, paused: boolean) =>
    new Promise<void>((resolve, reject) => {
      const headers = { "content-type": "application/json" };
      const outgoing = request(url + path, { method, headers, agent: false }, (response) => {
        if (message === "flood") flooded = String(response.headers["x-run-id"]);
        let last = "";
        response.on("data", (piece: Buffer) => {
          last = (last + piece.toString("latin1")).slice(-200);
        });
        response.on("error", () => {});
        response.on("close", () => {
          if (last.includes('"stop_reason":"stop"')) ended.whole++;
          else if (paused) ended.dropped++;
          else ended.broken++;
        });
        if (paused) stuck.push(response.pause());
        resolve();
      });
      outgoing.on("error", reject);
      if (method === "POST") outgoing.end(JSON.stringify({ message, stream: true }));
      else outgoing.end();
    });
  await open("POST", "/api/chat", "flood", false);
  for (let at = 0; at < PAUSED; at++) await open("GET", `/api/runs/${flooded}/events`, "", true);
  for (let at = PAUSED + 1; at < STREAMS; at += OPENED_AT_ONCE) {
    const count = Math.min(OPENED_AT_ONCE, STREAMS - at);
    await Promise.all(Array.from({ length: count }, () => open("POST", "/api/chat", "talk", false)));
  }
  parentPort?.postMessage(flooded);
  while (ended.whole + ended.broken < STREAMS - PAUSED) await pause(PIECE_MS);
  // What was cut off is seen when it is read.
  for (const response of stuck) response.resume();
  while (ended.whole + ended.broken + ended.dropped < STREAMS) await pause(PIECE_MS);
  parentPort?.postMessage(ended);
}

function message<T>(worker: Worker): Promise<T> {
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}

/** Milliseconds to an answer. */
function probe(url: string): Promise<number> {
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    get(`${url}/healthz`, (response) => {
      response.resume().on("end", () => resolve(performance.now() - begun));
    }).on("error", reject);
  });
}

function rssMb(pid: number): number {
  return Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" })) / 1024;
}

/** As `npm run start:node` does. */
function startService(port: number, folder: string): { pid: number; url: Promise<string>; kill(): void } {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const child = spawn("sh", ["-c", scripts["start:node"]], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      ...{ DATA_DIR: join(folder, "data"), WORKSPACE: join(folder, "workspace") },
      ...{ PORT: "0", LOG_LEVEL: "error", OPENAI_API_KEY: "sk-load" },
      OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const url = new Promise<string>((resolve, reject) => {
    let text = "";
    child.stderr.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      const found = /listens +(http:\S+)\n/.exec(text)?.[1];
      if (found) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`the service ended with ${code}: ${text}`)));
  });
  return { pid: child.pid as number, url, kill: () => child.kill("SIGKILL") };
}

async function measure(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-load-"));
  const worker = (data: Wire) => new Worker(new URL(import.meta.url), { workerData: data });
  const provider = worker({ role: "upstream" });
  const service = startService(await message<number>(provider), folder);
  try {
    const url = await service.url;
    const idleMb = rssMb(service.pid);
    const reading = worker({ role: "readers", url });
    const flooded = await message<string>(reading);
    const ending = message<Record<"whole" | "broken" | "dropped", number>>(reading);
    let over = false;
    ending.finally(() => {
      over = true;
    });
    const times: number[] = [];
    let mostMb = 0;
    while (!over) {
      times.push(await probe(url));
      if (times.length % 10 === 0) mostMb = Math.max(mostMb, rssMb(service.pid));
      await pause(PROBE_MS);
    }
    const ended = await ending;
    times.sort((a, b) => a - b);
    const at = (share: number) => Number((times[Math.floor(times.length * share)] as number).toFixed(1));
    const run = (await (await fetch(`${url}/api/runs/${flooded}`)).json()) as { status: string };
    const figures = {
      ...{ streams: STREAMS, paused: PAUSED, ...ended, run_of_the_paused: run.status },
      ...{ rss_idle_mb: Math.round(idleMb), rss_most_mb: Math.round(mostMb), probes: times.length },
      ...{ healthz_p50_ms: at(0.5), healthz_p99_ms: at(0.99), healthz_most_ms: at(1 - Number.EPSILON) },
    };
    process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
    const kept =
      mostMb < RSS_LIMIT_MB &&
      figures.healthz_p99_ms < HEALTH_LIMIT_MS &&
      ended.whole === STREAMS - PAUSED &&
      ended.dropped === PAUSED &&
      run.status === "completed";
    process.exitCode = kept ? 0 : 1;
  } finally {
    service.kill();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

if (isMainThread) {
  await measure();
  process.exit();
}
const wire = workerData as Wire | null;
if (wire?.role === "upstream") upstream();
else if (wire?.role === "readers") await readers(wire.url);
