/** What the agent has started when its service is killed, without a chance to clean up. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startUpstream, type UpstreamServer } from "../upstream-server.ts";
import { obedient } from "./obedient-model.ts";
import { type ServiceProcess, startProcess } from "./service-process.ts";

const WAIT = { timeout: 5_000, interval: 20 };

describe.runIf(process.platform !== "win32").each(["node", "bun"] as const)("killed on %s", (runtime) => {
  let upstream: UpstreamServer;
  beforeAll(async () => {
    upstream = await startUpstream(obedient());
  });
  afterAll(() => upstream[Symbol.asyncDispose]());

  function start(): ServiceProcess {
    const own = { OPENAI_BASE_URL: `${upstream.url}/v1`, OPENAI_API_KEY: "sk-operator", APPROVAL: "auto" };
    return startProcess(runtime, own);
  }

  async function kill({ child, exited }: ServiceProcess): Promise<void> {
    child.kill("SIGKILL");
    await exited;
  }

  async function post(service: ServiceProcess, path: string, body: object): Promise<unknown> {
    const response = await fetch((await service.url) + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return response.json();
  }
  /** Has the agent make a call; not awaited where the command does not end. */
  const agentCalls = (service: ServiceProcess, args: object) =>
    post(service, "/api/chat", { message: JSON.stringify(args), provider: "openai" });
  /** A program that does not notice that nobody writes to it any more. */
  const connect = (service: ServiceProcess, server: object) => post(service, "/api/mcp/connect", server);

  /** The process id that a command has written to a file. */
  async function pidIn({ folder }: ServiceProcess, name: string): Promise<number> {
    const file = join(folder, "workspace", name);
    return vi.waitFor(() => {
      const pid = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
      expect(pid).toBeGreaterThan(1);
      return pid;
    }, WAIT);
  }

  test("its commands end with it, and another service's go on", { timeout: 20_000 }, async () => {
    const [killed, other] = [start(), start()];
    try {
      const leaves =
        process.platform === "linux" ? "setsid sleep 300 & echo $! > left" : "echo 2147483000 > left";
      agentCalls(killed, { command: `echo $$ > foreground; ${leaves}; sleep 300` }).catch(() => {});
      const background = "trap '' TERM HUP; sleep 300 & echo $! > child; echo $$ > background; wait";
      await agentCalls(killed, { command: background, background: true });
      await agentCalls(killed, { command: "echo $$ > ended" });
      await agentCalls(other, { command: "echo $$ > others; sleep 300", background: true });
      const deaf = `require("fs").writeFileSync("server", String(process.pid)); setInterval(() => {}, 1e6)`;
      connect(killed, { name: "Deaf", command: process.execPath, args: ["-e", deaf] }).catch(() => {});
      const names = ["foreground", "left", "child", "background", "server"];
      const pids = await Promise.all(names.map((name) => pidIn(killed, name)));
      const others = await pidIn(other, "others");

      await kill(killed);
      const ended = () => names.filter((_, i) => hasEnded(pids[i] as number));
      await vi.waitFor(() => expect(ended()).toEqual(names), WAIT);
      expect(hasEnded(others)).toBe(false);

      await kill(other);
      await vi.waitFor(() => expect(hasEnded(others)).toBe(true), WAIT);
    } finally {
      await Promise.all([kill(killed), kill(other)]);
    }
  });
});

/** A killed process stays in the table until its parent has looked at it. */
function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return existsSync("/proc") && /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}
