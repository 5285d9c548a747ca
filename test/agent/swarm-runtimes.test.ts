/** A swarm of three on Node, on Bun, and as the bundle in workerd: watched live, with an approval inside a member. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EventReader } from "../faults/event-reader.ts";
import type { Body } from "../faults/process.ts";
import { startUpstream, type Upstream } from "../faults/upstream.ts";
import { canRun, RUNTIMES, type Service, startService } from "../service.ts";

const HEADERS = { authorization: "Bearer sk-of-the-caller-1234567890", "content-type": "application/json" };

describe.each(RUNTIMES.filter(canRun))("%s", { timeout: 30_000 }, (runtime) => {
  let upstream: Upstream;
  let service: Service;

  beforeAll(async () => {
    upstream = await startUpstream();
    const { OPENAI_BASE_URL = "" } = upstream.env;
    service = await startService({ runtime, env: { OPENAI_BASE_URL, AUTH: "key" } });
  });
  afterAll(async () => {
    await service.stop();
    await upstream[Symbol.asyncDispose]();
  });

  const stream = (path: string, json: object) => {
    const body = JSON.stringify({ ...json, stream: true });
    return EventReader.open(service.url + path, { method: "POST", headers: HEADERS, body });
  };

  test("works, parks, goes on, and answers", async () => {
    const made = await fetch(`${service.url}/api/agents`, {
      method: "POST",
      headers: HEADERS,
      body: JSON.stringify({ name: "writer", instructions: "You write.", tools: ["create_file"] }),
    });
    expect(made.status).toBe(201);
    const tasks = [
      { role: "one", task: "do #one" },
      { role: "two", task: "do #two" },
      { agent: "writer", task: "do #write" },
    ];
    upstream.play("lead", ({ results }) =>
      results.length === 0
        ? { calls: [{ id: "call_d", name: "delegate", args: { tasks } }] }
        : { say: "all in all" },
    );
    const args = { path: "of-the-swarm.txt", content: "written" };
    upstream.play("write", ({ results }) =>
      results.length === 0
        ? { calls: [{ id: "call_w", name: "create_file", args }] }
        : { say: "it is written" },
    );
    const first = await stream("/api/chat", { message: "go #lead", use_swarm: true });
    await first.over;
    const events: Body[] = first.events;
    const started = events.filter(({ type, status }) => type === "agent" && status === "started");
    expect(started.map(({ agent }) => agent)).toEqual(["one", "two", "writer"]);
    expect(events.find(({ type, agent }) => type === "content" && agent === "one")).toMatchObject({
      content: "heard #one",
    });
    expect(events.at(-2)).toMatchObject({
      type: "auth_required",
      pending_calls: [{ name: "create_file", agent: "writer" }],
    });
    const rest = await stream("/api/chat/approve", { session_id: events[0].session_id, approved: true });
    await rest.over;
    expect(rest.events.at(-1)).toMatchObject({ type: "done", reply: "all in all" });
    expect(await service.read("of-the-swarm.txt")).toBe("written");
    expect(upstream.asked.filter(({ tag }) => tag === "one")).toHaveLength(1);
    expect(upstream.refused).toEqual([]);
  });
});
