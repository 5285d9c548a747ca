/** R1: swarms whose process is gone, with members below members and calls that wait for a decision. */
import { expect, test } from "vitest";
import { done, json, ofType, readEvents, START } from "../http/service.ts";
import { delegate, type Part } from "./swarm-scene.ts";
import {
  agentsOf,
  leads,
  resultsOf,
  roles,
  runsOf,
  type Stage,
  stages,
  streamed,
  until,
  watched,
  write,
} from "./swarm-service.ts";

const { start, clock } = stages();
const never = new Promise(() => {});
const look = (path: string) => ({ calls: [{ id: "l", name: "look", args: { path } }] });

/** Another process finds what the first has left. */
async function after(
  first: Stage,
  part: Part,
  before: (store: Stage["store"]) => Promise<unknown> = async () => {},
): Promise<Stage> {
  first.kill();
  clock().now = new Date(START.getTime() + 10 * 60 * 1000);
  const second = await start(part);
  await before(second.store);
  await second.services.runs.recover();
  return second;
}

const settled = async (service: Stage, runId: string) =>
  (await readEvents(await service.request(`/api/runs/${runId}/events`))).events;

test("a call that waits still waits, is decided once, and those who had finished are not asked again", async () => {
  const part =
    (alive: boolean): Part =>
    (heard) =>
      leads(roles("asks", "works", "ready"), ({ who, results }) => {
        if (who === "ready") return results.length === 0 ? look("ready") : { text: "ready" };
        if (who === "works") return { text: "worked", ...(alive ? { until: never } : {}) };
        return results.length === 0 ? write("p") : { text: "written" };
      })(heard);
  const first = await start(part(true));
  const lead = await watched(first);
  void lead.over.catch(() => {});
  await until(async () => (await lead.run()).pending_calls.length === 1);
  await until(async () => (await runsOf(first, lead.runId)).some(({ status }) => status === "completed"));
  const [call] = (await lead.run()).pending_calls;
  const second = await after(first, part(false));
  const events = await settled(second, lead.runId);
  expect(events.slice(-2)).toMatchObject([
    { type: "auth_required", pending_calls: [call] },
    { type: "done", auth_required: true },
  ]);
  // It was said before the crash, and what was said is not said again.
  expect(agentsOf(events).filter((each) => each === "asks waiting")).toHaveLength(1);
  expect(second.model.who()).toEqual(["works"]);
  const body = { session_id: lead.sessionId, approved: true, pending_calls: [call] };
  const rest = await streamed(second, "/api/chat/approve", body);
  expect(rest.at(-1)).toMatchObject({ type: "done", reply: expect.stringContaining("All in all.") });
  expect(resultsOf(rest).map(({ result }: { result: string }) => result)).toEqual([
    "written",
    "worked",
    "ready",
  ]);
  expect([...done].sort()).toEqual(["look ready", "write p"]);
});

test("a call that was approved and not acted on yet is acted on, once", async () => {
  const part =
    (alive: boolean): Part =>
    (heard) =>
      leads(roles("asks", "works"), ({ who, results }) => {
        if (who === "works") return { text: "worked", ...(alive ? { until: never } : {}) };
        return results.length === 0 ? write("p") : { text: "written" };
      })(heard);
  const first = await start(part(true));
  const lead = await watched(first);
  void lead.over.catch(() => {});
  const member = async () => (await runsOf(first, lead.runId)).find((run) => run.member === "asks");
  await until(async () => (await member())?.status === "paused");
  const [call] = (await lead.run()).pending_calls;
  const { id = "" } = (await member()) ?? {};
  // The decision is stored, and its process dies before anybody has looked.
  const second = await after(first, part(false), ({ runs }) =>
    runs.decide("local", id, [call.id], "allowed", START),
  );
  await until(
    async () => (await json(await second.request(`/api/runs/${lead.runId}`))).status === "completed",
  );
  expect(done).toEqual(["write p"]);
});

test("members below members: only those go on that had not finished, and the answer comes", async () => {
  const part =
    (alive: boolean): Part =>
    ({ who, results }) => {
      const low = who.split("/").at(-1) ?? "";
      if (who === "" && results.length === 0)
        return delegate([{ agent: "mid", task: "x" }, ...roles("side")]);
      if (who === "mid" && results.length === 0)
        return delegate([
          { role: "low1", task: "y" },
          { role: "low2", task: "z" },
        ]);
      if (who === "" || who === "mid") return { text: `${who} ready` };
      if (results.length === 0) return look(who);
      return { text: `${who} done`, ...(alive && low === "low2" ? { until: never } : {}) };
    };
  const first = await start(part(true));
  await first.post("/api/agents", { name: "low" });
  await first.post("/api/agents", { name: "mid", sub_agents: ["low"] });
  const lead = await watched(first);
  void lead.over.catch(() => {});
  const all = async () =>
    (await json(await first.request("/api/runs?limit=200"))).runs as { status: string }[];
  await until(async () => (await all()).filter(({ status }) => status === "completed").length >= 2);
  await until(
    () => first.model.heard.filter(({ who, results }) => who === "mid/low2" && results.length > 0).length > 0,
  );
  const second = await after(first, part(false));
  const events = await settled(second, lead.runId);
  expect(events.at(-1)).toMatchObject({ type: "done", auth_required: false });
  expect(second.model.who()).toEqual(["mid/low2", "mid", ""]);
  expect([...done].sort()).toEqual(["look mid/low1", "look mid/low2", "look side"]);
  for (const name of ["mid", "side", "mid/low1", "mid/low2"])
    for (const status of ["started", "completed"])
      expect(
        ofType(events, "agent").filter((each) => each.agent === name && each.status === status),
      ).toHaveLength(1);
  // R2: one gapless stream, but for the place where the process died.
  const text = await (await second.request(`/api/runs/${lead.runId}/events`)).text();
  expect(await (await second.request(`/api/runs/${lead.runId}/events`)).text()).toBe(text);
  const record = await second.store.runs.get("local", lead.runId);
  // Two calls of each of those who lead, and two of each of the others.
  expect(record?.usage).toMatchObject({ input: 100, output: 50 });
});
