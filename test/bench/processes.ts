/** The processes of the benchmark, and what the system says of them: CPU time and memory, from /proc. */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bunPath } from "../runtimes.ts";
import type { Figures, Job } from "./load.ts";

/** Of /proc/<pid>/stat; fixed on Linux whatever the kernel's own clock is. */
const TICK_US = 10_000;
const HEALTH_POLL_MS = 1;
const HEALTH_WAIT_MS = 15_000;

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const COMPILED = join(tmpdir(), "dragoman-bench-compiled");

export interface Target {
  name: string;
  url: string;
  /** Absent for the upstream itself. */
  child?: ChildProcess;
}

/** Nothing that was started stays behind, however the benchmark ends. */
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** CPU time so far, microseconds, all threads. */
export function cpuOf({ child }: Target): number {
  const fields = statOf(child?.pid);
  return fields === null ? Number.NaN : (Number(fields[11]) + Number(fields[12])) * TICK_US;
}

/** Resident memory, MB. */
export function memoryOf({ child }: Target): number {
  try {
    const status = readFileSync(`/proc/${child?.pid}/status`, "utf8");
    return (Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024) / 1e6;
  } catch {
    return Number.NaN;
  }
}

/** The fields of /proc/<pid>/stat behind the process's name; null where there is no /proc. */
function statOf(pid: number | undefined): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

/** A helper of the benchmark itself, on this Node. */
export function forkHelper(file: string): ChildProcess {
  return fork(here(file), { stdio: ["ignore", "inherit", "inherit", "ipc"] });
}

export async function startUpstream(): Promise<{ url: string; child: ChildProcess }> {
  const child = forkHelper("upstream.ts");
  const [{ port }] = (await once(child, "message")) as [{ port: number }];
  return { url: `http://127.0.0.1:${port}`, child };
}

export function createLoad(child: ChildProcess): (job: Job) => Promise<Figures> {
  return async (job) => {
    child.send(job);
    const [{ figures, error }] = (await once(child, "message")) as [{ figures?: Figures; error?: string }];
    if (figures === undefined) throw new Error(`${job.url}: ${error}`);
    return figures;
  };
}

export type Runtime = "node" | "bun";

/** Starts a program and waits for its health. `ms` is the time from the start of the process to its first 200. */
export async function startTarget(
  name: string,
  runtime: Runtime,
  file: string,
  env: Record<string, string>,
  flags: string[] = [],
): Promise<Target & { child: ChildProcess; ms: number }> {
  const port = await freePort();
  const program = runtime === "node" ? process.execPath : bunPath();
  const { PATH = "", HOME = "" } = process.env;
  const begun = performance.now();
  const child = spawn(program, [...flags, here(file)], {
    stdio: ["ignore", "ignore", "pipe"],
    // Compiled modules are kept from start to start, as with npm start.
    env: { PATH, HOME, NODE_ENV: "production", NODE_COMPILE_CACHE: COMPILED, PORT: String(port), ...env },
  });
  running.add(child);
  let said = "";
  child.stderr?.on("data", (piece: Buffer) => {
    said = (said + piece).slice(-4000);
  });
  child.once("exit", (code, signal) => {
    if (running.has(child)) process.stderr.write(`${name} ended with ${code ?? signal}:\n${said}\n`);
  });
  while (!(await isHealthy(port))) {
    if (child.exitCode !== null || performance.now() - begun > HEALTH_WAIT_MS)
      throw new Error(`${name} did not start:\n${said}`);
    await new Promise((resolve) => setTimeout(resolve, HEALTH_POLL_MS));
  }
  return { name, url: `http://127.0.0.1:${port}`, child, ms: performance.now() - begun };
}

function isHealthy(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const sent = request({ port, host: "127.0.0.1", path: "/healthz", agent: false }, (reply) => {
      reply.resume();
      resolve(reply.statusCode === 200);
    });
    sent.on("error", () => resolve(false));
    sent.end();
  });
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  running.delete(child);
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("The system gave no port.");
  return address.port;
}
