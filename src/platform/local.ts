/** The platform of Node and Bun: a database file or server, the host's files and shell, and a process that is ours. */
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { statfs } from "node:fs/promises";
import { homedir } from "node:os";
import { join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { Config } from "../config.ts";
import type { GuardedFetch } from "../core/fetch.ts";
import type { Platform, UpstreamFetch } from "../core/platform.ts";
import { createRedaction } from "../core/redaction.ts";
import type { Store } from "../core/store.ts";
import { type CommandMark, createCommandMark } from "./local-commands.ts";
import { digest } from "./local-digest.ts";
import type { LocalFetchOptions } from "./local-fetch.ts";
import { createReadHtml } from "./local-html.ts";
import { createLineWriter } from "./local-log.ts";
import { createStdioConnector } from "./local-mcp.ts";
import { createReadPdf } from "./local-pdf.ts";
import { createPeers, type Peers } from "./local-peers.ts";
import { createLocalTerminal, type Sandbox } from "./local-terminal.ts";
import { createLocalVoice } from "./local-voice.ts";
import { createLocalWatch } from "./local-watch.ts";
import { createLocalWorkspace } from "./local-workspace.ts";
import { createLog } from "./log.ts";
import type { LocalStoreHost, Service, StoreHost } from "./service.ts";
import { createVirtualTerminal } from "./virtual-terminal.ts";
import { createVirtualWorkspace } from "./virtual-workspace.ts";

const MIGRATIONS = fileURLToPath(new URL("../../migrations/", import.meta.url));
/** The settings beside package.json. */
const ENV_FILE = fileURLToPath(new URL("../../.env", import.meta.url));
const OWNER_ONLY = 0o700;
const SECRET_BYTES = 32;
/** With less than this free the service says that it is not ready. */
const LEAST_FREE_BYTES = 32 * 1024 * 1024;

export interface Local {
  platform: Platform;
  store: Store;
  /** Where the rows are, for people. */
  database: string;
  /** Tells the agent's own commands from other clients. */
  peers: Peers;
  /** The port of this service, which its own tools stay away from (P4). Told when it is known. */
  listens(port: number): void;
  /** Waits for background work, as long as `graceMs`, then closes the database. */
  close(graceMs: number): Promise<void>;
  /** Writes the log lines that still wait. */
  flushLog(): void;
}

/** Makes the folders, opens and migrates the database. Throws an Error with a sentence for what stands in the way. */
export async function createLocalPlatform(config: Config, service: Service): Promise<Local> {
  const dataDir = makeFolder("DATA_DIR", config.dataDir, OWNER_ONLY);
  const secret = config.access.secretKey ?? serverSecret(join(dataDir, "secret.key"));
  const writer = createLineWriter();
  const redaction = createRedaction();
  const log = createLog({
    level: config.log.level,
    format: config.log.format ?? (process.stderr.isTTY ? "pretty" : "json"),
    secrets: [...service.secretsOf(config), secret],
    redaction,
    write: writer.write,
  });
  const pending = new Set<Promise<unknown>>();
  const now = () => new Date();
  const background = (work: Promise<unknown>): void => {
    const settled = work
      .catch((error: unknown) => log("error", "background work failed", { error: String(error) }))
      .finally(() => pending.delete(settled));
    pending.add(settled);
  };
  const { store, database } = await openStore(config, dataDir, service, { log, now, background });
  let { port } = config;
  const mark = createCommandMark();
  const agentHome =
    config.terminal === "virtual" ? virtualHome(store) : await hostHome(config, dataDir, mark);
  return {
    platform: {
      ...{ runtime: config.runtime, background, now, log, redaction, secret },
      ...agentHome,
      digest,
      disk: () => checkRoom(dataDir),
      pdf: createReadPdf(),
      html: createReadHtml(),
      voice: createLocalVoice(),
      mcpStdio: stdioConnector(config, agentHome, mark),
      upstream: config.runtime === "node" ? lateUpstream() : undefined,
      fetch: lateFetch({ allow: config.fetch.allow, ownPort: () => port }),
    },
    store,
    database,
    peers: createPeers(mark),
    listens(on) {
      port = on;
    },
    async close(graceMs) {
      await atMost(Promise.all(pending), graceMs);
      await store.close();
    },
    flushLog: writer.flush,
  };
}

/** Loaded when it is first used: a start does without it. */
function lateFetch(options: LocalFetchOptions): GuardedFetch {
  let loading: Promise<GuardedFetch> | undefined;
  return async (url, init) => {
    loading ??= import("./local-fetch.ts").then(({ createLocalFetch }) => createLocalFetch(options));
    return (await loading)(url, init);
  };
}

function lateUpstream(): UpstreamFetch {
  let loading: Promise<UpstreamFetch> | undefined;
  return async (input, init) => {
    loading ??= import("./local-upstream.ts").then(({ createUpstreamFetch }) => createUpstreamFetch());
    return (await loading)(input, init);
  };
}

type AgentHome = Pick<Platform, "files" | "terminal" | "watch">;

async function hostHome(config: Config, dataDir: string, mark: CommandMark): Promise<AgentHome> {
  const root = makeFolder("WORKSPACE", config.workspace);
  const inside = relative(root, dataDir);
  if (inside === "" || !(inside === ".." || inside.startsWith(`..${sep}`)))
    throw new Error(
      `DATA_DIR (${dataDir}) lies inside WORKSPACE (${root}), where the agent could change its own database. Move one of them.`,
    );
  const files = createLocalWorkspace(root);
  const watch = createLocalWatch(root);
  if (config.terminal === "off") return { files: () => files, watch };
  const sandbox = config.terminal === "sandbox" ? await sandboxOf(config, root, dataDir) : undefined;
  const terminal = createLocalTerminal(root, sandbox ? { mark, sandbox } : { mark });
  return { files: () => files, terminal: () => terminal, watch };
}

/** Programs start in the workspace, where there is one on this machine. */
function stdioConnector(config: Config, { files }: AgentHome, mark: CommandMark) {
  if (!config.mcp.stdio || process.platform === "win32") return undefined;
  const cwd = config.terminal === "virtual" ? homedir() : files("local").root;
  return createStdioConnector({ mark, cwd });
}

async function sandboxOf(config: Config, root: string, dataDir: string): Promise<Sandbox> {
  const { createSandbox } = await import("./local-sandbox.ts");
  const rules = config.approval.source === undefined ? [] : [resolve(config.approval.source)];
  const secrets = [dataDir, resolve(config.dataDir), ENV_FILE];
  return createSandbox({ root, secrets, fixed: rules, domains: config.sandboxNetwork });
}

function virtualHome(store: Store): AgentHome {
  return {
    files: (owner) => createVirtualWorkspace(store.files, owner),
    terminal: (owner) => createVirtualTerminal(store.files, owner),
  };
}

/** The native client is loaded only where there is a file, and none of the clients before it is known which one. */
async function openStore(
  config: Config,
  dataDir: string,
  service: Service,
  host: Omit<StoreHost, "createClient">,
): Promise<{ store: Store; database: string }> {
  const { url } = config.database;
  const file = join(dataDir, "dragoman.db");
  const { createClient } = await (url === undefined
    ? import("./local-database.ts")
    : import("@libsql/client/web"));
  const database = url === undefined ? file : new URL(url).host;
  try {
    const store = await service.openLocalStore(config, {
      ...host,
      createClient,
      file,
      migrations: readMigrations(),
    });
    return { store, database };
  } catch (cause) {
    throw new Error(`The database ${database} cannot be used: ${reasonOf(cause)}`, { cause });
  }
}

async function checkRoom(folder: string): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (free < LEAST_FREE_BYTES) throw new Error(`only ${free} bytes are free where ${folder} is`);
}

function readMigrations(): LocalStoreHost["migrations"] {
  const files = readdirSync(MIGRATIONS).filter((file) => file.endsWith(".sql"));
  return files.map((file) => ({
    name: file.slice(0, -4),
    sql: readFileSync(join(MIGRATIONS, file), "utf8"),
  }));
}

/** The folder's real path. */
function makeFolder(setting: string, path: string, mode?: number): string {
  try {
    mkdirSync(path, { recursive: true, mode });
    return realpathSync(path);
  } catch (cause) {
    throw new Error(`${setting}=${path} cannot be used as a folder (${reasonOf(cause)}).`, { cause });
  }
}

/** The secret in a file that only its owner can read. Made whole or not at all, and by one of many processes. */
function serverSecret(path: string): string {
  try {
    if (!existsSync(path)) {
      const draft = `${path}.${randomBytes(6).toString("hex")}`;
      writeFileSync(draft, `${randomBytes(SECRET_BYTES).toString("hex")}\n`, { mode: 0o600, flag: "wx" });
      try {
        linkSync(draft, path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      } finally {
        rmSync(draft);
      }
    }
    chmodSync(path, 0o600);
    const secret = readFileSync(path, "utf8").trim();
    if (secret.length < SECRET_BYTES)
      throw new Error("it is too short; delete it, and what it protects is lost");
    return secret;
  } catch (cause) {
    throw new Error(`The secret key ${resolve(path)} cannot be used: ${reasonOf(cause)}`, { cause });
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return /^[A-Z0-9_]+$/.test(code ?? "") ? String(code) : (message ?? String(error));
}

export async function atMost(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const done = await Promise.race([work.then(() => true), late]);
  clearTimeout(timer);
  return done;
}
