/** R2: whoever cuts the stream of a run where they like, and comes back with Last-Event-ID, has the same bytes as others. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DATABASES, type SharedDatabase } from "./database.ts";
import type { EventReader } from "./event-reader.ts";
import { LIMIT_MS, times } from "./extent.ts";
import { type Body, Service } from "./process.ts";
import { startUpstream, type Upstream } from "./upstream.ts";

const CASES = times(50, 500);

let database: SharedDatabase;
let upstream: Upstream;
let service: Service;
beforeAll(async () => {
  database = await DATABASES[0]!.create();
  upstream = await startUpstream();
  service = await Service.start(database, upstream, {
    APPROVAL: JSON.stringify({
      default: "auto",
      rules: [{ tool: "run_terminal_command", args: { command: "*true asked*" }, decision: "ask" }],
    }),
  });
});
afterAll(async () => {
  await service.kill();
  await upstream[Symbol.asyncDispose]();
  await database.close();
});

/** One step of the model's: what it says, and what it does then. */
const step = fc.record({
  say: fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }),
  pieces: fc.integer({ min: 1, max: 8 }),
  does: fc.constantFrom("runs", "looks", "asks", "asks for two"),
});
const script = fc.record({
  steps: fc.array(step, { maxLength: 3 }),
  last: fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 }),
  pieces: fc.integer({ min: 1, max: 20 }),
  /** Bytes of each connection, one after the other; the last one is not cut. */
  cuts: fc.array(fc.integer({ min: 0, max: 700 }), { minLength: 1, maxLength: 8 }),
  /** The first words wait until the first connection has been cut. */
  held: fc.boolean(),
  /** What comes back with the number of its last event: the header or the address. */
  header: fc.boolean(),
  approved: fc.boolean(),
});
type Script = typeof script extends fc.Arbitrary<infer Value> ? Value : never;

let turns = 0;

function play(tag: string, { steps, last, pieces, held }: Script, until: Promise<void>): void {
  const holding = held ? ({ hold: "middle", until } as const) : {};
  upstream.play(tag, ({ results }) => {
    const done = steps.findIndex((_, i) => results.length <= callsBefore(steps, i));
    const now = steps[done];
    if (!now) return { say: last, pieces, ...(results.length === 0 ? holding : {}) };
    const call = (n: number) => ({
      id: `call_${tag}_${done}_${n}_long_enough`,
      name: now.does === "looks" ? "list_files" : "run_terminal_command",
      args:
        now.does === "looks"
          ? { path: "." }
          : { command: `${now.does === "runs" ? "" : "true asked; "}echo ${tag} ${n}; echo more` },
    });
    const calls = now.does === "asks for two" ? [call(0), call(1)] : [call(0)];
    return { say: now.say, pieces: now.pieces, calls, ...(done === 0 ? holding : {}) };
  });
}

function callsBefore(steps: Script["steps"], i: number): number {
  return steps.slice(0, i).reduce((sum, { does }) => sum + (does === "asks for two" ? 2 : 1), 0);
}

/** Whole events only: a client throws away what it has of the next. */
const bytesOf = (reader: EventReader) => reader.frames.map(({ text }) => text).join("");

test(`a client that cuts its stream at any byte and resumes has the same bytes, ${CASES} times`, {
  timeout: LIMIT_MS,
}, async () => {
  let resumed = 0;
  await fc.assert(
    fc.asyncProperty(script, async (each) => {
      const tag = `resume-${turns++}`;
      let go = () => {};
      const until = new Promise<void>((resolve) => {
        go = resolve;
      });
      play(tag, each, until);
      const cuts = each.cuts.values();
      const nextCut = () => cuts.next().value ?? Number.POSITIVE_INFINITY;
      let runId = "";
      let mine = "";
      let lastSeq = 0;
      let over = false;
      const take = (reader: EventReader) => {
        mine += bytesOf(reader);
        lastSeq = Math.max(lastSeq, reader.lastSeq);
        const last = reader.events.at(-1)?.type;
        over ||= last === "done" || last === "error";
      };
      /** Comes back as often as it takes to the end of the run, or to its next pause. */
      const comeBack = async () => {
        while (!over) {
          resumed++;
          const reader = each.header
            ? await service.follow(runId, lastSeq, nextCut())
            : await service.followAt(runId, lastSeq, nextCut());
          expect(reader.response.status).toBe(200);
          await reader.over;
          take(reader);
        }
      };

      const first = nextCut();
      let reader = await service.stream("/api/chat", { message: `do #${tag}` }, {}, first);
      runId = reader.response.headers.get("x-run-id") ?? "";
      let other = await service.follow(runId);
      // What is held back comes once the first connection is cut, or has had all that there is before it.
      await Promise.race([reader.over, reader.event((event) => event.type === "content").catch(() => {})]);
      go();
      await reader.over;
      take(reader);
      await comeBack();
      await other.over;
      let theirs = bytesOf(other);
      for (;;) {
        const run: Body = await service.get(`/api/runs/${runId}`);
        if (run.status !== "paused") break;
        const decision = { session_id: run.session_id, approved: each.approved };
        const [one] = run.pending_calls;
        // Two calls may be decided one after the other.
        const some = run.pending_calls.length > 1 && each.held ? { pending_calls: [one.id] } : {};
        reader = await service.stream("/api/chat/approve", { ...decision, ...some }, {}, nextCut());
        expect(reader.response.status).toBe(200);
        other = await service.follow(runId, lastSeq);
        await reader.over;
        over = false;
        take(reader);
        await comeBack();
        await other.over;
        theirs += bytesOf(other);
      }
      const whole = await service.follow(runId);
      await whole.over;
      expect(mine).toBe(whole.text);
      expect(theirs).toBe(whole.text);
      expect(whole.frames.map(({ seq }) => seq)).toEqual(whole.frames.map((_, i) => i + 1));
      expect(whole.events.at(-1)).toMatchObject({ type: "done", auth_required: false });
    }),
    { numRuns: CASES },
  );
  expect(resumed).toBeGreaterThan(CASES);
  expect(upstream.refused).toEqual([]);
});
