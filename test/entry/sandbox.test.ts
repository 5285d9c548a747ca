/** TERMINAL=sandbox as people run it: the whole service on Node and Bun, or the sentence that says what is missing. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startUpstream, type UpstreamServer } from "../upstream-server.ts";
import { obedient } from "./obedient-model.ts";
import { type ServiceProcess, startProcess, stop } from "./service-process.ts";

const RUNTIMES = ["node", "bun"] as const;

test.each(RUNTIMES)(
  "on %s, a system without the programs is told which, and the service does not start",
  async (runtime) => {
    const service = startProcess(runtime, { TERMINAL: "sandbox", PATH: "/nowhere" });
    expect(await service.exited).toBe(1);
    expect(service.stderr()).toMatch(
      process.platform === "linux"
        ? /^TERMINAL=sandbox lacks .*bubblewrap.*apt-get install/
        : /^TERMINAL=sandbox /,
    );
  },
);

/** Whether this system has what the sandbox needs: the service itself says so. */
async function isPossible(): Promise<boolean> {
  const service = startProcess("node", { TERMINAL: "sandbox" });
  const possible = await service.url.then(
    () => true,
    () => false,
  );
  if (possible) await stop(service);
  return possible;
}

describe.runIf(process.platform === "linux" && (await isPossible())).each(RUNTIMES)(
  "with the programs, on %s",
  (runtime) => {
    let upstream: UpstreamServer;
    let service: ServiceProcess;
    let url: string;
    beforeAll(async () => {
      upstream = await startUpstream(obedient());
      service = startProcess(runtime, {
        OPENAI_BASE_URL: `${upstream.url}/v1`,
        OPENAI_API_KEY: "sk-canary-4711",
        APPROVAL: "auto",
        TERMINAL: "sandbox",
      });
      url = await service.url;
    });
    afterAll(async () => {
      expect(await stop(service)).toBe(0);
      await upstream[Symbol.asyncDispose]();
    });

    async function agentRuns(command: string): Promise<string> {
      const response = await fetch(`${url}/api/chat`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ message: command, provider: "openai" }),
      });
      const body = (await response.json()) as { tools: { output: string }[] };
      return body.tools[0]?.output ?? JSON.stringify(body);
    }

    test("commands work in the workspace", async () => {
      expect(await agentRuns("mkdir -p src && cd src && echo text > file && cat file")).toBe(
        "Exit code: 0\nWorking directory: src\ntext\n",
      );
      expect(readFileSync(join(service.folder, "workspace/src/file"), "utf8")).toBe("text\n");
    });

    test("K2, K3: the service's secrets are out of reach: key file, database, environment", async () => {
      const data = join(service.folder, "data");
      const secret = readFileSync(join(data, "secret.key"), "utf8").trim();
      const { pid } = service.child;
      expect(readFileSync(`/proc/${pid}/environ`, "latin1")).toContain("sk-canary-4711");
      const output = await agentRuns(
        `cat ${data}/* /proc/${pid}/environ /proc/*/environ; grep -ar canary /proc/*/environ /proc/*/cmdline; ls ${data}; echo end`,
      );
      expect(output).toContain("end\n");
      expect(output).not.toContain(secret);
      expect(output).not.toContain("sk-canary");
      expect(output).not.toContain("dragoman.db");
    });

    test("P4: the service's port is not there", async () => {
      const { port } = new URL(url);
      for (const host of ["127.0.0.1", "localhost"])
        expect(await agentRuns(`exec 3<>/dev/tcp/${host}/${port} && echo reached`)).not.toContain(
          "reached\n",
        );
      expect(await agentRuns(`curl -s -m 10 --noproxy '' ${url}/api/sessions`)).not.toContain('"sessions"');
      expect(await agentRuns(`curl -s -m 10 --noproxy '' ${url}/healthz`)).not.toContain('"status":"ok"');
    });
  },
);
