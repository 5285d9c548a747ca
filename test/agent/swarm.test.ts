/** Swarms: members side by side under one run, in its events, its budget, its stop and its approvals. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ChatEvent } from "../../src/protocols/native-chat-events.ts";
import type { RunView } from "../../src/protocols/native-chat-records.ts";
import {
  createHome,
  createService,
  done,
  json,
  ofType,
  readEvents,
  START,
  type TestHome,
  type TestOptions,
  type TestService,
  toolbox,
} from "../http/service.ts";
import { delegate, type Part, type SceneModel, sceneModel } from "./swarm-scene.ts";

let home: TestHome;
const open: TestService[] = [];

beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());
beforeEach(() => {
  done.length = 0;
  home.clock.now = START;
});
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

type Stage = TestService & { model: SceneModel };

async function start(part: Part, options: Partial<TestOptions> = {}): Promise<Stage> {
  const model = sceneModel(part);
  const service = await createService(home, { model, ...options });
  open.push(service);
  return Object.assign(service, { model });
}

const roles = (...names: string[]) => names.map((role) => ({ role, task: `Tell of ${role}.` }));
const swarm = (more: object = {}) => ({ message: "Go.", use_swarm: true, ...more });
const streamed = async (service: TestService, path: string, body: object) =>
  (await readEvents(await service.post(path, { ...body, stream: true }))).events;
const agentsOf = (events: ChatEvent[]) =>
  ofType(events, "agent").map(({ agent, status }) => `${agent} ${status}`);
/** What the lead got of its members. */
const resultsOf = (events: ChatEvent[]) =>
  JSON.parse(ofType(events, "tool_result").find(({ name }) => name === "delegate")?.output ?? "{}").results;

/** A run and its members, lead first. */
async function runsOf(service: TestService, runId: string, token?: string) {
  const { runs } = await json(await service.request("/api/runs?limit=200", token ? { token } : {}));
  const lead = runs.find(({ id }: { id: string }) => id === runId);
  return [
    lead,
    ...runs.filter((run: { parent_run_id: string | null }) => run.parent_run_id === runId),
  ] as RunView[];
}

/** The lead delegates once, and says what came of it. */
const leads =
  (tasks: object[], members: Part): Part =>
  (heard) => {
    if (heard.who !== "") return members(heard);
    return heard.results.length === 0 ? delegate(tasks) : { text: "All in all." };
  };

test("three members work, and each is seen under its name", async () => {
  const service = await start(
    leads(roles("bees", "ants", "wasps"), ({ who, results }) =>
      results.length === 0
        ? { text: "I look.", calls: [{ id: "call_same", name: "look", args: { path: who } }] }
        : { text: `${who} are fine` },
    ),
  );
  const response = await service.post("/api/chat", swarm({ stream: true }));
  const runId = response.headers.get("x-run-id");
  const { events, text } = await readEvents(response);
  // R2: byte for byte.
  expect((await readEvents(await service.request(`/api/runs/${runId}/events`))).text).toBe(text);
  expect(agentsOf(events).sort()).toEqual(
    ["ants", "bees", "wasps"].flatMap((name) => [`${name} completed`, `${name} started`]),
  );
  expect(ofType(events, "agent")[0]).toMatchObject({ task: "Tell of bees.", parent: "dragoman" });
  for (const name of ["bees", "ants", "wasps"]) {
    const theirs = events.filter((event) => "agent" in event && event.agent === name);
    expect(theirs.map(({ type }) => type)).toEqual([
      ...["agent", "content", "tool_call", "tool_progress", "tool_result", "content", "agent"],
    ]);
    expect(theirs[5]).toMatchObject({ content: `\n\n${name} are fine` });
    expect(theirs[4]).toMatchObject({ name: "look", args: { path: name }, is_error: false });
  }
  expect(resultsOf(events)).toEqual(
    ["bees", "ants", "wasps"].map((agent) => ({ agent, status: "completed", result: `${agent} are fine` })),
  );
  expect(events.at(-1)).toMatchObject({
    type: "done",
    reply: "I delegate.\n\nAll in all.",
    // Two calls of the lead and two of each member.
    usage: { input_tokens: 80, output_tokens: 40 },
  });
  expect(done.sort()).toEqual(["look ants", "look bees", "look wasps"]);
});

test("members have rows and sessions of their own, which lists of sessions leave out", async () => {
  const service = await start(leads(roles("bees", "ants"), ({ who }) => ({ text: who })));
  const { session_id, run_id } = await json(await service.post("/api/chat", swarm()));
  const [, ...members] = await runsOf(service, run_id);
  expect(members.map(({ status, member }) => [status, member]).sort()).toEqual([
    ["completed", "ants"],
    ["completed", "bees"],
  ]);
  const { sessions } = await json(await service.request("/api/sessions?limit=200"));
  const listed = sessions.map(({ id }: { id: string }) => id);
  expect(listed).toContain(session_id);
  for (const member of members) expect(listed).not.toContain(member.session_id);
  const path = `/api/sessions/${members[0]?.session_id}/messages`;
  expect((await service.request(path)).status).toBe(200);
  // They go with the session that they belong to.
  await service.request(`/api/sessions/${session_id}`, { method: "DELETE" });
  expect((await service.request(path)).status).toBe(404);
  expect((await service.request(`/api/runs/${members[0]?.id}`)).status).toBe(404);
});

test("only so many members work at once", async () => {
  const together = Promise.withResolvers<void>();
  let begun = 0;
  const service = await start(
    leads(roles("a", "b", "c", "d", "e"), ({ who }) => {
      if (++begun === 2) together.resolve();
      return { text: who, until: together.promise };
    }),
    { env: { SWARM_CONCURRENCY: "2" } },
  );
  const events = await streamed(service, "/api/chat", swarm());
  expect(resultsOf(events)).toHaveLength(5);
  expect(service.model.most).toBe(2);
});

test("without use_swarm, with x-agent-tools none, or where policy denies it, nothing can be delegated", async () => {
  const service = await start(() => ({ text: "alone" }));
  await service.post("/api/chat", { message: "x" });
  expect(service.model.heard[0]?.request.tools.map(({ name }) => name)).toEqual(["look", "write"]);
  const APPROVAL = JSON.stringify({ rules: [{ tool: "delegate", decision: "deny" }] });
  const strict = await start(() => ({ text: "alone" }), { env: { APPROVAL } });
  await strict.post("/api/chat", swarm());
  expect(strict.model.heard[0]?.request.tools.map(({ name }) => name)).not.toContain("delegate");
});

describe("a member that fails", () => {
  test("is a result like the others", async () => {
    const fault = { code: "upstream_error" as const, message: "The upstream is down.", status: 502 };
    const service = await start(
      leads([...roles("good", "bad"), { agent: "nobody", task: "x" }], ({ who }) =>
        who === "bad" ? { fault } : { text: "fine" },
      ),
    );
    const events = await streamed(service, "/api/chat", swarm());
    expect(resultsOf(events)).toEqual([
      { agent: "good", status: "completed", result: "fine" },
      { agent: "bad", status: "failed", error: "The upstream is down." },
      { agent: "nobody", status: "failed", error: expect.stringContaining("no agent 'nobody'") },
    ]);
    expect(agentsOf(events)).toEqual(expect.arrayContaining(["bad failed", "nobody failed"]));
    expect(events.at(-1)).toMatchObject({ type: "done", reply: "I delegate.\n\nAll in all." });
  });

  test("with a schema it has one turn to correct itself", async () => {
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const tasks = ["right", "late", "never"].map((role) => ({ role, task: "Count.", schema }));
    const service = await start(
      leads(tasks, ({ who, said }) => {
        if (who === "right") return { text: '```json\n{"n": 1}\n```' };
        const second = said.startsWith("Your result is not what was asked for");
        return { text: who === "late" && second ? '{"n": 2}' : '{"n": "many"}' };
      }),
    );
    const events = await streamed(service, "/api/chat", swarm());
    expect(resultsOf(events)).toEqual([
      { agent: "right", status: "completed", result: { n: 1 } },
      { agent: "late", status: "completed", result: { n: 2 } },
      { agent: "never", status: "failed", error: expect.stringContaining('{"n": "many"}') },
    ]);
    expect(service.model.who().filter((who) => who !== "")).toHaveLength(5);
    expect(agentsOf(events)).toHaveLength(6);
  });
});

describe("what members share with their lead", () => {
  test("R2: its stop, which ends all of them within a second", async () => {
    const service = await start(leads(roles("a", "b", "c"), () => ({ text: "I begin", hang: true })));
    const response = await service.post("/api/chat", { ...swarm(), stream: true });
    const runId = response.headers.get("x-run-id") ?? "";
    const events = readEvents(response);
    while (service.model.heard.length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
    await service.post(`/api/runs/${runId}/stop`, {});
    expect((await events).events.at(-1)).toMatchObject({ type: "error", code: "cancelled" });
    expect((await runsOf(service, runId)).map(({ status }) => status)).toEqual(Array(4).fill("stopped"));
  });

  test("its stop ends those that wait for a decision, too", async () => {
    const service = await start(
      leads(roles("asks", "works"), ({ who }) =>
        who === "asks" ? { calls: [{ id: "w", name: "write", args: {} }] } : { text: "I begin", hang: true },
      ),
    );
    const response = await service.post("/api/chat", { ...swarm(), stream: true });
    const runId = response.headers.get("x-run-id") ?? "";
    const events = readEvents(response);
    const waiting = () => service.store.runs.waiting("local", START, 1);
    while (service.model.heard.length < 3 || (await waiting()).length === 0)
      await new Promise((resolve) => setTimeout(resolve, 5));
    await service.post(`/api/runs/${runId}/stop`, {});
    await events;
    expect((await runsOf(service, runId)).map(({ status }) => status)).toEqual(Array(3).fill("stopped"));
    expect(await waiting()).toEqual([]);
    expect(done).toEqual([]);
  });

  test("R6: its budget of tokens", async () => {
    const service = await start(
      leads(roles("a", "b"), ({ who, results }) => ({
        calls: [{ id: "c", name: "look", args: { path: `${who}${results.length}` } }],
        usage: { input: 500, output: 0 },
      })),
      { env: { RUN_TOKEN_BUDGET: "2000", SWARM_CONCURRENCY: "1" } },
    );
    const events = await streamed(service, "/api/chat", swarm());
    expect(done).toHaveLength(4);
    expect(resultsOf(events)[0]).toMatchObject({ note: expect.stringContaining("limit") });
    expect(events.at(-1)).toMatchObject({ type: "done", stop_reason: "limit_reached" });
  });

  test("a member can be stopped by itself, and the others go on", async () => {
    const service = await start(
      leads(roles("a", "b"), ({ who }) =>
        who === "a" ? { text: "I begin", hang: true } : { text: "ready" },
      ),
    );
    const response = await service.post("/api/chat", { ...swarm(), stream: true });
    const events = readEvents(response);
    while (service.model.heard.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    const runs = await runsOf(service, response.headers.get("x-run-id") ?? "");
    await service.post(`/api/runs/${runs.find(({ member }) => member === "a")?.id}/stop`, {});
    expect(resultsOf((await events).events)).toMatchObject([
      { agent: "a", status: "stopped" },
      { agent: "b", status: "completed" },
    ]);
  });

  test("E4: what it has read from outside", async () => {
    const page = { ...toolbox()[0], outside: true } as ReturnType<typeof toolbox>[number];
    const keep = { ...toolbox()[1], consent: "after-outside" } as typeof page;
    const service = await start(
      ({ who, results }) => {
        if (who !== "")
          return results.length === 0 ? { calls: [{ id: "w", name: "write", args: {} }] } : { text: "kept" };
        if (results.length === 0) return { calls: [{ id: "l", name: "look", args: {} }] };
        return results.length === 1 ? delegate(roles("a")) : { text: "ok" };
      },
      { tools: [page, keep] },
    );
    expect(await json(await service.post("/api/chat", swarm()))).toMatchObject({
      auth_required: true,
      pending_calls: [{ name: "write", agent: "a" }],
    });
  });
});

describe("an approval inside a member", () => {
  const writers =
    (count: number): Part =>
    (heard) =>
      leads(roles(...Array.from({ length: count }, (_, n) => `w${n}`), "reader"), ({ who, results }) => {
        if (who === "reader") return { text: "read" };
        if (results.length === 0)
          return { text: "I write.", calls: [{ id: "call_w", name: "write", args: { path: who } }] };
        return { text: results[0]?.startsWith("Not run") ? "denied" : "written" };
      })(heard);

  test("is shown in the lead's stream with the agent's name, decided there, and nobody begins anew", async () => {
    const service = await start(writers(1));
    const first = await streamed(service, "/api/chat", swarm());
    const { session_id, run_id } = first[0] as { session_id: string; run_id: string };
    const [asked] = ofType(first, "auth_required");
    expect(asked?.pending_calls).toMatchObject([{ name: "write", args: { path: "w0" }, agent: "w0" }]);
    expect(first.at(-1)).toMatchObject({ type: "done", auth_required: true });
    expect(await json(await service.request(`/api/runs/${run_id}`))).toMatchObject({
      status: "paused",
      pending_calls: [{ name: "write", agent: "w0" }],
    });
    const rest = await streamed(service, "/api/chat/approve", {
      session_id,
      approved: true,
      pending_calls: asked?.pending_calls,
    });
    expect(agentsOf(rest)).toEqual(["w0 completed"]);
    expect(ofType(rest, "tool_result")[0]).toMatchObject({
      name: "write",
      args: { path: "w0" },
      agent: "w0",
    });
    expect(resultsOf(rest)).toMatchObject([{ result: "written" }, { result: "read" }]);
    expect(rest.at(-1)).toMatchObject({ type: "done", reply: "I delegate.\n\nAll in all." });
    expect(done).toEqual(["write w0"]);
    expect(service.model.who().filter((who) => who === "reader")).toHaveLength(1);
    // The same decision again: the stored outcome.
    const again = await service.post("/api/chat/approve", { session_id, approved: true });
    expect([again.status, (await json(again)).reply]).toEqual([200, "I delegate.\n\nAll in all."]);
    expect(done).toEqual(["write w0"]);
  });

  test("some are approved, some denied; those left open stay open", async () => {
    const service = await start(writers(3));
    const first = await json(await service.post("/api/chat", swarm()));
    const { session_id, pending_calls: calls } = first;
    expect(calls.map(({ agent }: { agent: string }) => agent).sort()).toEqual(["w0", "w1", "w2"]);
    const decide = async (approved: boolean, ...agents: string[]) => {
      const pending_calls = calls.filter(({ agent }: { agent: string }) => agents.includes(agent));
      return json(await service.post("/api/chat/approve", { session_id, approved, pending_calls }));
    };
    const second = await decide(true, "w0");
    expect(second).toMatchObject({ auth_required: true });
    expect(second.pending_calls.map(({ agent }: { agent: string }) => agent).sort()).toEqual(["w1", "w2"]);
    expect(done).toEqual(["write w0"]);
    const third = await decide(false, "w1");
    expect(third.pending_calls).toMatchObject([{ agent: "w2" }]);
    const last = await json(await service.post("/api/chat/approve", { session_id, approved: true }));
    expect(last).toMatchObject({ auth_required: false });
    expect(done).toEqual(["write w0", "write w2"]);
    const { output } = last.tools.find(({ name }: { name: string }) => name === "delegate");
    expect(JSON.parse(output).results.map(({ result }: { result: string }) => result)).toEqual([
      ...["written", "denied", "written", "read"],
    ]);
  });

  test("scope session counts for all of the swarm", async () => {
    const service = await start((heard) => {
      if (heard.who === "")
        return heard.results.length < 2
          ? delegate(roles(`w${heard.results.length}`), `d${heard.results.length}`)
          : { text: "ok" };
      return heard.results.length === 0
        ? { calls: [{ id: "w", name: "write", args: { n: 1 } }] }
        : { text: "written" };
    });
    const { session_id } = await json(await service.post("/api/chat", swarm()));
    const body = { session_id, approved: true, scope: "session" };
    expect(await json(await service.post("/api/chat/approve", body))).toMatchObject({
      reply: expect.stringMatching(/ok$/),
    });
    expect(done).toEqual(["write 1", "write 1"]);
  });

  test("another owner cannot decide it, and one who goes on without it cancels it (A5, P2)", async () => {
    const env = { ACCESS_TOKENS: "ann:token-a,bob:token-b" };
    const service = await start(writers(1), { env });
    const post = (token: string, path: string, body: object) =>
      service.request(path, { method: "POST", token, json: body });
    const { session_id, pending_calls, run_id } = await json(await post("token-a", "/api/chat", swarm()));
    const decision = { session_id, approved: true, pending_calls };
    expect((await post("token-b", "/api/chat/approve", decision)).status).toBe(404);
    expect((await post("token-a", "/api/chat", { message: "Never mind.", session_id })).status).toBe(200);
    expect((await post("token-a", "/api/chat/approve", decision)).status).toBe(409);
    expect(done).toEqual([]);
    const [, ...theirs] = await runsOf(service, run_id, "token-a");
    expect(theirs.map(({ status }) => status).sort()).toEqual(["completed", "stopped"]);
  });

  test("nobody decides in time: lead and member end", async () => {
    const service = await start(writers(1));
    const { run_id } = await json(await service.post("/api/chat", swarm()));
    home.clock.now = new Date(START.getTime() + 25 * 60 * 60 * 1000);
    await service.services.runs.recover();
    expect(await json(await service.request(`/api/runs/${run_id}`))).toMatchObject({ status: "stopped" });
    expect(await service.store.runs.waiting("local", START, 10)).toEqual([]);
  });

  test("in chat completions it is asked in words and decided by its code", async () => {
    const service = await start(writers(1));
    await service.post("/api/agents", { name: "helper" });
    await service.post("/api/agents", { name: "boss", sub_agents: ["helper"] });
    const say = async (content: string) =>
      (
        await json(
          await service.post("/v1/chat/completions", {
            model: "dragoman/boss",
            messages: [{ role: "user", content }],
          }),
        )
      ).choices[0].message.content as string;
    const asked = await say("Go.");
    const code = /approve ([A-Z0-9-]+)/.exec(asked)?.[1];
    expect(await say(`approve ${code}`)).toContain("All in all.");
    expect(done).toEqual(["write w0"]);
  });
});

describe("named agents as members", () => {
  test("have their own instructions, tools and policy, through /v1 too; a lead with a name knows only its own", async () => {
    const service = await start(
      leads(
        [
          { agent: "looker", task: "Look." },
          { agent: "stranger", task: "x" },
        ],
        ({ results, request }) =>
          results.length === 0 && request.tools.length > 0
            ? { calls: [{ id: "l", name: "look", args: {} }] }
            : { text: "seen" },
      ),
    );
    const make = (body: object) => service.post("/api/agents", body);
    await make({
      name: "looker",
      description: "Looks.",
      instructions: "You look.",
      tools: ["look"],
      model: "eye",
    });
    await make({ name: "stranger" });
    await make({ name: "chief", tools: [], sub_agents: ["looker"] });
    const answer = await service.post("/v1/messages", {
      ...{ model: "dragoman/chief", max_tokens: 1000, messages: [{ role: "user", content: "Go." }] },
    });
    expect((await json(answer)).content.at(-1)).toMatchObject({ text: "All in all." });
    const [lead, member] = service.model.heard;
    expect(lead?.request.tools.map(({ name }) => name)).toEqual(["delegate"]);
    expect(JSON.stringify(lead?.request.tools)).toContain("looker: Looks.");
    expect(member?.request.tools.map(({ name }) => name)).toEqual(["look"]);
    expect(member?.request.model).toBe("eye");
    expect(JSON.stringify(member?.request.system)).toContain("You look.");
    expect(done).toEqual(["look"]);
    const results = service.model.heard.at(-1)?.results[0] ?? "";
    expect(JSON.parse(results).results).toMatchObject([
      { agent: "looker", status: "completed" },
      { agent: "stranger", status: "failed", error: expect.stringContaining("looker") },
    ]);
  });

  test("delegate in their turn as deep as SWARM_DEPTH lets them", async () => {
    const service = await start(
      ({ who, results, request }) => {
        const may = request.tools.some(({ name }) => name === "delegate");
        return may && results.length === 0
          ? delegate([{ agent: "self", task: "Deeper." }], "call_same")
          : { text: `end of ${who || "all"}` };
      },
      { env: { SWARM_DEPTH: "2" } },
    );
    await service.post("/api/agents", { name: "self", sub_agents: ["self"] });
    const events = await streamed(service, "/api/chat", { message: "Go.", agent_name: "self" });
    expect(agentsOf(events)).toEqual([
      ...["self started", "self/self started", "self/self completed", "self completed"],
    ]);
    expect(service.model.who()).toEqual(["", "self", "self/self", "self", ""]);
    expect(ofType(events, "agent")[1]).toMatchObject({ parent: "self" });
    expect(events.at(-1)).toMatchObject({ usage: { input_tokens: 50 } });
  });

  test("on another provider have the operator's key, and none where the caller has brought one", async () => {
    const service = await start(
      leads([{ agent: "far", task: "x" }], () => ({ text: "ok" })),
      {
        env: { ANTHROPIC_API_KEY: "sk-ant-operator" },
      },
    );
    await service.post("/api/agents", { name: "far", provider: "anthropic" });
    expect(resultsOf(await streamed(service, "/api/chat", swarm({ provider: "openai" })))).toMatchObject([
      { status: "completed" },
    ]);
    expect(service.keys).toEqual(["sk-operator", "sk-ant-operator"]);
    const events = await streamed(service, "/api/chat", swarm({ api_key: "sk-caller" }));
    expect(resultsOf(events)).toMatchObject([
      { status: "failed", error: expect.stringContaining("anthropic") },
    ]);
    expect(service.keys).toEqual(["sk-operator", "sk-ant-operator", "sk-caller"]);
  });

  test("P1: what would ask is denied to members where nobody can be asked", async () => {
    const service = await start(
      leads([{ agent: "helper", task: "x" }], ({ results }) =>
        results.length === 0 ? { calls: [{ id: "w", name: "write", args: {} }] } : { text: results[0] ?? "" },
      ),
    );
    await service.post("/api/agents", { name: "helper" });
    await service.post("/api/agents", { name: "boss", sub_agents: ["helper"] });
    const body = { model: "dragoman/boss", messages: [{ role: "user", content: "Go." }] };
    await service.post("/v1/chat/completions", body, { "x-approval": "deny" });
    expect(done).toEqual([]);
    expect(service.model.heard[1]?.request.tools.map(({ name }) => name)).toEqual(["look"]);
    expect(await service.store.runs.waiting("local", START, 1)).toEqual([]);
  });

  test("allowed_tools of the request hold for members", async () => {
    const service = await start(leads([{ agent: "any", task: "x" }], () => ({ text: "ok" })));
    await service.post("/api/agents", { name: "any" });
    await service.post("/api/chat", swarm({ allowed_tools: ["look"] }));
    expect(service.model.heard[1]?.request.tools.map(({ name }) => name)).toEqual(["look"]);
  });
});

test("debate: members see each other's answers, and the lead judges", async () => {
  const service = await start(
    leads(roles("yes", "no"), ({ who, said }) => ({
      text: said.includes("answers of the others") ? `${who} again` : `${who} at first`,
    })),
  );
  const events = await streamed(service, "/api/chat", {
    message: "Go?",
    swarm: { mode: "debate", rounds: 2 },
  });
  expect(resultsOf(events)).toEqual([
    { agent: "yes", status: "completed", result: "yes again" },
    { agent: "no", status: "completed", result: "no again" },
  ]);
  const second = service.model.heard.filter(({ said }) => said.includes("answers of the others"));
  expect(
    second.map(({ who, said }) => [who, said.includes(who === "yes" ? "no at first" : "yes at first")]),
  ).toEqual([
    ["yes", true],
    ["no", true],
  ]);
  expect(agentsOf(events)).toHaveLength(4);
});

describe("R1: a swarm that is killed half-way", () => {
  test("goes on with those who have not finished, and the answer comes", async () => {
    const held = new Promise(() => {});
    const part =
      (alive: boolean): Part =>
      (heard) =>
        leads(roles("a", "b", "c", "d", "e"), ({ who, results }) => {
          if (results.length === 0)
            return { text: "I look.", calls: [{ id: "c", name: "look", args: { path: who } }] };
          return { text: `${who} done`, ...(alive && "de".includes(who) ? { until: held } : {}) };
        })(heard);
    const first = await start(part(true));
    const response = await first.post("/api/chat", { ...swarm(), stream: true });
    const runId = response.headers.get("x-run-id") ?? "";
    void response.text().catch(() => {});
    const finished = async () =>
      (await runsOf(first, runId)).filter(({ status }) => status === "completed").length;
    while ((await finished()) < 3 || first.model.heard.length < 11)
      await new Promise((resolve) => setTimeout(resolve, 5));
    first.kill();
    home.clock.now = new Date(START.getTime() + 10 * 60 * 1000);
    const second = await start(part(false));
    await second.services.runs.recover();
    const { events } = await readEvents(await second.request(`/api/runs/${runId}/events`));
    expect(second.model.who().sort()).toEqual(["", "d", "e"]);
    expect(resultsOf(events).map(({ result }: { result: string }) => result)).toEqual(
      ["a", "b", "c", "d", "e"].map((name) => `${name} done`),
    );
    expect(events.at(-1)).toMatchObject({ type: "done", reply: expect.stringContaining("All in all.") });
    expect(done.sort()).toEqual(["look a", "look b", "look c", "look d", "look e"]);
    expect(
      agentsOf(events)
        .filter((each) => each.endsWith("completed"))
        .sort(),
    ).toEqual(["a", "b", "c", "d", "e"].map((name) => `${name} completed`));
    const record = await second.store.runs.get("local", runId);
    // Two of the lead's and two of each member's.
    expect(record?.usage).toMatchObject({ input: 120, output: 60 });
  });

  test("what is left of a swarm whose lead has ended ends too", async () => {
    const service = await start(leads(roles("a"), () => ({ text: "I begin", hang: true })));
    const response = await service.post("/api/chat", { ...swarm(), stream: true });
    const runId = response.headers.get("x-run-id") ?? "";
    while (service.model.heard.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    service.kill();
    void response.body?.cancel();
    const next = await start(() => ({ text: "x" }));
    home.clock.now = new Date(START.getTime() + 10 * 60 * 1000);
    await next.services.runs.stop("local", runId);
    await next.services.runs.recover();
    expect((await runsOf(next, runId)).map(({ status }) => status)).toEqual(["stopped", "stopped"]);
  });
});
