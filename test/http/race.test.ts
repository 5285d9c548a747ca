/** Everybody at once: whatever clients do to one parked run, it has one outcome, and its call runs once or never. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { scriptedModel } from "../scripted-model.ts";
import { createHome, createService, done, json, START, type TestHome } from "./service.ts";

let home: TestHome;
beforeAll(async () => {
  home = await createHome();
  home.clock.now = START;
});
afterAll(() => home.close());

const ACTIONS = [
  "approve",
  "deny",
  "approve-all",
  "stop",
  "resume",
  "look",
  "say",
  "code",
  "recover",
] as const;
const STATUSES: Record<(typeof ACTIONS)[number], number[]> = {
  approve: [200, 409],
  deny: [200, 409],
  "approve-all": [200, 404, 409],
  stop: [200],
  resume: [200, 204],
  look: [200],
  say: [200],
  code: [200, 409],
  recover: [200],
};

test("an approval race has one outcome and one execution", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...ACTIONS), fc.integer({ min: 0, max: 1 })), {
        minLength: 10,
        maxLength: 50,
      }),
      async (actions) => {
        done.length = 0;
        const calls = [{ id: "call_of_a_race_with_many_00", name: "write", args: { n: 1 } }];
        const processes = await Promise.all(
          [[{ calls }, { text: "ok" }], [{ text: "ok" }]].map((replies) =>
            createService(home, { model: scriptedModel(replies) }),
          ),
        );
        const [first] = processes;
        const asked = await first!.post("/v1/chat/completions", {
          model: "m",
          messages: [{ role: "user", content: "write" }],
        });
        const run_id = asked.headers.get("x-run-id");
        const content = `approve ${/approve (\w{8})/.exec(JSON.stringify(await json(asked)))?.[1]}`;
        const { session_id, pending_calls } = await json(await first!.request(`/api/runs/${run_id}`));
        const answers = await Promise.all(
          actions.map(async ([action, n]): Promise<[string, number]> => {
            const { services, post, request } = processes[n]!;
            const decision = { session_id, pending_calls };
            switch (action) {
              case "approve":
                return [action, (await post("/api/chat/approve", { ...decision, approved: true })).status];
              case "deny":
                return [action, (await post("/api/chat/approve", { ...decision, approved: false })).status];
              case "approve-all":
                return [action, (await post("/api/chat/approve", { session_id, approved: true })).status];
              case "stop":
                return [action, (await post(`/api/runs/${run_id}/stop`, {})).status];
              case "say":
                return [action, (await post("/api/chat", { message: "never mind", session_id })).status];
              case "code": {
                const body = { model: "m", messages: [{ role: "user", content }] };
                return [action, (await post("/v1/chat/completions", body)).status];
              }
              case "recover":
                await services.runs.recover();
                return [action, 200];
              case "look":
                return [action, (await request(`/api/runs/${run_id}`)).status];
              case "resume": {
                const events = await request(`/api/runs/${run_id}/events`);
                await events.text();
                return [action, events.status];
              }
            }
          }),
        );
        for (const [action, status] of answers)
          expect([action, STATUSES[action as keyof typeof STATUSES].includes(status), status]).toEqual([
            action,
            true,
            status,
          ]);
        expect(done.length).toBeLessThan(2);
        const end = await json(await first!.post(`/api/runs/${run_id}/stop`, {}));
        expect(["completed", "stopped"]).toContain(end.status);
        const stored = await first!.store.runs.calls("local", run_id as string);
        expect(stored.map(({ state, result }) => [state, result !== null])).toEqual([
          [expect.stringMatching(/^(done|denied|cancelled|unknown)$/), true],
        ]);
        expect(stored[0]?.state === "done" || stored[0]?.state === "unknown").toBe(done.length === 1);
        const { messages } = await json(await first!.request(`/api/sessions/${session_id}/messages`));
        const results = messages.filter((message: { role: string }) => message.role === "tool");
        expect(results).toHaveLength(1);
        const next = await first!.post("/api/chat", { message: "still here?", session_id });
        expect(next.status).toBe(200);
        for (const each of processes) await each.close();
      },
    ),
    { numRuns: 12 },
  );
}, 120_000);
