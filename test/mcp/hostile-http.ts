/** The hostile server over HTTP, as a process of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const HOSTILE = fileURLToPath(new URL("hostile-server.ts", import.meta.url));

export interface HostileHttp {
  url: string;
  port: string;
  /** Ends it as kill -9 does. */
  stop(): Promise<void>;
}

/** `port`: where it was before; any unless given. */
export async function startHostileHttp(env: Record<string, string> = {}, port = "0"): Promise<HostileHttp> {
  const child = spawn(process.execPath, [HOSTILE, "http", port], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const taken = String(line).trim();
  return {
    url: `http://127.0.0.1:${taken}/mcp`,
    port: taken,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
