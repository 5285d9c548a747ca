/** Jobs on a host that cuts off requests, and with them their runs and timers: nothing of the service is told of it. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ModelAdapter } from "../../src/core/model.ts";
import { createHome, createService, json, START, type TestHome, type TestService } from "../http/service.ts";
import { scriptedModel } from "../scripted-model.ts";

const SECOND_MS = 1_000;
const silent: ModelAdapter = {
  provider: "openai",
  models: async () => [],
  async *stream() {
    await new Promise(() => {});
  },
};

let home: TestHome;
const services: TestService[] = [];
/** The pulses of runs in the order in which they began; they beat when the test says so. */
const pulses: (() => void)[] = [];

beforeEach(async () => {
  home = await createHome();
  vi.useFakeTimers({ toFake: ["performance"] });
  vi.spyOn(globalThis, "setInterval").mockImplementation(((beat: () => void) => {
    pulses.push(beat);
  }) as never);
});
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  pulses.length = 0;
  for (const service of services.splice(0)) {
    service.kill();
    await service.close();
  }
  await home.close();
});

async function isolate(model: ModelAdapter): Promise<TestService> {
  const service = await createService(home, { model });
  services.push(service);
  return service;
}

async function begun(service: TestService, command: string): Promise<{ jobId: string; runId: string }> {
  const { job_id } = await json(await service.post("/api/cron", { command, interval_minutes: 600 }));
  const { run } = await json(await service.post(`/api/cron/${job_id}/run`, {}));
  return { jobId: job_id, runId: run.run_id };
}

function pass(ms: number): void {
  home.clock.now = new Date(home.clock.now.getTime() + ms);
  vi.advanceTimersByTime(ms);
}

test("R3: a run that was cut off is not kept by those beside it, and the next tick carries it on to its fate", async () => {
  home.clock.now = START;
  const first = await isolate(silent);
  const cutOff = await begun(first, "the first");
  const alive = await begun(first, "the second");
  expect(pulses).toHaveLength(2);
  for (let i = 0; i < 16; i++) {
    pass(SECOND_MS);
    pulses[1]?.();
    await vi.waitUntil(async () => (await first.store.runs.abandoned(home.clock.now, 10)).length < 2);
  }

  const second = await isolate(scriptedModel([{ text: "said after all" }]));
  await second.services.tick();
  const fate = await vi.waitUntil(async () => {
    const { runs } = await json(await second.request(`/api/cron/${cutOff.jobId}/runs`));
    return runs[0].ended_at && runs[0];
  });
  expect(fate).toMatchObject({ fate: "ran", run_id: cutOff.runId });
  const runOf = async (id: string) => json(await second.request(`/api/runs/${id}`));
  expect(await runOf(cutOff.runId)).toMatchObject({ status: "completed", recoveries: 1 });
  expect(await runOf(alive.runId)).toMatchObject({ status: "running", recoveries: 0 });
});
