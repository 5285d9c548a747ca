/** What watchdogs meet out there: real servers that are down, slow, broken, huge or hostile. No check of them fires for that, ends anything, or stays wrong. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../src/errors.ts";
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { type Cron, createCron } from "./cron-service.ts";
import { json, type TestOptions } from "./service.ts";

let cron: Cron;
let server: Server;
let answer: RequestListener;
beforeEach(async () => {
  cron = await createCron();
  server = createServer((request, response) => {
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  await cron.close();
  server.closeAllConnections();
  server.close();
});

const port = () => (server.address() as AddressInfo).port;
const address = (path = "") => `http://127.0.0.1:${port()}/${path}`;
const says =
  (body: string | Uint8Array, status = 200, headers = {}): RequestListener =>
  (_, response) =>
    void response.writeHead(status, headers).end(body);

async function watching(fields: object = {}, options: Partial<TestOptions> = {}) {
  const model = await cron.serve([{ text: "done" }], {
    fetch: createLocalFetch({ allow: ["127.0.0.1"] }),
    env: { RUN_LEASE: "2" },
    ...options,
  });
  const wire = { action: "act", interval_seconds: 5, ...fields };
  const response = await cron.service.post("/api/watchdog", wire);
  const body = await json(response);
  expect([response.status, body]).toMatchObject([201, { status: "created" }]);
  return { id: body.watchdog_id as string, model };
}
const patchWatchdog = (id: string, body: object) =>
  cron.service.request(`/api/watchdog/${id}`, { method: "PATCH", json: body });
const shown = (id: string) => cron.get(`/api/watchdog/${id}`);
const tried = async (id: string) => json(await cron.service.post(`/api/watchdog/${id}/test`, {}));
const runsOf = async (id: string) => (await cron.get(`/api/watchdog/${id}/runs`)).runs;
let seconds = 0;
beforeEach(() => {
  seconds = 0;
});
/** One more look. */
async function look(id: string, step = 5) {
  const before = (await shown(id)).last_checked_at;
  seconds += step;
  await cron.tickAt(seconds * 1_000);
  await cron.until(async () => (await shown(id)).last_checked_at !== before);
  await cron.settled();
  return shown(id);
}

describe("a check that fails", () => {
  test.each<[string, RequestListener, RegExp]>([
    ["500", says("oops", 500), /status 500/],
    [
      "a body that is cut off",
      (_, response) => {
        response.writeHead(200, { "content-length": "1000" }).write("half");
        setTimeout(() => response.destroy(), 20);
      },
      /connection/,
    ],
    ["a body that is no gzip", says("plain", 200, { "content-encoding": "gzip" }), /connection/],
    ["a body that is too large", says(new Uint8Array(3 * 1024 * 1024)), /2 MiB|large|bytes/i],
    [
      "a bomb",
      says(gzipSync(new Uint8Array(50 * 1024 * 1024)), 200, { "content-encoding": "gzip" }),
      /2 MiB|large|bytes/i,
    ],
    ["silence", () => {}, /seconds|time/i],
    [
      "a drip",
      (_, response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write("x"), 50);
        response.once("close", () => clearInterval(timer));
      },
      /seconds|time/i,
    ],
    [
      "a redirect to a private address",
      says("", 302, { location: "http://169.254.169.254/latest/meta-data" }),
      /private|may not|169\.254/i,
    ],
    [
      "a redirect to itself",
      (request, response) => void response.writeHead(302, { location: request.url as string }).end(),
      /redirect/i,
    ],
    ["no HTTP", (_, response) => void response.socket?.end("hello\r\n\r\n"), /HTTP/],
  ])(
    "for %s is shown, does not fire, and recovers",
    async (_, broken, sentence) => {
      answer = says("one");
      const { id, model } = await watching({ url: address() });
      await look(id);
      answer = broken;
      const error = (await look(id)).last_error;
      expect(error).toMatch(sentence);
      expect(error).not.toMatch(/inside the service/);
      expect(await tried(id)).toMatchObject({ would_fire: false, error: expect.stringMatching(sentence) });
      answer = says("one");
      expect(await look(id)).toMatchObject({ last_error: null, runs_made: 0, status: "active" });
      expect([model.requests.length, await runsOf(id)]).toEqual([0, []]);
      answer = says("two");
      expect(await look(id)).toMatchObject({ last_error: null, runs_made: 1 });
      expect(cron.service.logged.filter(([level]) => level === "error")).toEqual([]);
    },
    20_000,
  );
});

test("a directory that is closed for a while is a failed check, and its files are not gone", async () => {
  const { id } = await watching({ directory: "in", debounce_seconds: 0 });
  const { agent } = cron.service.services;
  const files = agent.platform.files("local");
  await files.write("in/a", new Uint8Array(1));
  await look(id);
  const closed: typeof files = {
    ...files,
    async *walk() {},
    list: () => Promise.reject(new AppError("forbidden", "in is closed.")),
  };
  const open = agent.platform.files;
  agent.platform.files = () => closed;
  expect(await look(id)).toMatchObject({ last_error: "in is closed.", runs_made: 0 });
  agent.platform.files = open;
  expect(await look(id)).toMatchObject({ last_error: null, runs_made: 0 });
  await files.remove("in/a");
  expect(await look(id)).toMatchObject({ last_error: null, runs_made: 1 });
});

describe("what is no text", () => {
  test("is different where a byte is, and reaches the model and the store in one piece", async () => {
    const bytes = (n: number) => Uint8Array.from([0x89, 0, 0xff, n, 0xd8, 0, 10, 13]);
    answer = says(bytes(0x80));
    const { id, model } = await watching({ url: address() });
    await look(id);
    answer = says(bytes(0x81));
    expect((await tried(id)).would_fire).toBe(true);
    expect(await look(id)).toMatchObject({ runs_made: 1, last_error: null });
    await cron.until(async () => (await runsOf(id))[0]?.ended_at);
    expect(await runsOf(id)).toMatchObject([{ fate: "ran", reason: null }]);
    const told = JSON.stringify(model.requests[0]?.messages);
    expect(told).toContain("</outside_content>");
    expect(told).not.toContain("\\u0000");
  });

  test("or no JSON, or JSON without an end, is as expected or not, and no failure", async () => {
    answer = says("[".repeat(500_000) + "]".repeat(500_000));
    const { id } = await watching({ url: address(), expect: { json_path: "$", equals: [] } });
    for (const body of ["", "{", '{"__proto__":1}', "\u{feff}[]", "[]"]) {
      expect((await look(id)).last_error).toBeNull();
      answer = says(body);
    }
    expect(await look(id)).toMatchObject({ last_error: null, runs_made: 1 });
  });
});

describe("an expectation", () => {
  test("E6: a regex cannot hold up the service, however large its text", async () => {
    answer = says("x".repeat(200_000));
    const { id } = await watching({ url: address(), expect: { regex: "(?:x{0,1000}){1,1}\\by" } });
    expect((await look(id)).last_error).toContain("expect.regex");
    answer = says("x y");
    expect(await look(id)).toMatchObject({ last_error: null });
  });

  test("an ordinary regex is held against a large page", async () => {
    answer = says(`${"<li>Some words of a page.</li>\n".repeat(30_000)}sold out`);
    const { id } = await watching({
      url: address(),
      expect: { regex: "(?i)in stock|[^a-z](sold out|gone)", on: "met" },
    });
    expect(await look(id)).toMatchObject({ last_error: null });
  });

  test("of a regex ends where the text does, the last line's end aside", async () => {
    answer = says("wait\n");
    const { id } = await watching({ url: address(), expect: { regex: "^ok$", on: "met" } });
    await look(id);
    answer = says("ok\n");
    expect(await look(id)).toMatchObject({ runs_made: 1 });
  });
});

describe("a command", () => {
  const allowed = { allowed_tools: ["run_terminal_command"] };
  const files = () => cron.service.services.platform.files("local");
  const script = (text: string) => files().write("check.sh", new TextEncoder().encode(text));
  const command = "bash check.sh";

  test("fires when its exit code or its output changes, and for nothing else", async () => {
    const { id, model } = await watching({ command, ...allowed });
    let fired = 0;
    for (const [text, fires] of [
      ["echo one", 0],
      ["echo one # again", 0],
      ["echo one; exit 3", 1],
      ["echo two; exit 3", 1],
      ["echo two >&2; exit 3", 0],
      ["head -c 300000 /dev/zero | tr '\\0' x", 1],
      ["printf '\\xff\\x00\\xfe'", 1],
    ] as const) {
      await script(text);
      fired += fires;
      expect([text, await look(id)]).toMatchObject([text, { runs_made: fired, last_error: null }]);
      await cron.until(
        async () =>
          (await runsOf(id)).filter(({ ended_at }: { ended_at: string }) => ended_at).length === fired,
      );
    }
    expect(JSON.stringify(model.requests[0]?.messages)).toContain("exit code 3");
  });

  test("that does not end is a failed check, and it recovers", async () => {
    const { id } = await watching({ command, ...allowed });
    await script("echo one");
    await look(id);
    await script("sleep 60");
    expect((await look(id)).last_error).toContain("seconds");
    await script("echo one");
    expect(await look(id)).toMatchObject({ runs_made: 0, last_error: null });
  });

  test("P1: that policy forbids meanwhile is not run", async () => {
    const { id } = await watching({ command, ...allowed });
    await script("echo x >> ran.txt");
    await look(id);
    const rules = [{ tool: "run_terminal_command", decision: "deny" }];
    await cron.serve([], { env: { APPROVAL: JSON.stringify({ default: "ask", rules }) } });
    expect((await look(id)).last_error).toContain("policy");
    expect(new TextDecoder().decode(await files().read("ran.txt"))).toBe("x\n");
  });
});

test.each([
  ["skip", 1, 2],
  ["queue", 3, 3],
])("what happens while a run is under way: overlap %s", async (overlap, meanwhile, all) => {
  answer = says("0");
  const fetch = createLocalFetch({ allow: ["127.0.0.1"] });
  await cron.serve([{ hang: true, text: "…" }, { text: "done" }], { fetch });
  const wire = { action: "act", url: address(), interval_seconds: 5, overlap };
  const { watchdog_id: id } = await json(await cron.service.post("/api/watchdog", wire));
  const tick = async () => {
    const before = (await shown(id)).last_checked_at;
    cron.home.clock.now = new Date(cron.home.clock.now.getTime() + 5_000);
    await cron.service.services.tick();
    await cron.until(async () => (await shown(id)).last_checked_at !== before);
  };
  await tick();
  for (const text of ["1", "2", "3"]) {
    answer = says(text);
    await tick();
  }
  const runs = await runsOf(id);
  expect(runs).toHaveLength(meanwhile);
  expect((await tried(id)).would_fire).toBe(false);
  await cron.until(async () => (await runsOf(id)).at(-1).started_at);
  await cron.service.post(`/api/runs/${runs.at(-1).run_id}/stop`, {});
  await cron.settled();
  await tick();
  const ended = async () => (await runsOf(id)).filter((run: { ended_at: string | null }) => run.ended_at);
  await cron.until(async () => (await ended()).length === all);
  expect((await runsOf(id)).map(({ fate }: { fate: string }) => fate)).toEqual([
    ...Array(all - 1).fill("ran"),
    "failed",
  ]);
});

test("an address may have an @ in its path, and no user name", async () => {
  answer = says("one");
  const { id } = await watching({ url: address("@me?to=a@b") });
  expect(await look(id)).toMatchObject({ last_error: null, url: address("@me?to=a@b") });
  for (const url of [
    "http://u:p@example.com/",
    "http://u@example.com/",
    "javascript:1",
    "//example.com",
    "x",
  ]) {
    const response = await cron.service.post("/api/watchdog", { action: "act", url });
    expect([url, response.status, (await json(response)).param]).toEqual([url, 400, "url"]);
  }
});

test("another kind of target brings its own debounce, unless somebody has said one", async () => {
  const { id } = await watching({ directory: "in", pattern: "*.csv" });
  const patch = async (body: object) => (await json(await patchWatchdog(id, body))).watchdog;
  const expected = { status: 200 };
  expect(await patch({ url: address(), expect: expected })).toMatchObject({
    ...{ directory: null, pattern: null, command: null, debounce_seconds: 0, expect: expected },
  });
  expect(await patch({ url: address("b") })).toMatchObject({ expect: expected });
  expect(await patch({ expect: null })).toMatchObject({ expect: null });
  expect(await patch({ debounce_seconds: 7 })).toMatchObject({ debounce_seconds: 7 });
  expect(await patch({ directory: "in", url: null })).toMatchObject({
    ...{ directory: "in", pattern: null, url: null, debounce_seconds: 7 },
  });
  for (const wrong of [{ directory: null }, { url: address(), directory: "in" }, { expect: expected }])
    expect((await patchWatchdog(id, wrong)).status).toBe(400);
  expect(await patch({})).toMatchObject({ directory: "in", url: null });
});

test("POST …/test asks, and changes nothing: not the record, not what the next check is compared with", async () => {
  answer = says("one");
  const { id, model } = await watching({ url: address() });
  expect(await tried(id)).toMatchObject({ would_fire: false, reason: expect.stringContaining("first") });
  expect(await shown(id)).toMatchObject({ last_checked_at: null });
  await look(id);
  const before = await cron.stored();
  answer = says("two");
  expect(await tried(id)).toMatchObject({ would_fire: true, finding: expect.stringContaining("two") });
  expect(await cron.stored()).toBe(before);
  expect(model.requests.length).toBe(0);
  expect(await look(id)).toMatchObject({ runs_made: 1 });
});

test("P1: a named agent's own rules hold for the checks of a command, too", async () => {
  const command = { command: "date", allowed_tools: ["run_terminal_command"] };
  const { id } = await watching(command);
  const rules = [{ tool: "run_terminal_command", args: { command: "date" }, decision: "deny" }];
  const agent = { name: "clerk", policy: rules };
  expect((await cron.service.post("/api/agents", agent)).status).toBe(201);
  const wire = { action: "act", ...command, agent_name: "clerk" };
  const refused = await cron.service.post("/api/watchdog", wire);
  expect([refused.status, await json(refused)]).toMatchObject([400, { param: "command" }]);
  expect((await patchWatchdog(id, { agent_name: "clerk" })).status).toBe(400);
  const other = { ...wire, command: "date -u" };
  expect((await cron.service.post("/api/watchdog", other)).status).toBe(201);
});

test("A5: another owner's id is that of nothing, and lists have pages", async () => {
  const env = { ACCESS_TOKENS: "ann:token-of-ann,bob:token-of-bob" };
  await cron.serve([{ text: "done" }], { env });
  const as =
    (token: string) =>
    (path: string, method = "GET", body?: object) =>
      cron.service.request(`/api/watchdog${path}`, { method, token, ...(body ? { json: body } : {}) });
  const [ann, bob] = [as("token-of-ann"), as("token-of-bob")];
  const ids: string[] = [];
  for (const directory of ["a", "b", "c"])
    ids.unshift((await json(await ann("", "POST", { action: "x", directory }))).watchdog_id);
  const seen: string[] = [];
  for (let cursor = ""; seen.length < 4; ) {
    const page = await json(await ann(`?limit=2${cursor}`));
    seen.push(...page.watchdogs.map(({ id }: { id: string }) => id));
    if (page.next_cursor === null) break;
    cursor = `&cursor=${page.next_cursor}`;
  }
  expect(seen.toSorted()).toEqual(ids.toSorted());
  expect((await json(await bob(""))).watchdogs).toEqual([]);
  for (const [path, method, body] of [
    ["", "GET"],
    ["", "PATCH", { status: "paused" }],
    ["", "DELETE"],
    ["/test", "POST", {}],
    ["/runs", "GET"],
  ] as const) {
    const theirs = await bob(`/${ids[0]}${path}`, method, body);
    const nobodys = await bob(`/wdg_nothing${path}`, method, body);
    expect([method, theirs.status, (await json(theirs)).detail]).toEqual([
      method,
      404,
      (await json(nobodys)).detail,
    ]);
  }
  expect((await ann("?cursor=nonsense")).status).toBe(400);
  expect((await ann(`/${ids[0]}`)).status).toBe(200);
});

test("an Idempotency-Key makes one, and replays what was said", async () => {
  await cron.serve();
  const make = (body: object) => cron.service.post("/api/watchdog", body, { "idempotency-key": "once" });
  const first = await make({ action: "x", directory: "in" });
  const again = await make({ action: "x", directory: "in" });
  expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
  expect(await json(again)).toEqual(await json(first));
  expect((await make({ action: "y", directory: "in" })).status).toBe(422);
});

test("one that is deleted while its run is under way lets the run end, and is gone", async () => {
  answer = says("one");
  const { id } = await watching({ url: address() });
  await cron.close();
  cron = await createCron();
  const model = await cron.serve([{ hang: true, text: "…" }], {
    fetch: createLocalFetch({ allow: ["127.0.0.1"] }),
  });
  const made = await json(
    await cron.service.post("/api/watchdog", { action: "act", url: address(), interval_seconds: 5 }),
  );
  expect(made.watchdog_id).not.toBe(id);
  const wdg = made.watchdog_id;
  const checked = async () => (await shown(wdg)).last_checked_at;
  await cron.service.services.tick();
  await cron.until(checked);
  answer = says("two");
  cron.home.clock.now = new Date(cron.home.clock.now.getTime() + 5_000);
  await cron.service.services.tick();
  await cron.until(async () => (await runsOf(wdg))[0]?.run_id);
  await cron.until(async () => model.requests.length === 1);
  const [{ run_id }] = await runsOf(wdg);
  expect((await cron.service.request(`/api/watchdog/${wdg}`, { method: "DELETE" })).status).toBe(200);
  expect(await json(await cron.service.request(`/api/runs/${run_id}`))).toMatchObject({ status: "running" });
  expect((await cron.service.post(`/api/runs/${run_id}/stop`, {})).status).toBe(200);
  await cron.settled();
  expect((await cron.service.request(`/api/watchdog/${wdg}/runs`)).status).toBe(404);
  expect(cron.service.logged.filter(([level]) => level === "error")).toEqual([]);
});
