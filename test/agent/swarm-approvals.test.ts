/** Decisions on the calls of members while others still work: seen at once, acted on at once, and once. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { RunView } from "../../src/protocols/native-chat-records.ts";
import { done, json, ofType } from "../http/service.ts";
import { delegate } from "./swarm-scene.ts";
import {
  agentsOf,
  leads,
  resultsOf,
  roles,
  runsOf,
  stages,
  streamed,
  until,
  watched,
  write,
} from "./swarm-service.ts";

const { start } = stages();

/** `asks` writes, and `works` is at it until it is let go. */
async function halfParked() {
  const free = Promise.withResolvers<void>();
  const service = await start(
    leads(roles("asks", "works"), ({ who, results }) => {
      if (who === "works") return { text: "worked", until: free.promise };
      return results.length === 0 ? write("p") : { text: `heard: ${results[0]?.slice(0, 7)}` };
    }),
  );
  const lead = await watched(service);
  await until(async () => (await lead.run()).pending_calls.length > 0);
  const asking = async () => (await runsOf(service, lead.runId)).find((run) => run.member === "asks");
  await until(async () => (await asking())?.status === "paused");
  const member = (await asking()) as RunView;
  return { service, free: () => free.resolve(), lead, member };
}

const decide = (approved: boolean, session_id: string, ids: string[] = []) => ({
  ...{ session_id, approved },
  pending_calls: ids,
});

describe("P2: a member's call, while another member works", () => {
  test("is seen with the lead and with the member, and in the stream", async () => {
    const { service, free, lead, member } = await halfParked();
    const seen = await lead.run();
    expect(seen).toMatchObject({ status: "running", pending_calls: [{ name: "write", agent: "asks" }] });
    expect(await json(await service.request(`/api/runs/${member.id}`))).toMatchObject({
      status: "paused",
      pending_calls: seen.pending_calls,
    });
    const { runs } = await json(await service.request("/api/runs"));
    for (const { id, pending_calls } of runs as RunView[])
      expect(pending_calls.length, id).toBe(id === lead.runId || id === member.id ? 1 : 0);
    free();
    const { events } = await lead.over;
    expect(agentsOf(events)).toEqual(["asks started", "works started", "asks waiting", "works completed"]);
    expect(ofType(events, "agent")[2]).toMatchObject({ agent: "asks", pending_calls: seen.pending_calls });
    // The run itself is parked only now.
    expect(events.slice(-2)).toMatchObject([
      { type: "auth_required", pending_calls: seen.pending_calls },
      { type: "done", auth_required: true },
    ]);
    expect(done).toEqual([]);
  });

  test.each([
    ["by its id, in the session of the lead", true, "lead"],
    ["by its id, in its own session", true, "member"],
    ["all that is open, in its own session", true, "all"],
    ["denied", false, "lead"],
  ] as const)("is decided %s: it goes on at once, and the run never parks", async (_, approved, where) => {
    const { service, free, lead, member } = await halfParked();
    const ids = where === "all" ? [] : (await lead.run()).pending_calls.map(({ id }: { id: string }) => id);
    const body = decide(approved, where === "lead" ? lead.sessionId : member.session_id, ids);
    const answer = service.post("/api/chat/approve", body);
    // The other one still works.
    await until(async () => (await runsOf(service, lead.runId)).some(({ status }) => status === "completed"));
    expect((await lead.run()).status).toBe("running");
    expect(done).toEqual(approved ? ["write p"] : []);
    expect((await lead.run()).pending_calls).toEqual([]);
    free();
    const { events } = await lead.over;
    expect(ofType(events, "auth_required")).toEqual([]);
    expect(agentsOf(events).slice(2)).toEqual(["asks waiting", "asks completed", "works completed"]);
    expect(events.at(-1)).toMatchObject({ type: "done", auth_required: false });
    expect(resultsOf(events)[0].result).toBe(`heard: ${approved ? "write h" : "Not run"}`);
    const whole = await json(await answer);
    expect(whole).toMatchObject({ run_id: lead.runId, auth_required: false, pending_calls: [] });
    // Again: the stored outcome.
    expect(await json(await service.post("/api/chat/approve", body))).toMatchObject({ reply: whole.reply });
    expect(done).toEqual(approved ? ["write p"] : []);
  });

  test("of a member that is stopped meanwhile can be decided no more, and the others go on", async () => {
    const { service, free, lead, member } = await halfParked();
    const stopped = await service.post(`/api/runs/${member.id}/stop`, {});
    expect(await json(stopped)).toMatchObject({ status: "stopped" });
    await until(async () => (await lead.run()).pending_calls.length === 0);
    expect((await service.post("/api/chat/approve", decide(true, lead.sessionId))).status).not.toBe(200);
    free();
    const { events } = await lead.over;
    expect(resultsOf(events)).toMatchObject([{ status: "stopped" }, { status: "completed" }]);
    expect(done).toEqual([]);
  });

  test("is acted on at once while members of another call of the same turn work", async () => {
    const free = Promise.withResolvers<void>();
    const service = await start(({ who, results }) => {
      if (who === "works") return { text: "worked", until: free.promise };
      if (who === "asks") return results.length === 0 ? write("p") : { text: "written" };
      if (results.length > 0) return { text: "All in all." };
      const calls = ["asks", "works"].map((name) => delegate(roles(name), `call_${name}`).calls ?? []);
      return { calls: calls.flat() };
    });
    const lead = await watched(service);
    await until(async () => (await lead.run()).pending_calls.length > 0);
    void service.post("/api/chat/approve", decide(true, lead.sessionId));
    await until(() => done.length === 1);
    free.resolve();
    const { events } = await lead.over;
    expect(ofType(events, "auth_required")).toEqual([]);
    expect(events.at(-1)).toMatchObject({ type: "done", auth_required: false });
  });

  test("is decided through another process, and acted on where the run is", async () => {
    const { free, lead } = await halfParked();
    const other = await start(() => ({ text: "not asked" }));
    const answer = other.post("/api/chat/approve", decide(true, lead.sessionId));
    await until(() => done.length === 1);
    free();
    expect(await json(await answer)).toMatchObject({ run_id: lead.runId, auth_required: false });
    expect((await lead.over).events.at(-1)).toMatchObject({ type: "done", auth_required: false });
    expect(other.model.heard).toEqual([]);
    expect(done).toEqual(["write p"]);
  });

  test("is decided by its code, where a /v1 client watches its members", async () => {
    const free = Promise.withResolvers<void>();
    const service = await start(
      leads(roles("asks", "works"), ({ who, results }) => {
        if (who === "works") return { text: "worked", until: free.promise };
        return results.length === 0 ? write("p") : { text: "written" };
      }),
    );
    await service.post("/api/agents", { name: "sub" });
    await service.post("/api/agents", { name: "boss", sub_agents: ["sub"] });
    const say = (content: string, more: object = {}) => ({
      ...{ model: "dragoman/boss", messages: [{ role: "user", content }] },
      ...more,
    });
    const path = "/v1/chat/completions";
    const watching = await service.post(path, say("Go.", { stream: true }), { "x-agent-events": "1" });
    const reader = (watching.body as ReadableStream<BufferSource>)
      .pipeThrough(new TextDecoderStream())
      .getReader();
    let seen = "";
    const code = () => /"code":"([A-Z0-9]+)"/.exec(seen)?.[1];
    while (code() === undefined) seen += (await reader.read()).value ?? "";
    const answer = await service.post(path, say(`approve ${code()}`));
    // It is taken, and the reply comes where the run is watched.
    expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining("is taken")]);
    await until(() => done.length === 1);
    free.resolve();
    for (let next = await reader.read(); !next.done; next = await reader.read()) seen += next.value;
    expect(seen).toContain("All in all.");
    expect(seen).not.toContain("needs your approval");
    expect((await service.post(path, say(`approve ${code()}`))).status).toBe(409);
    expect(done).toEqual(["write p"]);
  });

  test("with scope session: those that still work are not asked any more", async () => {
    const free = Promise.withResolvers<void>();
    const service = await start(
      leads(roles("asks", "works"), ({ who, results }) => {
        if (results.length > 0) return { text: "written" };
        return {
          calls: [{ id: "w", name: "write", args: { n: 1 } }],
          ...(who === "works" ? { until: free.promise } : {}),
        };
      }),
    );
    const lead = await watched(service);
    await until(async () => (await lead.run()).pending_calls.length > 0);
    void service.post("/api/chat/approve", { ...decide(true, lead.sessionId), scope: "session" });
    await until(() => done.length === 1);
    free.resolve();
    const { events } = await lead.over;
    expect(ofType(events, "auth_required")).toEqual([]);
    expect(events.at(-1)).toMatchObject({ type: "done", auth_required: false });
    expect(done).toEqual(["write 1", "write 1"]);
  });

  test("of a member's member is decided in the same way", async () => {
    const free = Promise.withResolvers<void>();
    const service = await start(({ who, results }) => {
      if (who === "" && results.length === 0)
        return delegate([{ agent: "mid", task: "x" }, ...roles("works")]);
      if (who === "mid" && results.length === 0) return delegate([{ agent: "low", task: "y" }]);
      if (who === "" || who === "mid") return { text: "ready" };
      if (who === "works") return { text: "worked", until: free.promise };
      return results.length === 0 ? write("deep") : { text: "written" };
    });
    await service.post("/api/agents", { name: "low" });
    await service.post("/api/agents", { name: "mid", sub_agents: ["low"] });
    const lead = await watched(service);
    await until(async () => (await lead.run()).pending_calls.length > 0);
    expect((await lead.run()).pending_calls).toMatchObject([{ agent: "mid/low" }]);
    const mid = (await runsOf(service, lead.runId)).find(({ member }) => member === "mid") as RunView;
    await until(async () => (await json(await service.request(`/api/runs/${mid.id}`))).status === "paused");
    expect(await json(await service.request(`/api/runs/${mid.id}`))).toMatchObject({
      pending_calls: [{ agent: "mid/low" }],
    });
    void service.post("/api/chat/approve", decide(true, mid.session_id));
    await until(() => done.length === 1);
    free.resolve();
    const { events } = await lead.over;
    expect(events.at(-1)).toMatchObject({ type: "done", auth_required: false });
    // Each says for itself that it waits.
    expect(agentsOf(events).filter((each) => each.endsWith("waiting"))).toEqual(["mid/low waiting"]);
    expect(done).toEqual(["write deep"]);
  });

  test("whatever is decided when, by whom and how often: each call runs once or never, and all come to an end", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ approved: fc.boolean(), early: fc.boolean(), twice: fc.boolean() }), {
          minLength: 1,
          maxLength: 4,
        }),
        async (decisions) => {
          done.length = 0;
          const free = Promise.withResolvers<void>();
          const names = decisions.map((_, index) => `w${index}`);
          const service = await start(
            leads(roles(...names, "works"), ({ who, results }) => {
              if (who === "works") return { text: "worked", until: free.promise };
              return results.length === 0 ? write(who) : { text: "after" };
            }),
          );
          const lead = await watched(service);
          const calls = async () => (await lead.run()).pending_calls as { id: string; agent: string }[];
          await until(async () => (await calls()).length === names.length);
          const ids = new Map((await calls()).map(({ agent, id }) => [agent, id]));
          const asked: Promise<Response>[] = [];
          const send = (index: number) => {
            const { approved, twice } = decisions[index] as (typeof decisions)[number];
            const body = decide(approved, lead.sessionId, [ids.get(`w${index}`) as string]);
            for (let count = twice ? 2 : 1; count > 0; count--)
              asked.push(Promise.resolve(service.post("/api/chat/approve", body)));
          };
          for (const [index, { early }] of decisions.entries()) if (early) send(index);
          free.resolve();
          for (const [index, { early }] of decisions.entries()) if (!early) send(index);
          await lead.over;
          for (const answer of asked) expect((await answer).status).toBe(200);
          await until(async () => (await lead.run()).status === "completed");
          expect([...done].sort()).toEqual(
            names.filter((_, index) => decisions[index]?.approved).map((name) => `write ${name}`),
          );
        },
      ),
      { numRuns: 12 },
    );
  });
});

test("P2: a decision that comes before the run parks and one that comes behind it are both acted on", async () => {
  const free = Promise.withResolvers<void>();
  const service = await start(
    leads(roles("a", "b", "works"), ({ who, results }) => {
      if (who === "works") return { text: "worked", until: free.promise };
      return results.length === 0 ? write(who) : { text: "after" };
    }),
  );
  const lead = await watched(service);
  await until(async () => (await lead.run()).pending_calls.length === 2);
  const [one, other] = (await lead.run()).pending_calls as { id: string }[];
  void service.post("/api/chat/approve", decide(true, lead.sessionId, [one?.id ?? ""]));
  await until(() => done.length === 1);
  free.resolve();
  const { events } = await lead.over;
  expect(ofType(events, "auth_required")[0]?.pending_calls).toMatchObject([{ id: other?.id }]);
  const rest = await streamed(service, "/api/chat/approve", decide(true, lead.sessionId));
  expect(rest.at(-1)).toMatchObject({ type: "done", auth_required: false });
  expect([...done].sort()).toEqual(["write a", "write b"]);
});
