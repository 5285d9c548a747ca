/** A5: what belongs to another is answered as what does not exist, byte for byte but for the id that was asked for. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Operation } from "../../src/http/openapi/operation.ts";
import { ROUTES } from "../../src/http/openapi/routes.ts";
import {
  createHome,
  createService,
  done,
  json,
  type TestHome,
  type TestService,
  toolbox,
} from "../http/service.ts";
import { PNG } from "../knowledge/pictures.ts";
import { scriptedModel } from "../scripted-model.ts";
import type { Body } from "./process.ts";

interface Mode {
  name: string;
  env: Record<string, string>;
  v1(name: string): Record<string, string>;
  api(name: string): Record<string, string>;
}

const MODES: Mode[] = [
  {
    name: "tokens",
    env: { ACCESS_TOKENS: "ann:token-of-ann,bob:token-of-bob" },
    v1: (name) => ({ "x-access-token": `token-of-${name}` }),
    api: (name) => ({ authorization: `Bearer token-of-${name}` }),
  },
  {
    name: "keys",
    env: { AUTH: "key" },
    v1: (name) => ({ authorization: `Bearer sk-key-of-${name}` }),
    api: (name) => ({ authorization: `Bearer sk-key-of-${name}` }),
  },
];

let home: TestHome;
let service: TestService;
beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());
afterEach(() => service.close());

interface Owned {
  /** An MCP server. */
  server: string;
  session: string;
  run: string;
  message: string;
  note: string;
  memory: string;
  job: string;
  watchdog: string;
  image: string;
  agent: string;
  call: Body;
  code: string;
}

/** Ids of the same form that nobody has. */
const NOBODYS: Owned = {
  session: "ses_NobodyHasThisSession00",
  run: "run_NobodyHasThisRun0000000",
  message: "msg_NobodyHasThisMessage000",
  server: "nobodys",
  note: "note_nobodyhasthisnote0000000000",
  watchdog: "wdg_nobodyhasthiswatchdog0000000",
  job: "job_nobodyhasthisjob000000000000",
  memory: "mem_nobodyhasthismemory00000000",
  image: "img_nobodyhasthisimage0000000000",
  agent: "agt_nobodyhasthisagent0000000000",
  call: { id: "call_nobody_has_this", name: "write", args: { n: 1 } },
  code: "AAAA2222",
};

/** A session of Ann's with a reply and a run that waits; and a code that she was given for another. */
async function annOwns(mode: Mode): Promise<Owned> {
  const calls = [{ id: "call_of_ann_which_is_long", name: "write", args: { n: 1 } }];
  const model = scriptedModel([
    { text: "hello" },
    { calls },
    { calls: [{ ...calls[0]!, id: "call_of_code" }] },
    { text: "ok" },
  ]);
  service = await createService(home, { model, env: mode.env, tools: toolbox() });
  const ann = mode.api("ann");
  const first = await json(await service.post("/api/chat", { message: "a secret" }, ann));
  const { session_id: session } = first;
  const parked = await json(await service.post("/api/chat", { message: "write", session_id: session }, ann));
  expect(parked.auth_required).toBe(true);
  const asked = await service.post(
    "/v1/chat/completions",
    { model: "m", messages: [{ role: "user", content: "write" }] },
    mode.v1("ann"),
  );
  const code = /approve (\w{8})/.exec(await asked.text())?.[1] ?? "";
  expect(code).not.toBe("");
  const written = { title: "hello", content: "a secret" };
  const { note_id: note } = await json(await service.post("/api/notes", written, ann));
  const { memory_id: memory } = await json(
    await service.post("/api/memory", { document: "Tea, not coffee" }, ann),
  );
  const task = { command: "Look around", schedule: "@yearly" };
  const { job_id: job } = await json(await service.post("/api/cron", task, ann));
  const watch = { action: "Look", directory: "inbox" };
  const { watchdog_id: watchdog } = await json(await service.post("/api/watchdog", watch, ann));
  // It is saved although it cannot be reached.
  await service.post("/api/mcp/connect", { server_id: "anns", url: "https://mcp.example/" }, ann);
  const named = { name: crypto.randomUUID() };
  const { agent_id: agent } = await json(await service.post("/api/agents", named, ann));
  const form = new FormData();
  form.append("file", new Blob([PNG]), "x.png");
  const upload = { method: "POST", body: form, headers: ann };
  const { id: image } = await json(await service.request("/api/notes/upload", upload));
  return {
    session,
    run: parked.run_id,
    message: first.message_id,
    server: "anns",
    note,
    memory,
    job,
    watchdog,
    image,
    agent,
    call: parked.pending_calls[0],
    code,
  };
}

type Asking = (ids: Owned) => {
  method: string;
  path: string;
  json?: unknown;
  v1?: boolean;
  session?: string;
};

/** What the ids in a path are of, by its first word. */
const KINDS: Record<string, keyof Owned> = {
  sessions: "session",
  runs: "run",
  messages: "message",
  notes: "note",
  memory: "memory",
  cron: "job",
  watchdog: "watchdog",
  agents: "agent",
  mcp: "server",
};

/** Every route of the interface document with an id in its path, by example. */
const byPath: [string, Asking][] = (ROUTES as readonly Operation[])
  .filter(({ path }) => path.includes("{") && !path.startsWith("/v1/"))
  .map(({ method, path, body }) => [
    `${method} ${path}`,
    (ids) => {
      const images = path.startsWith("/api/notes/images/");
      const kind = images ? "image" : (KINDS[path.split("/")[2] as string] as keyof Owned);
      const json = Object.values(body?.examples ?? {}).at(-1) ?? (method === "post" ? {} : undefined);
      return { method: method.toUpperCase(), path: path.replace(/\{\w+\}/, String(ids[kind])), json };
    },
  ]);

const inBodies: [string, Asking][] = [
  [
    "session_id of a chat",
    ({ session }) => ({ method: "POST", path: "/api/chat", json: { message: "hi", session_id: session } }),
  ],
  [
    "session_id of a streamed chat",
    ({ session }) => ({
      method: "POST",
      path: "/api/chat",
      json: { message: "hi", session_id: session, stream: true },
    }),
  ],
  ...[true, false].flatMap((approved): [string, Asking][] => [
    [
      `approve everything: ${approved}`,
      ({ session }) => ({
        method: "POST",
        path: "/api/chat/approve",
        json: { session_id: session, approved },
      }),
    ],
    [
      `approve by id: ${approved}`,
      ({ session, call }) => ({
        method: "POST",
        path: "/api/chat/approve",
        json: { session_id: session, approved, pending_calls: [call.id] },
      }),
    ],
    [
      `approve by object, tampered with: ${approved}`,
      ({ session, call }) => ({
        method: "POST",
        path: "/api/chat/approve",
        json: { session_id: session, approved, pending_calls: [{ ...call, args: { n: 2 } }] },
      }),
    ],
  ]),
  ["events after a number", ({ run }) => ({ method: "GET", path: `/api/runs/${run}/events?after=1` })],
  ["runs of a session", ({ session }) => ({ method: "GET", path: `/api/runs?session_id=${session}` })],
  [
    "x-session-id on chat completions",
    ({ session }) => ({
      method: "POST",
      path: "/v1/chat/completions",
      json: { model: "m", messages: [{ role: "user", content: "hi" }] },
      v1: true,
      session,
    }),
  ],
  [
    "x-session-id on messages",
    ({ session }) => ({
      method: "POST",
      path: "/v1/messages",
      json: { model: "m", max_tokens: 10, messages: [{ role: "user", content: "hi" }] },
      v1: true,
      session,
    }),
  ],
];

async function ask(mode: Mode, who: string, asking: Asking, ids: Owned) {
  const { method, path, json: body, v1, session } = asking(ids);
  const headers = {
    ...(v1 ? mode.v1(who) : mode.api(who)),
    ...(session === undefined ? {} : { "x-session-id": session }),
    "x-request-id": "req_the_same_for_everybody",
  };
  const response = await service.request(path, { method, headers, json: body });
  let text = await response.text();
  for (const [key, id] of Object.entries(ids)) {
    const word = typeof id === "string" ? id : id.id;
    text = text.replaceAll(word, `<${key}>`);
  }
  return { status: response.status, headers: [...response.headers], text };
}

describe.each(MODES)("two owners by $name", (mode) => {
  test.each([...byPath, ...inBodies])("%s", async (name, asking) => {
    const owned = await annOwns(mode);
    const foreign = await ask(mode, "bob", asking, owned);
    expect(foreign).toEqual(await ask(mode, "bob", asking, NOBODYS));
    expect(foreign.status).toBe(name === "runs of a session" ? 200 : 404);
    expect(foreign.text).not.toMatch(/secret|hello|write/);
    // Nothing has come of it.
    const run = await json(await service.request(`/api/runs/${owned.run}`, { headers: mode.api("ann") }));
    expect(run).toMatchObject({ status: "paused", pending_calls: [owned.call] });
    expect(done).toEqual([]);
  });

  test("the owner's own ids are not among those that nobody has", async () => {
    const owned = await annOwns(mode);
    for (const [name, asking] of [...byPath, ...inBodies]) {
      if (/delete|approve|post|chat|x-session|oauth/.test(name)) continue;
      expect([name, (await ask(mode, "ann", asking, owned)).status]).toEqual([name, 200]);
    }
  });

  test("a code is worth nothing to another, in any door", async () => {
    const { code, run } = await annOwns(mode);
    const said = (from: string) => [{ role: "user", content: `approve ${from}` }];
    const doors = (from: string) =>
      [
        ["/v1/chat/completions", { model: "m", messages: said(from) }, mode.v1("bob")],
        ["/v1/messages", { model: "m", max_tokens: 10, messages: said(from) }, mode.v1("bob")],
        ["/api/chat", { message: `approve ${from}` }, mode.api("bob")],
      ] as const;
    for (const [i, [path, body, headers]] of doors(code).entries()) {
      const [foreign, nobodys] = [
        await service.post(path, body, headers),
        await service.post(...([...doors(NOBODYS.code)[i]!] as [string, unknown, Record<string, string>])),
      ];
      // Words like any others: the model answers them.
      expect([path, foreign.status, nobodys.status]).toEqual([path, 200, 200]);
      expect(foreign.headers.get("x-run-id")).not.toBe(run);
    }
    expect(done).toEqual([]);
    const mine = await service.post(
      "/v1/chat/completions",
      { model: "m", messages: said(code) },
      mode.v1("ann"),
    );
    expect(mine.status).toBe(200);
    expect(done).toEqual(["write 1"]);
    done.length = 0;
  });

  test("lists and searches hold one's own", async () => {
    const { session } = await annOwns(mode);
    for (const path of ["/api/sessions", "/api/sessions?q=secret", "/api/runs"]) {
      const [anns, bobs] = await Promise.all(
        ["ann", "bob"].map(async (who) => json(await service.request(path, { headers: mode.api(who) }))),
      );
      expect(JSON.stringify(anns)).toContain(session);
      expect(Object.values(bobs)).toEqual(expect.arrayContaining([null]));
      expect(JSON.stringify(bobs)).not.toContain(session);
    }
  });

  test("the same Idempotency-Key is another one", async () => {
    const { session } = await annOwns(mode);
    const body = { message: "again" };
    const headers = { "idempotency-key": "the-same" };
    const anns = await service.post("/api/chat", body, { ...mode.api("ann"), ...headers });
    const bobs = await service.post("/api/chat", body, { ...mode.api("bob"), ...headers });
    expect([anns.status, bobs.status]).toEqual([200, 200]);
    expect(bobs.headers.get("idempotency-replayed")).toBeNull();
    expect(bobs.headers.get("x-session-id")).not.toBe(anns.headers.get("x-session-id"));
    expect(session).not.toBe(bobs.headers.get("x-session-id"));
  });
});
