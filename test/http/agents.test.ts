/** Named agents: their records, and the runs that are theirs in every door. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ScriptedModel, type ScriptedReply, scriptedModel } from "../scripted-model.ts";
import { createHome, createService, done, json, START, type TestHome, type TestService } from "./service.ts";

let home: TestHome;
let service: TestService;
let model: ScriptedModel;

beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());
beforeEach(() => {
  home.clock.now = START;
  done.length = 0;
});
afterEach(async () => {
  const { agents } = await json(await get("/api/agents?limit=200"));
  for (const { id } of agents ?? []) await service.request(`/api/agents/${id}`, { method: "DELETE" });
  await service.close();
});

async function open(replies: ScriptedReply[] = [{ text: "ok" }], env: Record<string, string> = {}) {
  model = scriptedModel(replies);
  service = await createService(home, { model, env });
}

const get = (path: string) => service.request(path);
const make = (body: object) => service.post("/api/agents", body);
const patch = (id: string, body: object) =>
  service.request(`/api/agents/${id}`, { method: "PATCH", json: body });
const systemOf = (at = -1) => (model.requests.at(at)?.system ?? []).map(({ text }) => text).join("\n");
const toolsOf = (at = -1) => model.requests.at(at)?.tools.map(({ name }) => name);

describe("an agent's record", () => {
  test("is made, read by id and by name, changed and deleted", async () => {
    await open();
    const created = await make({
      ...{ name: "reviewer", description: "Reads.", instructions: "Be strict.", provider: "claude" },
      ...{ model: "m-1", tools: ["read_*"], policy: [{ tool: "*", decision: "ask" }] },
    });
    expect(created.status).toBe(201);
    const { agent_id: id, agent, status } = await json(created);
    expect([status, created.headers.get("location")]).toEqual(["created", `/api/agents/${id}`]);
    expect(agent).toEqual({
      ...{ id, name: "reviewer", description: "Reads.", instructions: "Be strict.", provider: "anthropic" },
      ...{ model: "m-1", tools: ["read_*"], policy: [{ tool: "*", decision: "ask" }], sub_agents: [] },
      ...{ created_at: START.toISOString(), updated_at: START.toISOString() },
    });
    expect(await json(await get("/api/agents/reviewer"))).toEqual(agent);
    expect(await json(await get(`/api/agents/${id}`))).toEqual(agent);
    home.clock.now = new Date(START.getTime() + 1000);
    const changed = await json(await patch("reviewer", { model: null, sub_agents: ["reviewer"] }));
    expect(changed.agent).toEqual({
      ...agent,
      ...{ model: null, sub_agents: ["reviewer"], updated_at: home.clock.now.toISOString() },
    });
    expect((await json(await get("/api/agents"))).agents).toEqual([changed.agent]);
    const gone = await service.request("/api/agents/reviewer", { method: "DELETE" });
    expect(await json(gone)).toEqual({ status: "deleted", deleted: 1 });
    for (const answer of [await get(`/api/agents/${id}`), await patch(id, { model: "x" })])
      expect(answer.status).toBe(404);
  });

  test.each([
    [{}, "name"],
    [{ name: "Has Capitals" }, "name"],
    [{ name: "raw" }, "name"],
    [{ name: "dragoman" }, "name"],
    [{ name: "agt_x" }, "name"],
    [{ name: "a", provider: "acme" }, "provider"],
    [{ name: "a", policy: [{ tool: "x", decision: "maybe" }] }, "policy[0].decision"],
    [{ name: "a", instructions: "x".repeat(70_000) }, "instructions"],
    [{ name: "a", sub_agents: ["a", "nobody"] }, "sub_agents[1]"],
  ])("%j is refused with the field at fault", async (body, path) => {
    await open();
    const answer = await make(body);
    expect(answer.status).toBe(400);
    const { detail } = await json(answer);
    expect(detail).toContain(path);
  });

  test("a name is taken once; the same request again by Idempotency-Key is not twice", async () => {
    await open();
    const headers = { "idempotency-key": "agent-1" };
    const first = await json(await service.post("/api/agents", { name: "one" }, headers));
    expect(await json(await service.post("/api/agents", { name: "one" }, headers))).toEqual(first);
    const again = await make({ name: "one" });
    expect([again.status, (await json(again)).detail]).toEqual([409, expect.stringContaining("'one'")]);
  });

  test("A5: another owner's agent is one that does not exist", async () => {
    const env = { ACCESS_TOKENS: "ann:token-a,bob:token-b" };
    await open([{ text: "ok" }], env);
    const as = (token: string, path: string, init: object = {}) => service.request(path, { token, ...init });
    const post = { method: "POST", json: { name: "mine", instructions: "Ann's." } };
    const { agent_id: id } = await json(await as("token-a", "/api/agents", post));
    expect((await as("token-b", "/api/agents", post)).status).toBe(201);
    await as("token-b", "/api/agents/mine", { method: "DELETE" });
    for (const ref of [id, "mine"]) {
      expect((await as("token-b", `/api/agents/${ref}`)).status).toBe(404);
      const change = { method: "PATCH", json: { model: "x" } };
      expect((await as("token-b", `/api/agents/${ref}`, change)).status).toBe(404);
      expect((await as("token-b", `/api/agents/${ref}`, { method: "DELETE" })).status).toBe(404);
    }
    expect((await json(await as("token-b", "/api/agents"))).agents).toEqual([]);
    const chat = { method: "POST", json: { message: "x", agent_name: "mine" } };
    const answer = await as("token-b", "/api/chat", chat);
    expect(answer.status).toBe(404);
    expect((await json(answer)).detail).toContain("The agents are: dragoman.");
    expect((await as("token-a", "/api/chat", chat)).status).toBe(200);
    await as("token-a", `/api/agents/${id}`, { method: "DELETE" });
  });
});

describe("a run of a named agent", () => {
  const reviewer = { name: "reviewer", instructions: "You review.", model: "m-review", tools: ["lo*"] };

  test.each([
    ["by agent_name", "/api/chat", { message: "x", agent_name: "reviewer" }, "m-review"],
    ["by model in chat", "/api/chat", { message: "x", model: "dragoman/reviewer" }, "m-review"],
    ["by agent_name on a model", "/api/chat", { message: "x", agent_name: "reviewer", model: "m" }, "m"],
    ["in chat completions", "/v1/chat/completions", { model: "dragoman/reviewer" }, "m-review"],
    ["in chat completions on a model", "/v1/chat/completions", { model: "dragoman/reviewer@m2" }, "m2"],
    ["in messages", "/v1/messages", { model: "dragoman/reviewer", max_tokens: 100 }, "m-review"],
  ])("%s has its instructions, tools and model", async (_, path, body, upstream) => {
    await open();
    await make(reviewer);
    const messages = path === "/api/chat" ? {} : { messages: [{ role: "user", content: "x" }] };
    const answer = await service.post(path, { ...body, ...messages });
    expect(answer.status).toBe(200);
    expect(systemOf()).toContain("You review.");
    expect(toolsOf()).toEqual(["look"]);
    expect(model.requests.at(-1)?.model).toBe(upstream);
    expect(answer.headers.get("x-upstream-model")).toBe(upstream);
  });

  test("its name stands with its run and its messages", async () => {
    await open();
    await make(reviewer);
    const body = { message: "x", agent_name: "reviewer" };
    const { run_id, session_id } = await json(await service.post("/api/chat", body));
    expect(await json(await get(`/api/runs/${run_id}`))).toMatchObject({ agent: "reviewer" });
    await service.post("/api/chat", { message: "y", session_id });
    const { messages } = await json(await get(`/api/sessions/${session_id}/messages`));
    expect(messages.map(({ agent }: { agent: string }) => agent)).toEqual([
      null,
      "reviewer",
      null,
      "dragoman",
    ]);
  });

  test.each([
    ["/api/chat", { message: "x", agent_name: "nobody" }],
    ["/api/chat", { message: "x", model: "dragoman/nobody" }],
    ["/v1/chat/completions", { model: "dragoman/nobody@m", messages: [{ role: "user", content: "x" }] }],
    ["/v1/messages", { model: "dragoman/nobody", max_tokens: 9, messages: [{ role: "user", content: "x" }] }],
    ["/v1/messages/count_tokens", { model: "dragoman/nobody", messages: [{ role: "user", content: "x" }] }],
  ])("%s of an agent that does not exist is a 404 that lists the agents", async (path, body) => {
    await open();
    await make({ name: "one" });
    await make({ name: "two" });
    const answer = await service.post(path, body);
    expect(answer.status).toBe(404);
    expect(await answer.text()).toContain("The agents are: dragoman, one, two.");
    expect(model.requests).toEqual([]);
  });

  test("the two words for an agent may not contradict each other", async () => {
    await open();
    await make({ name: "one" });
    await make({ name: "two" });
    const ask = (body: object) => service.post("/api/chat", { message: "x", ...body });
    expect((await ask({ agent_name: "one", model: "dragoman/two" })).status).toBe(400);
    expect((await ask({ agent_name: "dragoman", model: "dragoman/two" })).status).toBe(400);
    expect((await ask({ agent_name: "one", model: "dragoman/one" })).status).toBe(200);
    expect((await ask({ agent_name: "one", model: "dragoman" })).status).toBe(200);
    expect((await ask({ agent_name: "dragoman" })).status).toBe(200);
  });

  test("GET /v1/models lists the owner's agents", async () => {
    await open();
    await make({ name: "one" });
    const { data } = await json(await get("/v1/models"));
    expect(data.map(({ id }: { id: string }) => id)).toEqual(["dragoman", "dragoman/one"]);
    expect(await json(await get("/v1/models/dragoman/one"))).toMatchObject({ id: "dragoman/one" });
  });

  test("its provider is that of its model; a caller's key of another provider is not sent there", async () => {
    await open([{ text: "ok" }], { ANTHROPIC_API_KEY: "sk-ant-operator" });
    await make({ name: "far", provider: "anthropic", model: "claude" });
    const ask = (more: object) => service.post("/api/chat", { message: "x", agent_name: "far", ...more });
    expect((await ask({})).status).toBe(200);
    expect((await ask({ api_key: "sk-ant-mine" })).status).toBe(200);
    const other = await ask({ api_key: "sk-mine" });
    expect([other.status, (await json(other)).detail]).toEqual([400, expect.stringContaining("anthropic")]);
    expect((await ask({ api_key: "sk-mine", provider: "openai", model: "gpt" })).status).toBe(200);
    expect(service.keys).toEqual(["sk-ant-operator", "sk-ant-mine", "sk-mine"]);
  });
});

describe("P1: an agent's policy narrows the operator's", () => {
  const write = (n: number): ScriptedReply => ({
    calls: [{ id: `call_${n}`, name: "write", args: { path: `p${n}` } }],
  });
  const chat = (more: object = {}) =>
    service.post("/api/chat", { message: "x", agent_name: "narrow", ...more });

  test("what it allows, the operator still asks about", async () => {
    await open([write(1), { text: "ok" }]);
    await make({ name: "narrow", policy: [{ tool: "*", decision: "allow" }] });
    expect(await json(await chat())).toMatchObject({ auth_required: true });
    expect(done).toEqual([]);
  });

  test("what the operator denies it cannot allow, nor is it offered", async () => {
    const APPROVAL = JSON.stringify({ default: "ask", rules: [{ tool: "write", decision: "deny" }] });
    await open([write(1), { text: "ok" }], { APPROVAL });
    await make({ name: "narrow", tools: ["*"], policy: [{ tool: "write", decision: "allow" }] });
    await chat();
    expect(toolsOf(0)).toEqual(["look"]);
    expect(done).toEqual([]);
  });

  test("what it asks about is asked although the operator allows it, through the decision and a restart", async () => {
    await open([write(1), write(2), { text: "ok" }], { APPROVAL: "auto" });
    const rules = [
      { tool: "write", decision: "ask" },
      { tool: "write", args: { path: "p2" }, decision: "deny" },
    ];
    await make({ name: "narrow", policy: rules });
    const { session_id, auth_required } = await json(await chat());
    expect(auth_required).toBe(true);
    // The run keeps the rules that it began with.
    await patch("narrow", { policy: [] });
    await service.close();
    service = await createService(home, { model, env: { APPROVAL: "auto" } });
    const after = await json(await service.post("/api/chat/approve", { session_id, approved: true }));
    expect(after).toMatchObject({ auth_required: false, reply: "ok" });
    expect(done).toEqual(["write p1"]);
    expect(after.tools.map((each: { is_error: boolean }) => each.is_error)).toEqual([false, true]);
  });

  test("allowed_tools and the agent's tools both count", async () => {
    await open();
    await make({ name: "narrow", tools: ["look"] });
    const answer = await json(await chat({ allowed_tools: ["write", "look"] }));
    expect(answer.reply).toBe("ok");
    expect(toolsOf()).toEqual(["look"]);
    await chat({ allowed_tools: ["write"] });
    expect(toolsOf()).toEqual([]);
  });
});
