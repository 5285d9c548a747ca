/** A job from its creation to its result on Node, on Bun and, where the trigger's `scheduled()` ticks, on workerd. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createClient } from "@libsql/client/web";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createTestHarness, type TestHarness } from "wrangler";
import { type Double, startDouble } from "../matrix/double.ts";
import { startService } from "../service.ts";
import { hasSqld, type Sqld, startSqld } from "../sqld.ts";

const KEY = "sk-of-the-operator-1234567890";
const TOKEN = "token-of-ann-1234567890";
const HEADERS = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
const ROOT = new URL("../../", import.meta.url);
/** Seconds in front make it due at once, and max_runs keeps it at one. */
const SOON = { command: "say it", schedule: "* * * * * *", max_runs: 1, misfire: "once" };
const WAIT = { timeout: 20_000, interval: 50 };
/** Seconds; the least. */
const LEASE = 2;
/** More than pulses that are late by themselves. Milliseconds. */
const PAST_LEASE_MS = 1.5 * LEASE * 1_000;
const RARELY = { interval_minutes: 600 };
const run = promisify(execFile);

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function double(): Promise<Double> {
  const started = await startDouble();
  closing.push(() => started.stop());
  return started;
}

type Send = (
  path: string,
  init?: { method: string; headers: Record<string, string>; body?: string },
) => Promise<{
  json(): Promise<unknown>;
}>;

function clientOf(send: Send) {
  // biome-ignore lint/suspicious/noExplicitAny: a body is what a test says it is.
  return async (path: string, body?: object): Promise<any> => {
    const init = body ? { method: "POST", body: JSON.stringify(body) } : { method: "GET" };
    return (await send(path, { ...init, headers: HEADERS })).json();
  };
}

describe.each(["node", "bun"] as const)("%s", (runtime) => {
  test("the runner wakes up by itself, in time", { timeout: 30_000 }, async () => {
    const upstream = await double();
    upstream.script({ content: "said" });
    const env = { ...upstream.env, OPENAI_API_KEY: KEY, ACCESS_TOKENS: `ann:${TOKEN}` };
    const service = await startService({ runtime, env });
    closing.push(() => service.stop());
    const call = clientOf((path, init) => fetch(service.url + path, init));
    const { job_id } = await call("/api/cron", SOON);
    const ran = await vi.waitUntil(async () => {
      const [newest] = (await call(`/api/cron/${job_id}/runs`)).runs;
      return newest?.ended_at && newest;
    }, WAIT);
    expect(ran.fate).toBe("ran");
    expect(new Date(ran.started_at).getTime() - new Date(ran.scheduled_at).getTime()).toBeLessThan(1_500);
    const { messages } = await call(`/api/sessions/${ran.session_id}/messages`);
    expect(messages.at(-1).content).toBe("said");
    expect(await call(`/api/cron/${job_id}`)).toMatchObject({ status: "done", last_fate: "ran" });
  });
});

describe.runIf(hasSqld)("workerd", () => {
  /** What wrangler deploys, made once: the harness would bundle it for each isolate. */
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "dragoman-scheduled-"));
    const root = fileURLToPath(ROOT);
    const env = { PATH: process.env.PATH, HOME: folder, WRANGLER_SEND_METRICS: "false" };
    const args = ["node_modules/wrangler/bin/wrangler.js", "deploy", "--dry-run", "--outdir", folder];
    await run(process.execPath, args, { cwd: root, env });
    const settings = await readFile(join(root, "wrangler.toml"), "utf8");
    const kept = settings.split("\n").filter((line) => /^(name|compatibility_\w+) = /.test(line));
    const toml = [...kept, 'main = "worker.js"', "no_bundle = true", ""].join("\n");
    await writeFile(join(folder, "wrangler.toml"), toml);
  }, 60_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  /** An isolate of its own over the database, as one of many. */
  async function isolate(sqld: Sqld, upstream: Double): Promise<TestHarness> {
    const vars = { LIBSQL_URL: sqld.url, RUN_LEASE: String(LEASE), ...upstream.env };
    const secrets = {
      OPENAI_API_KEY: KEY,
      ACCESS_TOKENS: `ann:${TOKEN}`,
      SECRET_KEY: "a-secret-of-the-tests-with-enough-characters",
    };
    const harness = createTestHarness({
      workers: [{ configPath: join(folder, "wrangler.toml"), vars, secrets }],
    });
    closing.push(() => harness.close());
    await harness.listen();
    return harness;
  }

  async function database(): Promise<Sqld> {
    const sqld = await startSqld();
    closing.push(() => sqld.close());
    const env = { PATH: process.env.PATH, LIBSQL_URL: sqld.url };
    const migrate = fileURLToPath(new URL("src/entry/migrate.ts", ROOT));
    await run(process.execPath, [migrate], { cwd: tmpdir(), env });
    return sqld;
  }

  const trigger = (harness: TestHarness) =>
    harness.getWorker().scheduled({ cron: "* * * * *", scheduledTime: new Date() });
  const client = (harness: TestHarness) => clientOf((path, init) => harness.fetch(path, init));

  test("scheduled() runs what is due, and its result is read over the API", {
    timeout: 120_000,
  }, async () => {
    const [upstream, sqld] = await Promise.all([double(), database()]);
    upstream.script({ content: "said" });
    const harness = await isolate(sqld, upstream);
    const call = client(harness);
    const { job_id, job } = await call("/api/cron", SOON);
    await vi.waitUntil(() => Date.now() >= new Date(job.next_run_time).getTime(), WAIT);
    expect((await call(`/api/cron/${job_id}/runs`)).runs).toEqual([]);
    await trigger(harness);
    const ran = await vi.waitUntil(async () => {
      const [newest] = (await call(`/api/cron/${job_id}/runs`)).runs;
      return newest?.ended_at && newest;
    }, WAIT);
    expect(ran).toMatchObject({ fate: "ran", trigger: "schedule" });
    const { messages } = await call(`/api/sessions/${ran.session_id}/messages`);
    expect(messages.at(-1).content).toBe("said");
  });

  const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

  test("R3: a long job whose isolate is gone is carried on, and its end recorded, by the next tick", {
    timeout: 60_000,
  }, async () => {
    const [upstream, sqld] = await Promise.all([double(), database()]);
    // Never answers.
    upstream.answer(() => {});
    const first = await isolate(sqld, upstream);
    const call = client(first);
    const { job_id } = await call("/api/cron", { command: "say it", ...RARELY });
    const { run: begun } = await call(`/api/cron/${job_id}/run`, {});
    expect(begun.fate).toBe("claimed");
    await upstream.request(0);
    await closing.pop()?.();
    upstream.script({ content: "said after all" });
    const [second] = await Promise.all([isolate(sqld, upstream), sleep(PAST_LEASE_MS)]);
    const again = client(second);
    await trigger(second);
    const ended = await vi.waitUntil(async () => {
      const { runs } = await again(`/api/cron/${job_id}/runs`);
      return runs[0].ended_at && runs[0];
    }, WAIT);
    expect(ended).toMatchObject({ fate: "ran", trigger: "manual", run_id: begun.run_id });
    expect(await again(`/api/runs/${begun.run_id}`)).toMatchObject({ status: "completed", recoveries: 1 });
  });

  test("R3: a job keeps its lease when the run that was there before it has ended", {
    timeout: 60_000,
  }, async () => {
    const [upstream, sqld] = await Promise.all([double(), database()]);
    upstream.answer(() => {});
    const harness = await isolate(sqld, upstream);
    const call = client(harness);
    const runIds: string[] = [];
    for (const command of ["the first", "the second"]) {
      const { job_id } = await call("/api/cron", { command, ...RARELY });
      const { run: begun } = await call(`/api/cron/${job_id}/run`, {});
      await upstream.request(runIds.length);
      runIds.push(begun.run_id);
    }
    await call(`/api/runs/${runIds[0]}/stop`, {});
    const stateOf = async () => {
      const reader = createClient({ url: sqld.url });
      const sql = "SELECT status, recoveries, lease_until FROM runs WHERE id = ?";
      const { rows } = await reader.execute({ sql, args: [runIds[1] as string] });
      return { ...rows[0] };
    };
    await sleep(PAST_LEASE_MS);
    expect(await stateOf()).toMatchObject({ status: "running", recoveries: 0 });
    expect(Number((await stateOf()).lease_until)).toBeGreaterThan(Date.now());
    // Another service finds nothing to take over.
    await trigger(harness);
    expect(await stateOf()).toMatchObject({ status: "running", recoveries: 0 });
    await call(`/api/runs/${runIds[1]}/stop`, {});
    expect(await stateOf()).toMatchObject({ status: "stopped" });
  });
});
