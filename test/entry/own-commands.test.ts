/** P4: what the agent starts in the host's terminal, and how the service's own port answers it. */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startUpstream, type UpstreamServer } from "../upstream-server.ts";
import { obedient } from "./obedient-model.ts";
import { type ServiceProcess, startProcess, stop } from "./service-process.ts";

const execute = promisify(execFile);

const REFUSED = "403";

describe.runIf(process.platform === "linux").each(["node", "bun"] as const)("on %s", (runtime) => {
  let upstream: UpstreamServer;
  let service: ServiceProcess;
  let url: string;

  beforeAll(async () => {
    upstream = await startUpstream(obedient());
    service = startProcess(runtime, {
      OPENAI_BASE_URL: `${upstream.url}/v1`,
      OPENAI_API_KEY: "sk-operator",
      APPROVAL: "auto",
    });
    url = await service.url;
  });
  afterAll(async () => {
    await stop(service);
    await upstream[Symbol.asyncDispose]();
  });

  /** Has the agent run a command; resolves with its output. */
  async function agentRuns(command: string): Promise<string> {
    const response = await fetch(`${url}/api/chat`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ message: command, provider: "openai" }),
    });
    const body = (await response.json()) as { reply: string; tools: { output: string }[] };
    expect(body, JSON.stringify(body)).toMatchObject({ reply: "done", tools: [{ is_error: false }] });
    return (body.tools[0] as { output: string }).output;
  }

  const status = (path: string) => `curl -s -m 20 -o /dev/null -w '%{http_code}\\n' ${url}${path}`;

  test("its curl is refused with a sentence, except where it only asks whether the service is well", async () => {
    const output = await agentRuns(
      `curl -s -m 20 ${url}/api/sessions; ${status("/healthz")}; ${status("/readyz")}`,
    );
    expect(output).toContain("an agent may not call the service it runs in");
    expect(output).toMatch(/"status":403.*\n?200\n200/);
    expect(await agentRuns(status("/v1/models"))).toContain(REFUSED);
    expect(await agentRuns(status("/nowhere"))).toContain(REFUSED);
  });

  test("so is an approval, from any program", async () => {
    const post = `${url}/api/chat/approve`;
    writeFileSync(
      join(service.folder, "workspace", "client.mjs"),
      `const { status } = await fetch("${post}", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });\nconsole.log(status);\n`,
    );
    expect(await agentRuns(`'${process.execPath}' client.mjs`)).toContain(REFUSED);
    const { port } = new URL(url);
    const head = `GET /api/sessions HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n`;
    expect(
      await agentRuns(`exec 3<>/dev/tcp/127.0.0.1/${port}; printf '${head}' >&3; head -1 <&3`),
    ).toContain(REFUSED);
  });

  test("a child that left its session, its parent and its environment behind is refused too", async () => {
    const workspace = join(service.folder, "workspace");
    const answers = join(workspace, "answers");
    writeFileSync(
      join(workspace, "later.sh"),
      `echo >> ready; until [ -e go ]; do sleep 0.1; done; echo "$1 $(${status("/api/sessions")})" >> answers\n`,
    );
    writeFileSync(join(workspace, "ready"), "");
    const quiet = "</dev/null >/dev/null 2>&1 &";
    await agentRuns(
      `(setsid bash later.sh session ${quiet}); (env -i PATH="$PATH" setsid -f bash later.sh bare ${quiet}); until [ $(wc -l < ready) = 2 ]; do sleep 0.1; done`,
    );
    // The command has ended, and with it all that it could be known by.
    writeFileSync(join(workspace, "go"), "");
    const lines = () => readFileSync(answers, "utf8").trim().split("\n").sort();
    await expect.poll(lines, { timeout: 15_000 }).toEqual(["bare 403", "session 403"]);
  });

  test("who sends and does not wait is refused", async () => {
    const { port } = new URL(url);
    const body = JSON.stringify({ title: "sent by the agent" });
    await agentRuns("true");
    const list = (await (await fetch(`${url}/api/sessions?limit=1`)).json()) as {
      sessions: { id: string }[];
    };
    const id = list.sessions[0]?.id;
    expect(id).toMatch(/^ses_/);
    const request = `PATCH /api/sessions/${id} HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\nContent-Length: ${body.length}\\r\\n\\r\\n${body}`;
    await agentRuns(
      `for i in 1 2 3 4 5 6 7 8 9 10; do (printf '${request}' > /dev/tcp/127.0.0.1/${port}) & done; wait`,
    );
    const lines = () => service.stderr().match(/"method":"PATCH".*/g) ?? [];
    await expect.poll(() => lines().length, { timeout: 10_000 }).toBe(10);
    expect(lines().filter((line) => !line.includes('"status":403'))).toEqual([]);
  });

  test("others are served meanwhile, on connections old and new", async () => {
    const waiting = agentRuns(`for i in 1 2 3 4 5; do ${status("/api/sessions")}; done`);
    const seen: number[] = [];
    for (let i = 0; i < 20; i++) seen.push((await fetch(`${url}/api/sessions`)).status);
    const { stdout } = await execute("bash", [
      "-c",
      `for i in 1 2 3 4 5; do ${status("/api/sessions")}; done`,
    ]);
    expect(new Set(seen)).toEqual(new Set([200]));
    expect(stdout).toBe("200\n".repeat(5));
    expect((await waiting).match(/403/g)).toHaveLength(5);
  });
});
