/**
 * K2, K3: a random key goes through everything that can happen to a request, and is found nowhere: not in the database
 * and its log, not in what the service writes, answers or streams, not in the environment of what it starts.
 */
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { canaryJobs, startHook } from "./canary-jobs.ts";
import { DATABASES, type SharedDatabase } from "./database.ts";
import { LIMIT_MS } from "./extent.ts";
import { Service } from "./process.ts";
import { startUpstream, type Upstream } from "./upstream.ts";

const random = () => randomBytes(24).toString("base64url").replaceAll(/[-_]/g, "x");

/** Everything that a client, an operator or an intruder could read. */
class Evidence {
  readonly #canaries: string[];
  #checked = 0;
  readonly found: string[] = [];

  constructor(canaries: string[]) {
    // What is encoded in a common way is no more hidden than what is not.
    this.#canaries = canaries.flatMap((key) => [
      key,
      Buffer.from(key).toString("base64").replace(/=+$/, ""),
      Buffer.from(key).toString("hex"),
      encodeURIComponent(key),
    ]);
  }

  look(where: string, what: string | Uint8Array): void {
    this.#checked++;
    const bytes =
      typeof what === "string" ? Buffer.from(what) : Buffer.from(what.buffer, what.byteOffset, what.length);
    for (const canary of this.#canaries)
      if (bytes.includes(canary)) {
        const at = bytes.indexOf(canary);
        this.found.push(`${where}: ${bytes.subarray(Math.max(0, at - 200), at + 20)}`);
      }
  }

  lookInside(folder: string): void {
    for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
      const path = join(folder, name);
      if (statSync(path).isFile()) this.look(path, readFileSync(path));
    }
  }

  get checked(): number {
    return this.#checked;
  }
}

interface Trial {
  database: SharedDatabase;
  upstream: Upstream;
  evidence: Evidence;
  service: Service;
}

const CHAT = { model: "m", messages: [] as unknown[] };

/** One thing that happens to a request, in every door. */
async function through(
  { service, evidence }: Trial,
  key: string,
  provider: string,
  tag: string,
): Promise<void> {
  const content = `do #${tag}`;
  const messages = [{ role: "user", content }];
  const bearer = { authorization: `Bearer ${key}`, "x-provider": provider };
  const requests: [string, object, Record<string, string>][] = [
    ["/api/chat", { message: content, api_key: key, provider }, {}],
    ["/api/chat", { message: content, api_key: key, provider, stream: true }, {}],
    ["/v1/chat/completions", { ...CHAT, messages }, bearer],
    ["/v1/chat/completions", { ...CHAT, messages, stream: true }, bearer],
    ["/v1/messages", { model: "m", max_tokens: 99, messages }, { "x-api-key": key, "x-provider": provider }],
    ["/v1/messages", { model: "m", max_tokens: 99, messages, stream: true }, bearer],
    ["/v1/chat/completions", { ...CHAT, messages }, { ...bearer, "x-session-id": `label-${tag}` }],
  ];
  for (const [path, body, headers] of requests) {
    const answer = await service.post(path, body, headers);
    evidence.look(`${tag} ${path}`, JSON.stringify([...answer.headers, answer.body]));
    const runId = answer.headers.get("x-run-id");
    if (runId === null) continue;
    const events = await service.send("GET", `/api/runs/${runId}/events`);
    evidence.look(`${tag} events`, JSON.stringify(events.body));
  }
}

function play(upstream: Upstream): void {
  const terminal = (command: string) => ({
    id: "call_of_the_canary_0001",
    name: "run_terminal_command",
    args: { command },
  });
  upstream.play("plain", () => ({ say: "all is well", pieces: 3 }));
  // Providers do quote the key that they refuse.
  const quoting = (status: number, type?: string) =>
    upstream.play(`refused-${status}`, ({ key }) => ({
      fault: {
        status,
        type,
        body: JSON.stringify({
          error: { message: `Incorrect API key provided: ${key}.`, type: "invalid", code: key },
        }),
      },
    }));
  for (const status of [400, 401, 403, 404, 429, 500, 503]) quoting(status);
  upstream.play("html", ({ key }) => ({
    fault: { status: 502, type: "text/html", body: `<html>${key}</html>` },
  }));
  upstream.play("malformed", ({ key }) => ({
    fault: { status: 200, type: "text/event-stream", body: `data: {"id": ${key}\n\n` },
  }));
  upstream.play("fault-in-stream", ({ key }) => ({
    fault: {
      status: 200,
      type: "text/event-stream",
      body: `event: error\ndata: ${JSON.stringify({ type: "error", error: { type: "api_error", message: `no: ${key}` } })}\n\n`,
    },
  }));
  upstream.play("environment", ({ results }) =>
    results.length === 0
      ? { calls: [terminal("env; set; cat /proc/self/environ || true")] }
      : { say: "seen" },
  );
  upstream.play("fails", ({ results }) =>
    results.length === 0 ? { calls: [terminal("exit 3")] } : { say: "failed" },
  );
  upstream.play("wrong-args", ({ results }) =>
    results.length === 0
      ? { calls: [{ id: "call_wrong", name: "run_terminal_command", args: { nothing: 1 } }] }
      : { say: "wrong" },
  );
  upstream.play("denied", ({ results }) =>
    results.length === 0 ? { calls: [terminal("true asked")] } : { say: "denied then" },
  );
  upstream.play("held", ({ attempt }) => ({
    ...{ say: "held back", pieces: 3 },
    ...(attempt === 0 ? { hold: "middle" as const } : {}),
  }));
}

const ENV = {
  LOG_LEVEL: "debug",
  APPROVAL: JSON.stringify({
    default: "auto",
    rules: [{ tool: "run_terminal_command", args: { command: "true asked" }, decision: "ask" }],
  }),
};

for (const { name, available, create } of DATABASES)
  test.skipIf(!available)(
    `a canary is found nowhere, on ${name}`,
    { timeout: LIMIT_MS, concurrent: true },
    async () => {
      const callers = {
        openai: `sk-${random()}`,
        anthropic: `sk-ant-${random()}`,
        gemini: `AIza${random()}`,
      };
      const jobs = `sk-${random()}`;
      const operators = `sk-${random()}`;
      const token = random();
      const database = await create();
      await using upstream = await startUpstream();
      play(upstream);
      await using hook = await startHook();
      const evidence = new Evidence([...Object.values(callers), jobs, operators, token]);
      const env = { ...ENV, OPENAI_API_KEY: operators, LIBSQL_AUTH_TOKEN: token, FETCH_ALLOW: hook.host };
      const processes: Service[] = [];
      const start = async () => {
        const service = await Service.start(database, upstream, env);
        processes.push(service);
        return service;
      };
      try {
        const trial: Trial = { database, upstream, evidence, service: await start() };
        const tags = ["plain", "environment", "fails", "wrong-args", "html", "malformed", "fault-in-stream"];
        for (const status of [400, 401, 403, 404, 429, 500, 503]) tags.push(`refused-${status}`);
        for (const [provider, key] of Object.entries(callers))
          await Promise.all(tags.map((tag) => through(trial, key, provider, tag)));
        // The operator's own key, when nobody brings one.
        const { service } = trial;
        for (const tag of tags) {
          const answer = await service.post("/api/chat", { message: `#${tag}`, provider: "openai" });
          evidence.look(`operator's ${tag}`, JSON.stringify([...answer.headers, answer.body]));
        }
        // Where a header cannot hold it, and where it does not belong.
        for (const key of [`${callers.openai}\n`, `${callers.openai}\u0000é`, `${callers.openai} ${"☃"}`])
          for (const body of [
            { message: "#plain", api_key: key },
            { message: "#plain", api_key: key, stream: true },
          ]) {
            const answer = await service.post("/api/chat", body);
            evidence.look("a key that no header can hold", JSON.stringify([...answer.headers, answer.body]));
          }
        for (const path of ["/v1/models/none", "/v1/models", "/api/sessions"]) {
          const headers = { authorization: `Bearer ${callers.openai}` };
          const answer = await service.send("GET", path, undefined, headers);
          evidence.look(path, JSON.stringify([...answer.headers, answer.body]));
        }
        await canaryJobs(trial, jobs, hook);
        await denyOne(trial, callers.openai);
        await crash(trial, callers.openai, start);
        await trial.service.stop();
      } finally {
        for (const each of processes) await each.kill();
      }
      for (const { process } of processes) evidence.look("the log", process.stderr());
      expect(processes[0]!.process.stderr()).toMatch(/run_/);
      await database.sqld?.kill();
      if (database.sqld) evidence.lookInside(database.sqld.folder);
      evidence.lookInside(database.folder);
      expect(evidence.found).toEqual([]);
      expect(evidence.checked).toBeGreaterThan(200);
      // It was there to be found.
      for (const key of [...Object.values(callers), jobs, operators])
        expect(upstream.asked.some((asked) => asked.key === key)).toBe(true);
      await database.close();
    },
  );

async function denyOne({ service, evidence }: Trial, key: string): Promise<void> {
  const parked = await service.post("/api/chat", { message: "#denied", api_key: key });
  expect(parked.body.auth_required).toBe(true);
  const { session_id } = parked.body;
  const denied = await service.post("/api/chat/approve", { session_id, approved: false, stream: true });
  expect(denied.body).toContain("denied then");
  evidence.look("denied", JSON.stringify([parked.body, denied.body]));
}

/** kill -9 with one run parked and one in mid-stream; both go on with their key in another process. */
async function crash(trial: Trial, key: string, start: () => Promise<Service>): Promise<void> {
  const { database, upstream, evidence } = trial;
  const parked = await trial.service.post("/api/chat", { message: "#denied", api_key: key });
  const held = await trial.service.stream("/api/chat", { message: "#held", api_key: key });
  await held.event((event) => event.type === "content");
  await trial.service.kill();
  evidence.lookInside(database.folder);
  await database.expireLeases();
  trial.service = await start();
  const rest = await trial.service.follow(held.response.headers.get("x-run-id") ?? "", held.lastSeq);
  await rest.over;
  expect(rest.events.at(-1)).toMatchObject({ type: "done", reply: "held back" });
  const { session_id } = parked.body;
  const denied = await trial.service.post("/api/chat/approve", { session_id, approved: false });
  expect([denied.status, denied.body.reply]).toEqual([200, "denied then"]);
  evidence.look("after the crash", JSON.stringify([held.text, rest.text, denied.body]));
  expect(upstream.asked.slice(-2).map((asked) => asked.key)).toEqual([key, key]);
}
