/** K2: callers' keys in what the running service writes and answers, also where a client puts its key into the wrong place. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reply, startUpstream, type UpstreamServer } from "../upstream-server.ts";
import { type ServiceProcess, startProcess, stop } from "./service-process.ts";

const KEY = "sk-caller-canary-Zx81kQ0pLw7";
let upstream: UpstreamServer;
let service: ServiceProcess;
let url: string;

beforeAll(async () => {
  // An upstream that repeats the key that it got.
  upstream = await startUpstream((response, request, n) =>
    reply(401, {
      error: { message: `Wrong key: ${request.headers.authorization}`, code: "invalid_api_key" },
    })(response, request, n),
  );
  service = startProcess("node", { OPENAI_BASE_URL: `${upstream.url}/v1` });
  url = await service.url;
});
afterAll(async () => {
  await stop(service);
  await upstream[Symbol.asyncDispose]();
});

function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

test("no error body, log line or database row shows the key", async () => {
  const bearer = { authorization: `Bearer ${KEY}` };
  const messages = [{ role: "user", content: "hello" }];
  const answers = [
    await post("/api/chat", { message: "hello", api_key: KEY, provider: KEY }),
    await post("/api/chat", { message: "hello", api_key: KEY, agent_name: KEY }),
    await post("/api/chat", { message: "hello", api_key: KEY, provider: "openai" }),
    await post("/v1/chat/completions", { model: "dragoman", messages }, { ...bearer, "x-provider": KEY }),
    await post("/v1/chat/completions", { model: "gpt", messages }, bearer),
    await post("/v1/messages", { model: "gpt", max_tokens: 9, messages }, { "x-api-key": KEY }),
    await fetch(`${url}/v1/${KEY}`, { headers: bearer }),
    await fetch(`${url}/api/${KEY}`),
  ];
  expect(answers.map(({ status }) => status)).toEqual([400, 404, 401, 400, 401, 401, 404, 404]);
  const bodies = await Promise.all(answers.map((answer) => answer.text()));
  for (const body of bodies) expect(body).not.toContain(KEY);
  expect(bodies.filter((body) => body.includes("[key]")).length).toBeGreaterThan(4);
  expect(await stop(service)).toBe(0);
  expect(service.stderr()).toContain('"path":"/v1/[key]"');
  expect(service.stderr()).not.toContain(KEY);
  const data = join(service.folder, "data");
  for (const file of readdirSync(data)) expect(readFileSync(join(data, file), "latin1")).not.toContain(KEY);
});
