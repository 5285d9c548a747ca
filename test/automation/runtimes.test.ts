/** A job from its creation to its result on Node, on Bun and, where the trigger's `scheduled()` ticks, on workerd. */
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, describe, expect, test, vi } from "vitest";
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
    const run = await vi.waitUntil(async () => {
      const [newest] = (await call(`/api/cron/${job_id}/runs`)).runs;
      return newest?.ended_at && newest;
    }, WAIT);
    expect(run.fate).toBe("ran");
    expect(new Date(run.started_at).getTime() - new Date(run.scheduled_at).getTime()).toBeLessThan(1_500);
    const { messages } = await call(`/api/sessions/${run.session_id}/messages`);
    expect(messages.at(-1).content).toBe("said");
    expect(await call(`/api/cron/${job_id}`)).toMatchObject({ status: "done", last_fate: "ran" });
  });
});

describe.runIf(hasSqld)("workerd", () => {
  /** An isolate of its own over the database, as one of many. */
  async function isolate(sqld: Sqld, upstream: Double): Promise<TestHarness> {
    const vars = { LIBSQL_URL: sqld.url, RUN_LEASE: "2", ...upstream.env };
    const secrets = {
      OPENAI_API_KEY: KEY,
      ACCESS_TOKENS: `ann:${TOKEN}`,
      SECRET_KEY: "a-secret-of-the-tests-with-enough-characters",
    };
    const harness = createTestHarness({
      workers: [{ configPath: new URL("wrangler.toml", ROOT), vars, secrets }],
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
    await promisify(execFile)(process.execPath, [migrate], { cwd: tmpdir(), env });
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
    const run = await vi.waitUntil(async () => {
      const [newest] = (await call(`/api/cron/${job_id}/runs`)).runs;
      return newest?.ended_at && newest;
    }, WAIT);
    expect(run).toMatchObject({ fate: "ran", trigger: "schedule" });
    const { messages } = await call(`/api/sessions/${run.session_id}/messages`);
    expect(messages.at(-1).content).toBe("said");
  });

  test("R3: a long job whose isolate is gone is carried on by the next tick", {
    timeout: 120_000,
  }, async () => {
    const [upstream, sqld] = await Promise.all([double(), database()]);
    // Never answers.
    upstream.answer(() => {});
    const first = await isolate(sqld, upstream);
    const call = client(first);
    const { job_id } = await call("/api/cron", SOON);
    const { run } = await call(`/api/cron/${job_id}/run`, {});
    expect(run.fate).toBe("claimed");
    await upstream.request(0);
    await closing.pop()?.();
    upstream.script({ content: "said after all" });
    const second = await isolate(sqld, upstream);
    const again = client(second);
    const ended = await vi.waitUntil(
      async () => {
        await trigger(second);
        const { runs } = await again(`/api/cron/${job_id}/runs`);
        return runs.find((each: { run_id: string }) => each.run_id === run.run_id && each.run_id)?.ended_at
          ? runs.find((each: { run_id: string }) => each.run_id === run.run_id)
          : undefined;
      },
      { timeout: 30_000, interval: 500 },
    );
    expect(ended).toMatchObject({ fate: "ran", trigger: "manual" });
    expect(await again(`/api/runs/${run.run_id}`)).toMatchObject({ status: "completed", recoveries: 1 });
  });
});
