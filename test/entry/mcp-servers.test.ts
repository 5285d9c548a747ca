/** P4, K3: programs that are MCP servers, and the service that has started them. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ServiceProcess, startProcess, stop } from "./service-process.ts";

const SECRET = "sk-operator-0123456789abcdef";

describe.runIf(process.platform === "linux").each(["node", "bun"] as const)("on %s", (runtime) => {
  let service: ServiceProcess;
  let url: string;
  beforeAll(async () => {
    service = startProcess(runtime, { OPENAI_API_KEY: SECRET });
    url = await service.url;
  });
  afterAll(() => stop(service));

  /** Connects a program that is no MCP server at all; resolves with its last words. */
  async function run(script: string): Promise<string> {
    const response = await fetch(`${url}/api/mcp/connect`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "Program", command: process.execPath, args: ["-e", script] }),
    });
    expect(response.status).toBe(502);
    return ((await response.json()) as { detail: string }).detail;
  }

  test("P4: a program cannot call the service, nor can its children", async () => {
    const ask = `fetch("${url}/api/sessions").then((r) => { console.error("status", r.status); process.exit(1); });`;
    expect(await run(ask)).toContain("status 403");
    const child = `const { spawnSync } = require("node:child_process");
      const { stdout } = spawnSync(process.execPath, ["-e", ${JSON.stringify(ask.replace("console.error", "console.log"))}], { env: {}, detached: true });
      console.error(String(stdout)); process.exit(1);`;
    expect(await run(child)).toContain("status 403");
    expect((await fetch(`${url}/api/sessions`)).status).toBe(200);
  });

  test("K3: it sees no secret of the service", async () => {
    const words = await run("console.error(JSON.stringify(process.env)); process.exit(1);");
    expect(words).toContain("PATH");
    expect(words).not.toContain(SECRET);
    expect(words).not.toContain("DATA_DIR");
  });

  test("it ends with the service, and with all that it has started", async () => {
    const words = await run(`const { spawn } = require("node:child_process");
      const child = spawn("sleep", ["1000"], { stdio: "ignore" });
      console.error("pid " + child.pid); setTimeout(() => process.exit(1), 50);`);
    const pid = Number(/pid (\d+)/.exec(words)?.[1]);
    await expect.poll(() => isAlive(pid)).toBe(false);
  });
});

/** A process that has ended may stay in the table until somebody asks how. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
  } catch {
    return false;
  }
}
