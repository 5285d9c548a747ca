/** The life of the process on Node and Bun: settings, platform, listening, banner, and an end that leaves nothing open. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Config } from "../config.ts";
import { banner } from "./banner.ts";
import { atMost, createLocalPlatform, type Local } from "./local.ts";
import { captureConsole } from "./local-log.ts";
import type { Peers } from "./local-peers.ts";
import type { Handler, Service } from "./service.ts";

const ENV_FILE = fileURLToPath(new URL("../../.env", import.meta.url));
/** What remains of the grace for storing what is in memory, once requests have ended or been cut. Milliseconds. */
const CLOSE_MS = 2_000;

/** A server that listens. */
export interface Server {
  port: number;
  /** Takes no new connections; resolves when the last request has ended. */
  drain(): Promise<void>;
  /** Cuts what is left. */
  cut(): void;
}

export interface Runtime {
  name: "node" | "bun";
  service: Service;
  /** Rejects when the address cannot be had. */
  listen(handler: Handler, config: Config, peers: Peers): Promise<Server>;
}

/** Runs the service until it is told to stop. What prevents the start is one sentence on stderr and exit code 1. */
export async function startService(runtime: Runtime): Promise<void> {
  try {
    loadEnvFile();
    const config = runtime.service.parseConfig(process.env, {
      runtime: runtime.name,
      readFile: (path) => readFileSync(path, "utf8"),
    });
    const local = await createLocalPlatform(config, runtime.service);
    const handler = runtime.service.compose(config, local.platform, local.store);
    const server = await listen(runtime, config, local, handler);
    local.listens(server.port);
    captureConsole(local.platform.log);
    stopOnSignal(config, local, server, handler);
    surviveFaults(local);
    process.stderr.write(
      banner(config, urlOf(config.host, server.port), local.database, workspaceOf(config, local)),
    );
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}

/** The file beside package.json; what the environment has already, stays. */
function loadEnvFile(): void {
  try {
    process.loadEnvFile(ENV_FILE);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

async function listen(runtime: Runtime, config: Config, local: Local, handler: Handler): Promise<Server> {
  try {
    return await runtime.listen(handler, config, local.peers);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const where = `${config.host}:${config.port}`;
    await handler.close?.();
    await local.close(0);
    if (code === "EADDRINUSE")
      throw new Error(
        `Port ${config.port} is in use: stop what listens on ${where}, or set PORT to another one (0 for any).`,
      );
    if (code === "EACCES")
      throw new Error(`Listening on ${where} is not permitted: set PORT to one above 1023.`);
    if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
      throw new Error(`HOST=${config.host} is no address of this machine: set HOST to one that is.`);
    throw error;
  }
}

function urlOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function workspaceOf(config: Config, { platform }: Local): string {
  return config.terminal === "virtual" ? "virtual, in the database" : platform.files("local").root;
}

function stopOnSignal(config: Config, local: Local, server: Server, handler: Handler): void {
  let stopping = false;
  const stop = async (signal: string): Promise<void> => {
    // Who asks twice does not want to wait.
    if (stopping) process.exit(1);
    stopping = true;
    local.platform.log("info", "stopping", { signal });
    const ended = await atMost(server.drain(), config.shutdownGraceMs);
    if (!ended) local.platform.log("warning", "requests were cut off", { after_ms: config.shutdownGraceMs });
    server.cut();
    let code = 0;
    try {
      await handler.close?.();
      await local.close(CLOSE_MS);
    } catch (error) {
      local.platform.log("error", "the database did not close", { error: String(error) });
      code = 1;
    }
    local.flushLog();
    process.exit(code);
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

/** A promise that nobody waited for is a fault of ours, and no reason to take every other request down (R9). */
function surviveFaults({ platform }: Local): void {
  const report = (error: unknown): void =>
    platform.log("error", "unhandled failure", {
      error: String(error instanceof Error ? error.stack : error),
    });
  process.on("unhandledRejection", report);
  process.on("uncaughtException", report);
}
