/** K2 for what runs unattended: jobs and a watchdog with a key of their own, that go well and badly, and tell a webhook. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, vi } from "vitest";
import type { Body, Service } from "./process.ts";

export interface Hook extends AsyncDisposable {
  host: string;
  url: string;
  /** Headers and body of each post. */
  posts: string[];
}

/** Takes posts, and shows another page at each look. */
export async function startHook(): Promise<Hook> {
  const posts: string[] = [];
  let looks = 0;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (request.method === "POST") posts.push(JSON.stringify([request.headers, request.url, body]));
    response.end(`look ${looks++}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ host, posts, url: `http://${host}/hook` },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

interface Trial {
  service: Service;
  evidence: { look(where: string, what: string): void };
}

const TAGS = ["plain", "refused-401", "refused-500", "environment", "fails", "fault-in-stream"];
const WAIT = { timeout: 30_000, interval: 100 };

export async function canaryJobs({ service, evidence }: Trial, key: string, hook: Hook): Promise<void> {
  const common = { api_key: key, provider: "openai", webhook_url: hook.url };
  async function seen(method: string, path: string, body?: object, headers?: Record<string, string>) {
    const answer = await service.send(method, path, body, headers);
    evidence.look(`${method} ${path}`, JSON.stringify([...answer.headers, answer.body]));
    return answer;
  }
  // What is wrong quotes what was sent.
  for (const wrong of [
    { schedule: key },
    { run_at: key },
    { timezone: key, cron_time: "07:00" },
    { session: key },
  ])
    expect((await seen("POST", "/api/cron", { command: "x", ...common, ...wrong })).status).toBe(400);

  const ids: string[] = [];
  for (const tag of TAGS) {
    const job = { command: `do #${tag}`, schedule: "* * * * * *", max_runs: 1 };
    const body = { ...job, ...common, allowed_tools: ["run_terminal_command"] };
    // The second time it is the stored answer.
    for (let n = 0; n < 2; n++) {
      const answer = await seen("POST", "/api/cron", body, { "idempotency-key": `job-${tag}` });
      expect([tag, answer.status]).toEqual([tag, 201]);
      ids.push(`/api/cron/${answer.body.job_id}`);
    }
  }
  const watchdog = { action: "do #plain", url: hook.url, interval_seconds: 5, max_runs: 1, ...common };
  ids.push(`/api/watchdog/${(await seen("POST", "/api/watchdog", watchdog)).body.watchdog_id}`);
  const paths = [...new Set(ids)];
  const fates: string[] = [];
  for (const path of paths) {
    const run: Body = await vi.waitUntil(async () => {
      const [newest] = (await service.get(`${path}/runs`)).runs;
      return newest?.delivery?.status === "delivered" && newest;
    }, WAIT);
    fates.push(run.fate);
    for (const each of [path, `${path}/runs`, `/api/runs/${run.run_id}`, `/api/runs/${run.run_id}/events`])
      await seen("GET", each);
    await seen("GET", `/api/sessions/${run.session_id}/messages`);
    await seen("PATCH", path, { api_key: key, name: "renamed" });
  }
  await seen("GET", "/api/cron");
  await seen("GET", "/api/watchdog");
  expect(fates).toEqual(["ran", "failed", "failed", "ran", "ran", "failed", "ran"]);
  expect(hook.posts.length).toBeGreaterThanOrEqual(paths.length);
  for (const post of hook.posts) evidence.look("a webhook", post);
}
