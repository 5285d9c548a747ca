/** The agent's own tools for later: they ask, and what they make is the owner's. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { RunRecord } from "../../src/core/run.ts";
import type { Scheduler } from "../../src/core/scheduler.ts";
import type { ToolContext } from "../../src/core/tool.ts";
import { closeDatabase } from "../../src/store/database.ts";
import { createScheduleTask } from "../../src/tools/schedule-task.ts";
import {
  createHome,
  createService,
  json,
  ofType,
  readEvents,
  START,
  type TestHome,
  type TestService,
} from "../http/service.ts";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";

let home: TestHome;
let service: TestService;
beforeEach(async () => {
  home = await createHome();
});
afterEach(async () => {
  await service.close();
  await home.close();
});

const call = (name: string, args: unknown): ScriptedReply => ({
  calls: [{ id: `call_${name}`, name, args }],
});

async function serve(...replies: ScriptedReply[]) {
  service = await createService(home, { model: scriptedModel([...replies, { text: "so" }]), tools: "own" });
}

const ask = async (body: object) => json(await service.post("/api/chat", { message: "later", ...body }));
const jobs = async () => (await json(await service.request("/api/cron"))).jobs;

/** Allows what the run waits for, and returns the result of the call. */
async function allow(session_id: string): Promise<{ output: string; is_error: boolean }> {
  const decision = { session_id, approved: true, stream: true };
  const { events } = await readEvents(await service.post("/api/chat/approve", decision));
  const result = ofType(events, "tool_result").at(-1);
  return { output: String(result?.output), is_error: result?.is_error === true };
}

test("P1: schedule_task asks; the job has the key of the run that made it, encrypted", async () => {
  const task = {
    command: "water the plants",
    cron_time: "07:30",
    timezone: "Europe/Berlin",
    allowed_tools: ["recall"],
  };
  await serve(call("schedule_task", task));
  const { auth_required, pending_calls, session_id } = await ask({ api_key: "sk-of-the-caller-123" });
  expect([auth_required, pending_calls[0].name, await jobs()]).toEqual([true, "schedule_task", []]);
  expect((await allow(session_id)).output).toMatch(
    /^Scheduled as job_\w+ \(water the plants\)\. The next time is 2026-11-21T06:30/,
  );
  const [job] = await jobs();
  expect(job).toMatchObject({
    ...{ command: "water the plants", schedule: "30 7 * * *", timezone: "Europe/Berlin", has_api_key: true },
    ...{ allowed_tools: ["recall"], provider: "openai", model: "scripted" },
  });
  home.clock.now = new Date("2026-11-21T06:30:01Z");
  await service.services.tick();
  while (service.keys.length < 3) await new Promise((resolve) => setImmediate(resolve));
  expect(service.keys.at(-1)).toBe("sk-of-the-caller-123");
  const database = await home.backend.open();
  const { rows } = await database.read.execute("SELECT * FROM jobs");
  closeDatabase(database);
  expect(JSON.stringify(rows)).not.toContain("sk-of-the-caller-123");
});

test("P1: a task gets no tool that the conversation has not, named or not", async () => {
  const later = { command: "x", cron_time: "07:30" };
  const has = { allowed_tools: ["schedule_task", "recall"] };
  for (const [allowed_tools, sentence] of [
    [["recall", "run_terminal_command"], "this conversation has no tool run_terminal_command itself"],
    [["*"], "has no tool * itself"],
    [undefined, "has only some of the tools"],
  ] as const) {
    await serve(call("schedule_task", { ...later, allowed_tools }));
    const { session_id } = await ask(has);
    const { output, is_error } = await allow(session_id);
    expect([is_error, output]).toEqual([true, expect.stringContaining(sentence)]);
    expect(await jobs()).toEqual([]);
    await service.close();
  }
  await serve(call("schedule_task", { ...later, allowed_tools: ["recall"] }));
  const { session_id } = await ask(has);
  expect((await allow(session_id)).output).toContain("Scheduled as job_");
  expect(await jobs()).toMatchObject([{ allowed_tools: ["recall"], agent_name: null }]);
});

test("P1: what a named agent has done later is done by that agent", async () => {
  await serve(call("schedule_task", { command: "x", cron_time: "07:30" }));
  const tools = ["schedule_task", "recall"];
  expect((await service.post("/api/agents", { name: "gardener", tools })).status).toBe(201);
  const { session_id } = await ask({ agent_name: "gardener" });
  expect((await allow(session_id)).output).toContain("Scheduled as job_");
  expect(await jobs()).toMatchObject([{ agent_name: "gardener", allowed_tools: null }]);
});

test("P1: a job that may schedule gives what it schedules no more than it has", async () => {
  const task = { command: "y", interval_minutes: 5, allowed_tools: ["run_terminal_command"] };
  await serve(call("schedule_task", task));
  const job = { command: "x", interval_minutes: 60, allowed_tools: ["schedule_task"] };
  const { job_id } = await json(await service.post("/api/cron", job));
  home.clock.now = new Date(START.getTime() + 3_600_000);
  await service.services.tick();
  const runs = async () => (await json(await service.request(`/api/cron/${job_id}/runs`))).runs;
  while (!(await runs())[0]?.ended_at) await new Promise((resolve) => setImmediate(resolve));
  const [run] = await runs();
  expect([run.fate, run.denied_tools]).toEqual(["ran", []]);
  const { messages } = await json(await service.request(`/api/sessions/${run.session_id}/messages`));
  expect(JSON.stringify(messages)).toContain("has no tool run_terminal_command itself");
  expect((await jobs()).map(({ id }: { id: string }) => id)).toEqual([job_id]);
});

test("K1: where the caller's key could not be kept, nothing is scheduled that would use the operator's", async () => {
  await serve();
  const spec = {
    provider: "openai",
    agent: "dragoman",
    tools: [],
    request: { model: "m" },
    callersKey: true,
  };
  const run = { spec, sealedKey: null } as unknown as RunRecord;
  const scheduler = new Proxy({} as Scheduler, {
    get: () => () => expect.unreachable("nothing may be scheduled"),
  });
  const tool = createScheduleTask(scheduler, { get: async () => run });
  const { content, failed } = await tool.run({ command: "x", cron_time: "7:30" }, {
    owner: "ann",
    runId: "run_1",
  } as ToolContext);
  expect([failed, JSON.stringify(content)]).toEqual([true, expect.stringContaining("SECRET_KEY")]);
});

test("what is wrong with a task is told to the model", async () => {
  await serve(call("schedule_task", { command: "x", schedule: "99 * * * *" }));
  const { session_id } = await ask({});
  const { output, is_error } = await allow(session_id);
  expect([is_error, output]).toEqual([true, expect.stringContaining("99 * * * *")]);
  expect(await jobs()).toEqual([]);
});

test("list_schedules needs nobody; cancel_schedule asks, and deletes what was meant and nothing else", async () => {
  await serve(call("list_schedules", {}));
  const { job_id } = await json(
    await service.post("/api/cron", { command: "a\nb", name: "n", interval_minutes: 9 }),
  );
  const { tools } = await ask({});
  const next = new Date(START.getTime() + 9 * 60_000).toISOString();
  expect(tools[0].output).toBe(`- ${job_id} "n", every 9 min: active, next ${next}. a b`);
  await service.close();
  await serve(call("cancel_schedule", { id: job_id, name: "another" }));
  const wrong = await ask({});
  expect((await allow(wrong.session_id)).output).toBe(`Not deleted: ${job_id} has another name. It is "n".`);
  await service.close();
  await serve(call("cancel_schedule", { id: job_id, name: "n" }));
  const right = await ask({});
  expect(right.auth_required).toBe(true);
  expect((await allow(right.session_id)).output).toContain(`Deleted ${job_id}`);
  expect(await jobs()).toEqual([]);
});
