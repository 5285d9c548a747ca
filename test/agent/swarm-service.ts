/** A service whose model plays all agents of a swarm, and what tests read of its runs. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
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
} from "../http/service.ts";
import { delegate, type Part, type SceneModel, sceneModel } from "./swarm-scene.ts";

export type Stage = TestService & { model: SceneModel };

export interface Stages {
  start(part: Part, options?: Partial<TestOptions>): Promise<Stage>;
  clock(): TestHome["clock"];
}

/** Services of a test file, each closed behind its test. */
export function stages(): Stages {
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
    for (const each of open.splice(0)) {
      const { agents } = await json(await each.request("/api/agents?limit=200"));
      for (const { id } of agents ?? []) await each.request(`/api/agents/${id}`, { method: "DELETE" });
      await each.close();
    }
  });
  return {
    clock: () => home.clock,
    async start(part, options = {}) {
      const model = sceneModel(part);
      const service = await createService(home, { model, ...options });
      open.push(service);
      return Object.assign(service, { model });
    },
  };
}

export const roles = (...names: string[]) => names.map((role) => ({ role, task: `Tell of ${role}.` }));
export const swarm = (more: object = {}) => ({ message: "Go.", use_swarm: true, ...more });
export const write = (path: string, id = "w") => ({ calls: [{ id, name: "write", args: { path } }] });

/** The lead delegates once, and says what came of it. */
export const leads =
  (tasks: object[], members: Part): Part =>
  (heard) => {
    if (heard.who !== "") return members(heard);
    return heard.results.length === 0 ? delegate(tasks) : { text: "All in all." };
  };

export const streamed = async (service: TestService, path: string, body: object) =>
  (await readEvents(await service.post(path, { ...body, stream: true }))).events;

export const agentsOf = (events: ChatEvent[]) =>
  ofType(events, "agent").map(({ agent, status }) => `${agent} ${status}`);

/** What the lead got of its members. */
export const resultsOf = (events: ChatEvent[]) =>
  JSON.parse(ofType(events, "tool_result").find(({ name }) => name === "delegate")?.output ?? "{}").results;

/** A run and its members, lead first. */
export async function runsOf(service: TestService, runId: string): Promise<[RunView, ...RunView[]]> {
  const { runs } = (await json(await service.request("/api/runs?limit=200"))) as { runs: RunView[] };
  const lead = runs.find(({ id }) => id === runId) as RunView;
  return [lead, ...runs.filter((run) => run.parent_run_id === runId)];
}

/** A swarm that somebody watches while it works. */
export async function watched(service: TestService, body: object = swarm()) {
  const response = await service.post("/api/chat", { ...body, stream: true });
  const runId = response.headers.get("x-run-id") ?? "";
  const sessionId = response.headers.get("x-session-id") ?? "";
  const over = readEvents(response);
  return { runId, sessionId, over, run: async () => json(await service.request(`/api/runs/${runId}`)) };
}

export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  await expect.poll(async () => await holds(), { timeout: 10_000, interval: 5 }).toBe(true);
}
