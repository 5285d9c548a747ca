/** The agent's own tools for later: they ask, and what they make is the owner's. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { closeDatabase } from "../../src/store/database.ts";
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
