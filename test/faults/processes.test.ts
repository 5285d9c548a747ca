/** Two service processes on one database: what the one leaves, by death or by order, the other goes on with. */

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { DATABASES, type SharedDatabase } from "./database.ts";
import type { EventReader } from "./event-reader.ts";
import { LIMIT_MS } from "./extent.ts";
import { type Body, Service } from "./process.ts";
import { startUpstream, type Upstream } from "./upstream.ts";

const SHORT_LEASE = { RUN_LEASE: "2", ALLOW_AUTO_APPROVE: "1" };
/** So long that nobody can wait for it: what has been taken over was given up. */
const LONG_LEASE = { RUN_LEASE: "3600", ALLOW_AUTO_APPROVE: "1", SHUTDOWN_GRACE: "1" };
const KEY = "sk-the-callers-own-key";

interface Pair {
  database: SharedDatabase;
  upstream: Upstream;
  a: Service;
  b: Service;
}

async function pair(
  create: () => Promise<SharedDatabase>,
  env: Record<string, string>,
  use: (pair: Pair) => Promise<void>,
): Promise<void> {
  const database = await create();
  await using upstream = await startUpstream();
  const [a, b] = await Promise.all([1, 2].map(() => Service.start(database, upstream, env)));
  try {
    await use({ database, upstream, a: a!, b: b! });
  } finally {
    await Promise.all([a?.kill(), b?.kill()]);
    await database.close();
  }
}

const call = (tag: string, command: string) => [
  { id: `call_${tag}`, name: "run_terminal_command", args: { command } },
];
const touch = (tag: string) => `printf '%s\\n' ${tag} >> effects.log`;
const effects = ({ folder }: SharedDatabase) =>
  readFileSync(join(folder, "workspace", "effects.log"), "utf8")
    .trim()
    .split("\n")
    .sort();

/** Resolves once the process has logged it. */
async function said({ process }: Service, words: string): Promise<void> {
  while (!process.stderr().includes(words)) await once(process.child.stderr!, "data");
}

/** The run of a stream that has begun. */
const runOf = (reader: EventReader) => reader.response.headers.get("x-run-id") ?? "";

for (const { name, available, create } of DATABASES)
  describe.skipIf(!available)(`two processes on ${name}`, { timeout: LIMIT_MS, concurrent: true }, () => {
    test("what a killed process was at is finished by the other, and nothing happens twice", () =>
      pair(create, SHORT_LEASE, async ({ database, upstream, a, b }) => {
        upstream.play("cut", ({ attempt }) => ({
          ...{ say: "one two three", pieces: 4 },
          ...(attempt === 0 ? { hold: "middle" as const } : {}),
        }));
        const command = `${touch("work")}; echo begun; until [ ! -e effects.log ]; do sleep 0.1; done`;
        upstream.play("work", ({ results }) =>
          results.length === 0 ? { calls: call("work", command) } : { say: "so be it" },
        );
        upstream.play("park", ({ results }) =>
          results.length === 0 ? { calls: call("park", touch("park")) } : { say: "done so" },
        );
        const cut = await a.stream("/api/chat", { message: "#cut", api_key: KEY, provider: "openai" });
        await cut.event((event) => event.type === "content");
        const work = await a.stream("/api/chat", { message: "#work", auto_approve: true });
        await work.event((event) => event.type === "tool_progress");
        const { body: asked } = await a.post("/api/chat", { message: "#park", api_key: KEY });
        expect(asked.auth_required).toBe(true);
        await a.kill();

        const parked: Body = await b.get(`/api/runs/${asked.run_id}`);
        expect(parked).toMatchObject({ status: "paused", pending_calls: asked.pending_calls });
        const decision = { session_id: asked.session_id, approved: true, pending_calls: asked.pending_calls };
        const answers = await Promise.all([1, 2, 3].map(() => b.post("/api/chat/approve", decision)));
        for (const { status, body } of answers)
          expect([status, body]).toEqual([200, expect.objectContaining({ reply: "done so" })]);

        for (const [reader, reply] of [
          [cut, "one two three"],
          [work, "so be it"],
        ] as const) {
          const rest = await b.follow(runOf(reader), reader.lastSeq);
          await rest.over;
          expect(rest.whole).toBe(true);
          expect(rest.frames[0]?.seq).toBeGreaterThan(reader.lastSeq);
          expect(rest.events.at(-1)).toMatchObject({ type: "done", reply, run_id: runOf(reader) });
          expect(await b.get(`/api/runs/${runOf(reader)}`)).toMatchObject({
            ...{ status: "completed", recoveries: 1 },
          });
        }
        expect(upstream.asked.findLast(({ tag }) => tag === "work")?.results[0]?.text).toContain(
          "Interrupted",
        );
        expect(effects(database)).toEqual(["park", "work"]);
        const keys = upstream.asked.filter(({ tag }) => tag !== "work").map(({ key }) => key);
        expect(keys).toEqual([KEY, KEY, KEY, KEY]);
        expect(upstream.refused).toEqual([]);
      }));

    test("while both live: parked by the one, decided through the other, stopped from the first", () =>
      pair(create, { SESSION_WAIT: "0.3" }, async ({ database, upstream, a, b }) => {
        upstream.play("both", ({ results }) =>
          results.length === 0
            ? { calls: call("both", touch("both")) }
            : { say: "now it hangs", pieces: 3, hold: "middle" },
        );
        const { body } = await a.post("/api/chat", { message: "#both" });
        const { session_id } = body;
        const approving = b.post("/api/chat/approve", { session_id, approved: true });
        await upstream.reached("both", 2);
        // One turn at a time, whichever process the next one comes to.
        for (const each of [a, b]) {
          const refused = await each.post("/api/chat", { message: "#too-early", session_id });
          expect([refused.status, refused.body.code]).toEqual([409, "conflict"]);
          expect(refused.body.run_id).toBe(body.run_id);
        }
        const stopped = await a.post(`/api/runs/${body.run_id}/stop`, {});
        expect(stopped.body.status).toBe("stopped");
        expect((await approving).status).toBe(409);
        expect(effects(database)).toEqual(["both"]);
        const next = await a.post("/api/chat", { message: "#on", session_id });
        expect([next.status, next.body.reply]).toEqual([200, "heard #on"]);
        expect(upstream.refused).toEqual([]);
      }));

    test("SIGTERM: what ends within the grace is delivered; what does not is given up, and not kept", async () => {
      const database = await create();
      await using upstream = await startUpstream();
      const started: Service[] = [];
      try {
        let go = () => {};
        const until = new Promise<void>((resolve) => {
          go = resolve;
        });
        upstream.play("soon", () => ({ say: "in time", pieces: 3, hold: "middle", until }));
        upstream.play("late", ({ attempt }) => ({
          ...{ say: "to the end", pieces: 3 },
          ...(attempt === 0 ? { hold: "middle" as const } : {}),
        }));
        const a = await Service.start(database, upstream, LONG_LEASE);
        started.push(a);
        const [soon, late] = await Promise.all(
          ["#soon", "#late"].map((message) => a.stream("/api/chat", { message })),
        );
        for (const reader of [soon!, late!]) await reader.event((event) => event.type === "content");
        const ended = a.stop();
        await said(a, "stopping");
        go();
        await soon!.over;
        expect([soon!.whole, soon!.events.at(-1)]).toMatchObject([true, { type: "done", reply: "in time" }]);
        expect(await ended).toBe(0);
        await late!.over;
        // The lease would outlast this test.
        const b = await Service.start(database, upstream, LONG_LEASE);
        started.push(b);
        const rest = await b.follow(runOf(late!), late!.lastSeq);
        await rest.over;
        expect(rest.events.at(-1)).toMatchObject({ type: "done", reply: "to the end" });
        expect(await b.get(`/api/runs/${runOf(soon!)}`)).toMatchObject({
          status: "completed",
          recoveries: 0,
        });
      } finally {
        for (const each of started) await each.kill();
        await database.close();
      }
    });
  });
