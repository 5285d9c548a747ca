/** What is changed of a watchdog, and what stays as it was: its key, its webhook, its target, and that it is known again. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { GuardedFetch } from "../../src/core/fetch.ts";
import { type Cron, createCron } from "./cron-service.ts";
import { json } from "./service.ts";

let cron: Cron;
beforeEach(async () => {
  cron = await createCron();
});
afterEach(() => cron.close());

const IN = { action: "look\nthere", directory: "in", interval_seconds: 5, debounce_seconds: 0 };

async function create(fields: object = {}) {
  const response = await cron.service.post("/api/watchdog", { ...IN, ...fields });
  const body = await json(response);
  expect([response.status, body]).toMatchObject([201, { status: "created" }]);
  return body;
}
const again = async (fields: object = {}) =>
  json(await cron.service.post("/api/watchdog", { ...IN, ...fields }));
const patch = (id: string, body: object, token?: string) =>
  cron.service.request(`/api/watchdog/${id}`, {
    ...{ method: "PATCH", json: body },
    ...(token === undefined ? {} : { token }),
  });
const changed = async (id: string, body: object) => {
  const response = await patch(id, body);
  const answer = await json(response);
  expect([response.status, answer]).toMatchObject([200, { status: "updated", watchdog_id: id }]);
  return answer;
};
const write = (path: string) =>
  cron.service.services.platform.files("local").write(path, new TextEncoder().encode(path));
const runsOf = async (id: string) => (await cron.get(`/api/watchdog/${id}/runs`)).runs;
const ended = (id: string, count: number) =>
  cron.until(
    async () => (await runsOf(id)).filter((run: { ended_at: string | null }) => run.ended_at).length >= count,
  );

/** It has fired once, at 5 s. */
async function fired(fields: object = {}) {
  const made = await create(fields);
  await cron.tickAt(0);
  await write("in/a");
  await cron.tickAt(5_000);
  await ended(made.watchdog_id, 1);
  return made;
}

describe("the same again", () => {
  test("of a watchdog that is done, renamed or paused or not, is a new one", async () => {
    await cron.serve();
    const { watchdog_id: id } = await fired({ max_runs: 1 });
    expect((await changed(id, { name: "look" })).watchdog.status).toBe("done");
    await changed(id, { status: "paused" });
    const second = await again({ max_runs: 1 });
    expect(second).toMatchObject({ status: "created", watchdog: { status: "active" } });
    expect(second.watchdog_id).not.toBe(id);
  });

  test("of one that is woken up with more runs is that one", async () => {
    await cron.serve();
    const { watchdog_id: id } = await fired({ max_runs: 1 });
    const over = await patch(id, { status: "active" });
    expect([over.status, (await json(over)).detail]).toEqual([409, expect.stringContaining("max_runs")]);
    expect((await changed(id, { max_runs: 2 })).watchdog.status).toBe("active");
    expect(await again({ max_runs: 2 })).toMatchObject({ status: "exists", watchdog_id: id });
  });

  test("of what it was before it was changed is a new one; of what it is now, that one", async () => {
    await cron.serve();
    const { watchdog_id: id } = await create();
    await changed(id, { cooldown_seconds: 60 });
    expect(await again({ cooldown_seconds: 60 })).toMatchObject({ status: "exists", watchdog_id: id });
    expect(await again()).toMatchObject({ status: "created" });
    const same = await patch(id, { cooldown_seconds: null });
    expect([same.status, (await json(same)).detail]).toEqual([409, expect.stringContaining("just the same")]);
  });
});

describe("a change", () => {
  test("to null gives the key back: the operator's is used", async () => {
    await cron.serve();
    const { watchdog_id: id } = await create({ api_key: "sk-of-my-own" });
    expect((await changed(id, { name: "n" })).watchdog.has_api_key).toBe(true);
    expect((await changed(id, { api_key: null })).watchdog.has_api_key).toBe(false);
    await cron.tickAt(0);
    await write("in/a");
    await cron.tickAt(5_000);
    await ended(id, 1);
    expect(cron.service.keys).toEqual(["sk-operator"]);
  });

  test("K1: of the key to null under AUTH=key is the key of the header, never the operator's", async () => {
    const key = "sk-of-somebody-with-a-key-0123456789";
    await cron.serve([{ text: "done" }], { env: { AUTH: "key" } });
    const init = {
      method: "POST",
      token: key,
      json: { ...IN, api_key: "sk-another-one-of-the-same-person" },
    };
    const { watchdog_id: id } = await json(await cron.service.request("/api/watchdog", init));
    const response = await patch(id, { api_key: null }, key);
    expect([response.status, (await json(response)).watchdog.has_api_key]).toEqual([200, true]);
    const database = await cron.home.backend.open();
    const { rows } = await database.read.execute("SELECT owner FROM jobs");
    database.read.close();
    database.write.close();
    await cron.tickAt(0);
    const files = cron.service.services.platform.files(String(rows[0]?.owner));
    await files.write("in/a", new Uint8Array(1));
    await cron.tickAt(5_000);
    await cron.until(async () => cron.service.keys.length > 0);
    expect(cron.service.keys).toEqual([key]);
    expect(await cron.stored()).not.toContain(key);
    expect((await patch(id, { api_key: null }, "sk-of-another")).status).toBe(404);
  });

  test("to tools that are not there is told, and they may come later", async () => {
    await cron.serve();
    const made = await create({ allowed_tools: ["look", "wirte"] });
    expect(made.unavailable_tools).toEqual(["wirte"]);
    expect((await changed(made.watchdog_id, { name: "n" })).unavailable_tools).toEqual(["wirte"]);
    const { watchdog, ...rest } = await changed(made.watchdog_id, { allowed_tools: ["write"] });
    expect([watchdog.allowed_tools, rest]).toEqual([
      ["write"],
      { status: "updated", watchdog_id: made.watchdog_id },
    ]);
  });

  test("of the name to null makes it the beginning of the action again", async () => {
    await cron.serve();
    const { watchdog_id: id } = await create({ name: "mine" });
    expect((await changed(id, { action: "see\nthere" })).watchdog.name).toBe("mine");
    expect((await changed(id, { name: null })).watchdog.name).toBe("see");
    expect((await changed(id, { name: null, action: "go" })).watchdog.name).toBe("go");
  });

  test("of the agent to the default's name is none, and one that nobody has is refused", async () => {
    await cron.serve();
    const { watchdog_id: id } = await create();
    expect((await changed(id, { agent_name: "dragoman" })).watchdog.agent_name).toBeNull();
    expect(await again({ agent_name: "dragoman" })).toMatchObject({ status: "exists", watchdog_id: id });
    expect((await patch(id, { agent_name: "nobody" })).status).toBe(404);
  });

  test("that is nothing is no change", async () => {
    await cron.serve();
    const { watchdog_id: id } = await create();
    await cron.tickAt(0);
    const { updated_at: _, ...before } = await cron.get(`/api/watchdog/${id}`);
    for (const body of [{}, { unknown: 1 }, { status: "active" }, { status: null }, { action: null }])
      expect((await changed(id, body)).watchdog).toMatchObject(before);
  });
});

test("a webhook keeps its secret while its address stays, and gets one that can be read where that is lost", async () => {
  const webhook_url = "https://example.com/hook";
  const signatures: (string | null)[] = [];
  const fetch: GuardedFetch = async (_url, init) => {
    signatures.push(new Headers(init?.headers).get("webhook-signature"));
    return new Response(null, { status: 204 });
  };
  await cron.serve([{ text: "done" }], { fetch });
  const { watchdog_id: id } = await create({ webhook_url });
  expect((await changed(id, { webhook_url })).webhook_secret).toBeUndefined();
  // As if the server's secret had changed.
  const database = await cron.home.backend.open();
  await database.write.execute("UPDATE jobs SET sealed_webhook_secret = 'AAAA'");
  database.read.close();
  database.write.close();
  expect((await changed(id, { webhook_url })).webhook_secret).toMatch(/^whsec_/);
  await cron.tickAt(0);
  await write("in/a");
  await cron.tickAt(5_000);
  await cron.until(async () => (await runsOf(id))[0]?.delivery?.status === "delivered");
  expect(signatures).toEqual([expect.stringMatching(/^v1,/)]);
});
