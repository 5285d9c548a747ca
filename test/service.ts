/**
 * The service as it is run, as a process of its own: Node and Bun with their entries, workerd with the bundle that is
 * deployed over a real libSQL server. One for a test file.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createClient } from "@libsql/client/web";
import { openRemoteDatabase } from "../src/store/database.ts";
import { createStore } from "../src/store/store.ts";
import { bunPath } from "./runtimes.ts";
import { hasSqld, startSqld } from "./sqld.ts";

export const RUNTIMES = ["node", "bun", "workerd"] as const;
export type Runtime = (typeof RUNTIMES)[number];

export interface Service {
  /** `http://127.0.0.1:<port>`, without a path. */
  url: string;
  /** A file of the agent's workspace. Rejects when there is none. */
  read(path: string): Promise<string>;
  /** What it has logged so far. */
  log(): string;
  stop(): Promise<void>;
}

export interface ServiceOptions {
  runtime: Runtime;
  /** Settings over those of a test: loopback, any port, folders of its own. */
  env?: Record<string, string>;
}

/** Whether this machine has what the runtime takes. */
export function canRun(runtime: Runtime): boolean {
  return runtime !== "workerd" || hasSqld;
}

export function startService({ runtime, env = {} }: ServiceOptions): Promise<Service> {
  return runtime === "workerd" ? startWorker(env) : startProcess(runtime, env);
}

const ROOT = fileURLToPath(new URL("../", import.meta.url));
/** Fit for AUTH=key on Workers, where everybody could call. */
const SECRET = "a-secret-of-the-tests-with-enough-characters";
/** The banner's line, and the word of workerd. */
const LISTENS = /listens\s+(http:\/\/\S+)\s/;
const LISTENS_WORKERD = /"listen".*?"port":(\d+)/;
const run = promisify(execFile);

async function startProcess(runtime: "node" | "bun", env: Record<string, string>): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), "dragoman-service-"));
  const workspace = join(folder, "workspace");
  const child = spawn(
    runtime === "node" ? process.execPath : bunPath(),
    [join(ROOT, `src/entry/${runtime}.ts`)],
    {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        PORT: "0",
        DATA_DIR: join(folder, "data"),
        WORKSPACE: workspace,
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const heard = listen(child, [child.stdout, child.stderr], LISTENS);
  const url = await heard.match;
  return {
    url,
    read: (path) => readFile(join(workspace, path), "utf8"),
    log: heard.log,
    async stop() {
      await end(child, "SIGTERM");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Collects what a process says, and what `pattern` captures in it. */
function listen(child: ChildProcess, outputs: (Readable | null)[], pattern: RegExp) {
  let log = "";
  const match = new Promise<string>((resolve, reject) => {
    const hear = (piece: string) => {
      log += piece;
      const found = pattern.exec(log)?.[1];
      if (found) resolve(found);
    };
    for (const output of outputs) output?.setEncoding("utf8").on("data", hear);
    child.once("error", reject);
    child.once("exit", (code) =>
      reject(new Error(`The service ended with ${code} before it listened:\n${log}`)),
    );
  });
  return { match, log: () => log };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}

/** The bundle that wrangler deploys, in workerd itself: wrangler's development server would not pass on that a client goes. */
async function startWorker(env: Record<string, string>): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), "dragoman-worker-"));
  await bundle(folder);
  const sqld = await startSqld();
  const vars = { LIBSQL_URL: sqld.url, AUTH: "key", SECRET_KEY: SECRET, ...env };
  await migrate(sqld.url);
  await writeFile(join(folder, "config.capnp"), await workerdConfig(vars));
  // The third descriptor is where it says which port it took.
  const child = spawn(workerd(), ["serve", "config.capnp", "--control-fd=3"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const heard = listen(child, [child.stdout, child.stderr, child.stdio[3] as Readable], LISTENS_WORKERD);
  const url = `http://127.0.0.1:${await heard.match}`;
  const database = openRemoteDatabase({ url: sqld.url }, createClient);
  const background = (work: Promise<unknown>) => void work.catch(() => {});
  const store = createStore({ database, log: () => {}, now: () => new Date(), background });
  return {
    url,
    async read(path) {
      const sql = "SELECT owner FROM files WHERE path = ?";
      const { rows } = await database.read.execute({ sql, args: [path] });
      if (rows.length !== 1) throw new Error(`${rows.length} owners have a file ${path}.`);
      const bytes = await store.files.read(String(rows[0]?.owner), path);
      return new TextDecoder().decode(bytes ?? undefined);
    },
    log: heard.log,
    async stop() {
      await end(child, "SIGKILL");
      await store.close();
      await sqld.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function bundle(folder: string): Promise<void> {
  const args = ["deploy", "--dry-run", "--outdir", folder];
  // Without this it waits for a server that counts its users.
  const env = { PATH: process.env.PATH, HOME: folder, WRANGLER_SEND_METRICS: "false" };
  await run(process.execPath, [join(ROOT, "node_modules/wrangler/bin/wrangler.js"), ...args], {
    cwd: ROOT,
    env,
  });
}

async function migrate(url: string): Promise<void> {
  const env = { PATH: process.env.PATH, LIBSQL_URL: url };
  await run(process.execPath, [join(ROOT, "src/entry/migrate.ts")], { cwd: tmpdir(), env });
}

async function workerdConfig(vars: Record<string, string>): Promise<string> {
  const toml = await readFile(join(ROOT, "wrangler.toml"), "utf8");
  const date = /^compatibility_date = (".*")$/m.exec(toml)?.[1];
  const flags = /^compatibility_flags = (\[.*\])$/m.exec(toml)?.[1] ?? "[]";
  const bindings = Object.entries(vars).map(
    ([name, value]) => `(name = "${name}", text = ${JSON.stringify(value)})`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = ${date},
  compatibilityFlags = ${flags},
  bindings = [${bindings.join(", ")}],
);
`;
}

/** The binary of this platform, where wrangler finds it. */
function workerd(): string {
  const fromWrangler = createRequire(createRequire(import.meta.url).resolve("wrangler"));
  return (fromWrangler("workerd") as { default: string }).default;
}
