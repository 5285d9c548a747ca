/** R1: a swarm of five whose process is killed half-way. Whoever has finished is not run again, and the answer comes. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CrashPoint } from "./crash-point.ts";
import { DATABASES, type SharedDatabase } from "./database.ts";
import { LIMIT_MS } from "./extent.ts";
import { type Body, Service } from "./process.ts";
import { type Act, startUpstream, type Upstream } from "./upstream.ts";

const ENV = { APPROVAL: "auto", RUN_LEASE: "2", SWARM_CONCURRENCY: "5" };
const MEMBERS = ["m0", "m1", "m2", "m3", "m4"];
/** They do not come to their end before the process dies. */
const HELD = ["m3", "m4"];

const member = (tag: string): Act => ({
  calls: [
    {
      id: "call_1",
      name: "run_terminal_command",
      args: { command: `printf '%s\\n' ${tag} >> effects.log` },
    },
  ],
});

function play(upstream: Upstream, held: readonly string[]): void {
  const tasks = MEMBERS.map((role) => ({ role, task: `work #${role}` }));
  upstream.play("lead", ({ results }) =>
    results.length === 0
      ? { say: "I delegate.", calls: [{ id: "call_d", name: "delegate", args: { tasks } }] }
      : { say: "all in all" },
  );
  for (const tag of MEMBERS)
    upstream.play(tag, ({ results, attempt }) => {
      if (results.length === 0) return member(tag);
      return held.includes(tag) && attempt === 0 ? { hold: "request" } : { say: `${tag} done` };
    });
}

function effects({ folder }: SharedDatabase): string[] {
  const path = join(folder, "workspace", "effects.log");
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n").sort() : [];
}

async function begin(service: Service): Promise<{
  runId: string;
  sessionId: string;
  completed(count: number): Promise<void>;
}> {
  const reader = await service.stream("/api/chat", { message: "go #lead", use_swarm: true });
  reader.over.catch(() => {});
  const ended = () => reader.events.filter((event) => event.type === "agent" && event.status === "completed");
  return {
    runId: reader.response.headers.get("x-run-id") ?? "",
    sessionId: reader.response.headers.get("x-session-id") ?? "",
    completed: async (count) => void (await reader.event(() => ended().length >= count)),
  };
}

/** The run comes to its end in another process, and nothing has happened twice. */
async function goesOn(database: SharedDatabase, upstream: Upstream, runId: string): Promise<void> {
  await database.expireLeases();
  const service = await Service.start(database, upstream, ENV);
  try {
    expect(await service.settled(runId)).toMatchObject({ status: "completed", recoveries: 1 });
    const reader = await service.follow(runId);
    await reader.over;
    const events: Body[] = reader.events;
    const done = events.at(-1);
    expect(done).toMatchObject({ type: "done", reply: expect.stringContaining("all in all") });
    const delegated = events.find(({ type, name }) => type === "tool_result" && name === "delegate");
    expect(JSON.parse(delegated.output).results).toEqual(
      MEMBERS.map((agent) => ({ agent, status: "completed", result: `${agent} done` })),
    );
    for (const agent of MEMBERS)
      for (const status of ["started", "completed"])
        expect(
          events.filter(
            (event) => event.type === "agent" && event.agent === agent && event.status === status,
          ),
        ).toHaveLength(1);
    // What a command that was under way has done is unknown, and it is not run again.
    const lines = effects(database);
    expect(lines).toEqual([...new Set(lines)]);
    expect(upstream.refused).toEqual([]);
    expect(await database.faults()).toEqual([]);
  } finally {
    await service.kill();
  }
}

/** Ends of members, in the words of the store. */
const END = ["ended_at", '"completed"', '"stop"'];
const POINTS: Record<string, CrashPoint> = {
  "before a member's end is stored": { when: "before", texts: END },
  "behind a member's end": { when: "after", texts: END },
  "behind a member's beginning": { when: "after", texts: ["INSERT INTO runs", '\\"member\\"'] },
  "behind the lead's start of the call": {
    when: "after",
    texts: ["INSERT INTO run_calls", "delegate", "started"],
  },
};

for (const { name, available, create } of DATABASES)
  describe.skipIf(!available)(`a swarm on ${name}`, { timeout: LIMIT_MS }, () => {
    test("three of five have finished: they are not asked again", async () => {
      const database = await create();
      await using upstream = await startUpstream();
      try {
        play(upstream, HELD);
        const service = await Service.start(database, upstream, ENV);
        const { runId, completed } = await begin(service);
        await completed(3);
        for (const tag of HELD) await upstream.reached(tag, 2);
        await service.kill();
        await goesOn(database, upstream, runId);
        const asked = (tag: string) => upstream.asked.filter((each) => each.tag === tag).length;
        expect(MEMBERS.map(asked)).toEqual([2, 2, 2, 3, 3]);
        expect(effects(database)).toEqual(MEMBERS);
      } finally {
        await database.close();
      }
    });

    test("calls of members wait through it: decided before or behind it, each runs once", async () => {
      const database = await create();
      await using upstream = await startUpstream();
      try {
        play(upstream, ["m3"]);
        const env = { ...ENV, APPROVAL: "ask" };
        const service = await Service.start(database, upstream, env);
        const { runId, sessionId } = await begin(service);
        const waiting = async (from: Service, count: number): Promise<Body[]> => {
          for (;;) {
            const { pending_calls: calls } = await from.get(`/api/runs/${runId}`);
            if (calls.length === count) return calls;
          }
        };
        const decide = (from: Service, agents: string[], calls: Body[]) =>
          from.post("/api/chat/approve", {
            ...{ session_id: sessionId, approved: true },
            pending_calls: calls.filter(({ agent }) => agents.includes(agent)),
          });
        const calls = await waiting(service, 5);
        // One of them goes on and is held: it is at work when the process dies.
        decide(service, ["m3"], calls).catch(() => {});
        await upstream.reached("m3", 2);
        await service.kill();
        expect(effects(database)).toEqual(["m3"]);
        await database.expireLeases();
        const next = await Service.start(database, upstream, env);
        expect(await next.settled(runId)).toMatchObject({ status: "paused" });
        const left = await waiting(next, 4);
        expect(left.map(({ id }) => id).sort()).toEqual(
          calls.flatMap(({ id, agent }) => (agent === "m3" ? [] : [id])).sort(),
        );
        await decide(next, ["m0", "m1", "m2", "m4"], left);
        expect(await next.settled(runId)).toMatchObject({ status: "completed" });
        expect(effects(database)).toEqual(MEMBERS);
        await next.stop();
      } finally {
        await database.close();
      }
    });

    test.each(Object.entries(POINTS))("killed %s", async (_, point) => {
      const database = await create();
      await using upstream = await startUpstream();
      try {
        play(upstream, []);
        const service = await Service.start(database, upstream, ENV);
        service.arm(point);
        const { runId } = await begin(service);
        await service.exited;
        service.disarm();
        await goesOn(database, upstream, runId);
      } finally {
        await database.close();
      }
    });
  });
