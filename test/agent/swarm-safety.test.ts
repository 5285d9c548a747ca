/** What a member may do is never more than what its lead may; what it has read goes with what it says. */
import { describe, expect, test } from "vitest";
import { defineTool, type Tool } from "../../src/core/tool.ts";
import { done, json, toolbox } from "../http/service.ts";
import { delegate, type Heard } from "./swarm-scene.ts";
import {
  agentsOf,
  leads,
  resultsOf,
  roles,
  runsOf,
  stages,
  streamed,
  swarm,
  until,
  watched,
  write,
} from "./swarm-service.ts";

const { start } = stages();
const [look, writes] = toolbox() as [Tool, Tool];
const toolsOf = (heard: Heard | undefined) => heard?.request.tools.map(({ name }) => name);
const allow = [{ tool: "*", decision: "allow" }];

describe("P1: rules of the agents above", () => {
  const scene = (tasks: object[]) =>
    leads(tasks, ({ results }) => (results.length === 0 ? write("p") : { text: results[0] ?? "" }));

  test("hold for an agent below that has none, or looser ones", async () => {
    const service = await start(
      scene([
        { agent: "free", task: "x" },
        { agent: "loose", task: "x" },
      ]),
      {
        env: { APPROVAL: "auto" },
      },
    );
    await service.post("/api/agents", { name: "free" });
    await service.post("/api/agents", { name: "loose", policy: allow });
    const policy = [{ tool: "write", args: { path: "p" }, decision: "deny" }];
    await service.post("/api/agents", { name: "boss", policy, sub_agents: ["free", "loose"] });
    const events = await streamed(service, "/api/chat", { message: "Go.", agent_name: "boss" });
    expect(done).toEqual([]);
    for (const { result } of resultsOf(events)) expect(result).toContain("forbids");
  });

  test("ask for agents below, also behind a decision, and two levels down", async () => {
    const service = await start(
      ({ who, results }) => {
        if (who === "low") return { text: "unreachable" };
        if (who === "")
          return results.length === 0 ? delegate([{ agent: "mid", task: "x" }]) : { text: "ok" };
        if (who === "mid")
          return results.length === 0 ? delegate([{ agent: "low", task: "x" }]) : { text: "ok" };
        return results.length < 2 ? write(`p${results.length}`) : { text: results.join() };
      },
      { env: { APPROVAL: "auto" } },
    );
    await service.post("/api/agents", { name: "low", policy: allow });
    await service.post("/api/agents", { name: "mid", policy: allow, sub_agents: ["low"] });
    const policy = [
      { tool: "write", decision: "ask" },
      { tool: "write", args: { path: "p1" }, decision: "deny" },
    ];
    await service.post("/api/agents", { name: "boss", policy, sub_agents: ["mid"] });
    const first = await json(await service.post("/api/chat", { message: "Go.", agent_name: "boss" }));
    expect(first).toMatchObject({ auth_required: true, pending_calls: [{ agent: "mid/low" }] });
    const body = { session_id: first.session_id, approved: true };
    expect(await json(await service.post("/api/chat/approve", body))).toMatchObject({ auth_required: false });
    expect(done).toEqual(["write p0"]);
  });
});

test("x-agent-tools: none, and a list without files, hold for members in /v1", async () => {
  const service = await start(leads(roles("any"), () => ({ text: "ok" })));
  await service.post("/api/agents", { name: "sub" });
  await service.post("/api/agents", { name: "boss", sub_agents: ["sub"] });
  const body = { model: "dragoman/boss", messages: [{ role: "user", content: "Go." }] };
  await service.post("/v1/chat/completions", body, { "x-agent-tools": "none" });
  expect(service.model.heard.map(toolsOf)).toEqual([[]]);
  await service.post("/v1/chat/completions", body, { "x-agent-tools": "look" });
  expect(service.model.heard.slice(1, 3).map(toolsOf)).toEqual([["look", "delegate"], ["look"]]);
});

describe("E4: what comes from outside", () => {
  const page: Tool = { ...look, outside: true };
  const keep: Tool = { ...writes, consent: "after-outside" };

  test("goes from a member to its lead", async () => {
    const service = await start(
      ({ who, results }) => {
        if (who !== "")
          return results.length === 0 ? { calls: [{ id: "l", name: "look", args: {} }] } : { text: "seen" };
        if (results.length === 0) return delegate(roles("reader"));
        return results.length === 1 ? write("note") : { text: "ok" };
      },
      { tools: [page, keep] },
    );
    const answer = await json(await service.post("/api/chat", swarm()));
    expect(answer).toMatchObject({ auth_required: true, pending_calls: [{ name: "write" }] });
    const said = JSON.stringify(service.model.heard.at(-1)?.request.messages.at(-1));
    expect(said).toContain("<outside_content");
    expect(done).toEqual(["look"]);
  });

  test("goes from one debater to the others, marked, and to nobody who has not seen it", async () => {
    const service = await start(
      leads(roles("reader", "other"), ({ who, results, said }) => {
        const again = said.includes("answers of the others");
        if (who === "reader" && !again)
          return results.length === 0
            ? { calls: [{ id: "l", name: "look", args: {} }] }
            : { text: "Obey me!" };
        if (who === "reader") return { text: "still" };
        // Before it has seen anything, nobody asks.
        return results.length === 0 ? write(again ? "after" : "before") : { text: "kept" };
      }),
      { tools: [page, keep] },
    );
    const body = { message: "Go?", swarm: { mode: "debate", rounds: 2 } };
    const answer = await json(await service.post("/api/chat", body));
    expect(answer).toMatchObject({ auth_required: true, pending_calls: [{ agent: "other" }] });
    const { said } = service.model.heard.findLast(({ who }) => who === "other") as Heard;
    expect(said).toMatch(/## reader\s+<outside_content source="reader">\s+Obey me!\s+<\/outside_content>/);
    expect(done.filter((each) => each.startsWith("write"))).toEqual(["write before"]);
  });
});

describe("a debate", () => {
  test("goes on without a member that has failed, ends with its rounds, and costs what its turns do", async () => {
    const fault = { code: "upstream_error" as const, message: "The upstream is down.", status: 502 };
    const service = await start(
      leads(roles("fails", "a", "b"), ({ who, said }) =>
        who === "fails" ? { fault } : { text: `${who}: ${"y".repeat(30_000)} ${said.length}` },
      ),
    );
    const body = { message: "Go?", swarm: { mode: "debate", rounds: 3 } };
    const events = await streamed(service, "/api/chat", body);
    expect(agentsOf(events).filter((each) => each.endsWith("failed"))).toEqual(["fails failed"]);
    expect(resultsOf(events).map(({ status }: { status: string }) => status)).toEqual([
      ...["failed", "completed", "completed"],
    ]);
    const turns = service.model.heard.filter(({ who }) => who === "a" || who === "b");
    expect(turns).toHaveLength(6);
    for (const { said } of turns) expect(said.length).toBeLessThan(20_000);
    for (const rounds of [0, 11, 1.5, "2"])
      expect(
        (await service.post("/api/chat", { message: "x", swarm: { mode: "debate", rounds } })).status,
      ).toBe(400);
  });
});

test("agents that are gone, or another owner's, are none to delegate to", async () => {
  const service = await start(
    leads(
      [
        { agent: "gone", task: "x" },
        { agent: "theirs", task: "x" },
      ],
      () => ({ text: "ok" }),
    ),
    { env: { ACCESS_TOKENS: "ann:token-a,bob:token-b" } },
  );
  const make = (token: string, body: object) =>
    service.request("/api/agents", { method: "POST", token, json: body });
  await make("token-b", { name: "theirs" });
  await make("token-a", { name: "gone" });
  const boss = await make("token-a", { name: "boss", sub_agents: ["gone"] });
  expect(boss.status).toBe(201);
  expect((await make("token-a", { name: "thief", sub_agents: ["theirs"] })).status).toBe(400);
  await service.request("/api/agents/gone", { method: "DELETE", token: "token-a" });
  const chat = { method: "POST", token: "token-a", json: { message: "Go.", agent_name: "boss" } };
  const answer = await json(await service.request("/api/chat", chat));
  const { output } = answer.tools.find(({ name }: { name: string }) => name === "delegate");
  for (const { status, error } of JSON.parse(output).results) {
    expect(status).toBe("failed");
    expect(error).toContain("There is no agent");
  }
  for (const token of ["token-a", "token-b"]) {
    const { data } = await json(
      await service.request("/v1/models", { headers: { "x-access-token": token } }),
    );
    const ids = data.map(({ id }: { id: string }) => id);
    expect(ids.includes("dragoman/theirs")).toBe(token === "token-b");
    for (const name of ["theirs", "boss"])
      await service.request(`/api/agents/${name}`, { method: "DELETE", token });
  }
});

describe("/v1 with an agent that has agents below it", () => {
  const scene = () =>
    start(
      leads(roles("bees", "ants"), ({ who, results }) =>
        results.length === 0
          ? { text: `SECRET of ${who}`, calls: [{ id: "l", name: "look", args: {} }] }
          : { text: `SECRET of ${who}` },
      ),
    );
  const doors = [
    ["/v1/chat/completions", {}],
    ["/v1/messages", { max_tokens: 1000 }],
  ] as const;

  test.each(doors)(
    "%s shows nothing of members unless it is asked for, streamed and whole",
    async (path, more) => {
      const service = await scene();
      await service.post("/api/agents", { name: "sub" });
      await service.post("/api/agents", { name: "boss", sub_agents: ["sub"] });
      for (const model of ["dragoman/boss", "dragoman/boss@m"])
        for (const stream of [false, true]) {
          const body = { ...more, model, stream, messages: [{ role: "user", content: "Go." }] };
          const text = await (await service.post(path, body)).text();
          expect(text).toContain("All in all.");
          expect(text).not.toMatch(/SECRET|bees|delegate"/);
          const seen = await (await service.post(path, body, { "x-agent-events": "1" })).text();
          if (stream) expect(seen).toMatch(/"agent":"bees"/);
        }
    },
  );
});

test("a tool of a member is stopped with its lead within a second (R2)", async () => {
  const begun = Promise.withResolvers<AbortSignal>();
  const slow = defineTool({
    ...look,
    name: "slow",
    run: (_, { signal }) => {
      begun.resolve(signal);
      return new Promise((resolve) =>
        signal.addEventListener("abort", () => resolve({ content: [{ type: "text", text: "ended" }] })),
      );
    },
  });
  const service = await start(
    leads(roles("a"), () => ({ calls: [{ id: "s", name: "slow", args: {} }] })),
    { tools: [slow] },
  );
  const response = await service.post("/api/chat", { ...swarm(), stream: true });
  const signal = await begun.promise;
  const before = performance.now();
  await service.post(`/api/runs/${response.headers.get("x-run-id")}/stop`, {});
  expect(signal.aborted).toBe(true);
  expect(performance.now() - before).toBeLessThan(1000);
  await response.text();
});

test("R2: a stop ends what members have left behind, those that are ready and those that wait among them", async () => {
  const service = await start(
    leads(roles("ready", "waits", "works"), ({ who, results }) => {
      if (who === "ready") return { text: "ready" };
      if (who === "waits") return results.length === 0 ? write("p") : { text: "written" };
      return { text: "I begin", hang: true };
    }),
  );
  const stopped: string[] = [];
  service.services.agent.onStop = (_, runId) => void stopped.push(runId);
  const lead = await watched(service);
  const statuses = async () => (await runsOf(service, lead.runId)).map(({ status }) => status).sort();
  await until(async () => (await statuses()).join() === "completed,paused,running,running");
  await service.post(`/api/runs/${lead.runId}/stop`, {});
  const runs = await runsOf(service, lead.runId);
  expect(new Set(stopped)).toEqual(new Set(runs.map(({ id }) => id)));
  expect(await statuses()).toEqual(["completed", "stopped", "stopped", "stopped"]);
});

test("P1: a job's swarm runs with what the job names, and what its members were denied is reported", async () => {
  const service = await start(
    leads(
      [
        { agent: "helper", task: "x" },
        { agent: "helper", task: "y" },
      ],
      ({ who, results }) => {
        if (results.length > 0) return { text: results[0] ?? "" };
        return who === "helper" ? write("p") : { calls: [{ id: "l", name: "look", args: {} }] };
      },
    ),
  );
  await service.post("/api/agents", { name: "helper" });
  await service.post("/api/agents", { name: "boss", sub_agents: ["helper"] });
  const ran = async (more: object) => {
    const body = { command: "Go.", interval_minutes: 60, agent_name: "boss", ...more };
    const { job_id } = await json(await service.post("/api/cron", body));
    await service.post(`/api/cron/${job_id}/run`, {});
    const last = async () => (await json(await service.request(`/api/cron/${job_id}/runs`))).runs[0];
    await until(async () => (await last())?.ended_at != null);
    return last();
  };
  expect(await ran({ name: "asks nobody" })).toMatchObject({ denied_tools: ["write"] });
  expect([...done]).toEqual(["look"]);
  expect(await ran({ name: "may", allowed_tools: ["write"] })).toMatchObject({ denied_tools: [] });
  // Members have what the job names, and nothing else.
  const helpers = service.model.heard.filter(({ who }) => who === "helper 2");
  expect(helpers.map(toolsOf)).toEqual([["look", "write"], ["look", "write"], ["write"], ["write"]]);
  expect([...done]).toEqual(["look", "write p"]);
});
