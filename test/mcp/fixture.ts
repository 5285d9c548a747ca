/** Connections over a store, a fetch and programs that are real, with the hostile server beside them. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createKeyVault } from "../../src/agent/key-vault.ts";
import type { ResultPart } from "../../src/core/message.ts";
import type { Log } from "../../src/core/platform.ts";
import { createRedaction } from "../../src/core/redaction.ts";
import type { Store } from "../../src/core/store.ts";
import type { Tool, ToolContext, ToolOutput } from "../../src/core/tool.ts";
import { McpConnections, type McpHost } from "../../src/mcp/connections.ts";
import { createCommandMark } from "../../src/platform/local-commands.ts";
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { createStdioConnector } from "../../src/platform/local-mcp.ts";
import { noFetch } from "../no-fetch.ts";
import { type Backend, createFileBackend, openStore } from "../store/backends.ts";
import { startHostileHttp } from "./hostile-http.ts";

const HOSTILE = fileURLToPath(new URL("hostile-server.ts", import.meta.url));
/** One for all, since each has to end its programs with the process. */
const connector = createStdioConnector({ mark: createCommandMark(), cwd: tmpdir() });
const SECRET = "a-secret-of-the-tests-with-enough-characters";

export interface TestMcp {
  mcp: McpConnections;
  store: Store;
  backend: Backend;
  logged: Parameters<Log>[];
  folder: string;
  /** Lines that the hostile server has written: one for each call that it has run. */
  counted(): string[];
  /** What connects the hostile server over stdio. */
  stdio(more?: Record<string, unknown>): Record<string, unknown> & { name: string };
  /** The hostile server over HTTP, at the same port whenever it is started. */
  http(): Promise<HttpServer>;
  close(): Promise<void>;
}

export interface HttpServer {
  url: string;
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface TestMcpOptions {
  runtime?: "node" | "workerd";
  host?: Partial<McpHost>;
  /** Another process over the same database. */
  beside?: TestMcp;
}

export async function createTestMcp({
  runtime = "node",
  host,
  beside,
}: TestMcpOptions = {}): Promise<TestMcp> {
  const folder = beside?.folder ?? (await mkdtemp(join(tmpdir(), "dragoman-mcp-")));
  const backend = beside?.backend ?? (await createFileBackend());
  const store = await openStore(backend);
  const countFile = join(folder, "count");
  const logged: Parameters<Log>[] = [];
  const pending = new Set<Promise<unknown>>();
  const servers: HttpServer[] = [];
  const fetch = createLocalFetch();
  const mcp = new McpConnections({
    store: store.mcp,
    authorizations: { fetchFor: async () => fetch, configure: async () => {} },
    platform: {
      runtime,
      fetch,
      mcpStdio: connector,
      log: (...entry) => void logged.push(entry),
      background(work) {
        const settled: Promise<unknown> = work
          .catch((error: unknown) =>
            logged.push(["error", "background work failed", { error: String(error) }]),
          )
          .finally(() => pending.delete(settled));
        pending.add(settled);
      },
      redaction: createRedaction(),
    },
    vault: createKeyVault(SECRET, "MCP servers"),
    secret: SECRET,
    trusted: true,
    stdioRefusal: undefined,
    connectMs: 10_000,
    callMs: 2_000,
    ...host,
  });
  return {
    ...{ mcp, store, backend, logged, folder },
    counted: () => (existsSync(countFile) ? readFileSync(countFile, "utf8").trim().split("\n") : []),
    stdio: (more = {}) => ({
      name: "Hostile",
      command: process.execPath,
      args: [HOSTILE, "stdio"],
      env: { COUNT_FILE: countFile },
      ...more,
    }),
    async http() {
      const env = { COUNT_FILE: countFile };
      let running = await startHostileHttp(env);
      const { url, port } = running;
      const server = {
        url,
        kill: () => running.stop(),
        async start() {
          running = await startHostileHttp(env, port);
        },
      };
      servers.push(server);
      return server;
    },
    async close() {
      await mcp.close();
      while (pending.size > 0) await Promise.all(pending);
      for (const server of servers) await server.kill();
      await store.close();
      if (beside) return;
      await backend.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function toolsOf({ mcp }: TestMcp, owner = "ada"): Promise<readonly Tool[]> {
  return mcp.of(owner);
}

export interface CallResult {
  text: string;
  failed: boolean;
  content: ResultPart[];
  progress: string;
}

/** Calls a tool under the name that it has here, as a run does. */
export async function call(
  test: TestMcp,
  name: string,
  args: Record<string, unknown> = {},
  options: { owner?: string; signal?: AbortSignal } = {},
): Promise<CallResult> {
  const { owner = "ada" } = options;
  const tool = (await toolsOf(test, owner)).find((one) => one.name === name);
  if (!tool) throw new Error(`There is no tool ${name}.`);
  return callTool(tool, args, options);
}

export async function callTool(
  tool: Tool,
  args: Record<string, unknown>,
  { owner = "ada", signal }: { owner?: string; signal?: AbortSignal } = {},
): Promise<CallResult> {
  let progress = "";
  const turn = new AbortController();
  const context: ToolContext = {
    owner,
    runId: "run_1",
    callId: "call_1",
    signal: signal ?? turn.signal,
    files: undefined as unknown as ToolContext["files"],
    fetch: noFetch,
    progress: (delta) => {
      progress += delta;
    },
  };
  try {
    const output: ToolOutput = await tool.run(args, context);
    const text = output.content
      .map((part) => (part.type === "text" ? part.text : `<${part.type}>`))
      .join("\n");
    return { text, failed: output.failed === true, content: output.content, progress };
  } finally {
    // As the agent does when the calls of a turn are through.
    turn.abort();
  }
}

/** Looks again until it holds; what it waits for are other processes. */
export async function until(holds: () => boolean | Promise<boolean>, ms = 5_000): Promise<void> {
  const deadline = performance.now() + ms;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error("It did not come to pass.");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
