/** A service with jobs, a clock that the test sets, and what it takes to follow what becomes of them. */
import { expect } from "vitest";
import { later } from "../automation/records.ts";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";
import { createHome, createService, json, START, type TestOptions, type TestService } from "./service.ts";

export const EVERY_MINUTE = { command: "look around", interval_minutes: 1 };

export async function createCron() {
  const home = await createHome();
  const opened: TestService[] = [];
  let service: TestService;

  const get = async (path: string) => json(await service.request(path));
  const runsOf = async (id: string) => (await get(`/api/cron/${id}/runs`)).runs;

  /** Nothing is under way but what waits for a person or its time. */
  async function settled(): Promise<void> {
    for (let quiet = 0; quiet < 20; ) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = service.services.runs.active === 0 ? quiet + 1 : 0;
    }
  }

  async function until(isSo: () => Promise<unknown>): Promise<void> {
    while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve));
  }

  return {
    ...{ home, get, runsOf, settled, until },
    get service() {
      return service;
    },
    async serve(replies: ScriptedReply[] = [{ text: "done" }], options: Partial<TestOptions> = {}) {
      const model = scriptedModel(replies);
      service = await createService(home, { model, ...options });
      opened.push(service);
      return model;
    },
    async create(fields: object = EVERY_MINUTE, token?: string) {
      const init = { method: "POST", json: fields, ...(token ? { token } : {}) };
      const response = await service.request("/api/cron", init);
      const body = await json(response);
      expect([response.status, body]).toMatchObject([201, { status: "created" }]);
      return body;
    },
    patch: (id: string, body: object) => service.request(`/api/cron/${id}`, { method: "PATCH", json: body }),
    /** Time passes, somebody ticks, and what comes of it is awaited. */
    async tickAt(ms: number): Promise<void> {
      home.clock.now = later(ms, START);
      await service.services.tick();
      await settled();
    },
    fatesOf: async (id: string) => (await runsOf(id)).map((run: { fate: string }) => run.fate),
    ended: (id: string, count: number) =>
      until(
        async () =>
          (await runsOf(id)).filter((run: { ended_at: string | null }) => run.ended_at).length >= count,
      ),
    /** All rows of all tables, as text. */
    async stored(): Promise<string> {
      const database = await home.backend.open();
      try {
        const { rows } = await database.read.execute(
          "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'",
        );
        const tables = rows.map(({ name }) => String(name)).filter((name) => !name.startsWith("sqlite_"));
        const all = await Promise.all(
          tables.map(async (name) => (await database.read.execute(`SELECT * FROM "${name}"`)).rows),
        );
        return JSON.stringify(all);
      } finally {
        database.read.close();
        database.write.close();
      }
    },
    async close() {
      for (const each of opened.splice(0)) await each.close();
      await home.close();
    },
  };
}

export type Cron = Awaited<ReturnType<typeof createCron>>;
