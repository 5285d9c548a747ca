/**
 * Operations from two processes at once against the model: whatever the order in which they took effect, it has to be
 * one in which the model gives the same answers and ends in the same state.
 */
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findPairingFault } from "../../src/core/pairing.ts";
import { BACKENDS, type Backend, openStore, type TestStore } from "./backends.ts";
import { apply, DECISION_TIME, LEASE, type ModelRuns, newModel, type Operation } from "./model-runs.ts";
import { CANCELLED, calling, history, newCall, newRun, reply, resultOf, user } from "./run-records.ts";

const SESSIONS = 2;
const RUNS = 4;

/** The first ones mostly, so that operations meet each other. */
const run = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(RUNS - 1));
const holder = fc.constantFrom("h1", "h1", "h1", "h2");
const n = fc.constant(0);
const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({ op: fc.constant("begin" as const), run, session: fc.nat(SESSIONS - 1), holder }),
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ op: fc.constant("commit" as const), run, holder, n },
      what: fc.constantFrom("message", "call", "call", "pause", "pause", "end"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constantFrom("resume", "takeOver"), run, holder }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("decide" as const),
      run,
      decision: fc.constantFrom("allowed", "denied"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constantFrom("askToStop", "cancel"), run }) },
  fc.record({ op: fc.constant("renew" as const), holder }),
  fc.record({ op: fc.constant("expire" as const) }),
);
/** Operations that are under way together, and the time that passes behind them. */
const story = fc.array(fc.tuple(fc.array(operation, { minLength: 1, maxLength: 3 }), fc.nat(1)), {
  maxLength: 16,
  size: "max",
});

describe.each(BACKENDS)("runs as in the model on $name", ({ name, available, create }) => {
  let backend: Backend;
  let stores: TestStore[];
  let stories = 0;
  beforeAll(async () => {
    if (!available) return;
    backend = await create();
    stores = [await openStore(backend), await openStore(backend)];
  });
  afterAll(async () => {
    for (const store of stores ?? []) await store.close();
    await backend?.close();
  });

  it.runIf(available)(
    "answers and ends as some order of the operations does",
    async () => {
      await fc.assert(
        fc.asyncProperty(story, async (steps) => {
          const world = await World.create(stores, `owner${stories++}`);
          let model = newModel(SESSIONS);
          for (const [operations, passes] of steps) {
            const fresh = operations.flatMap((one) => world.prepare(one));
            const answers = await Promise.all(fresh.map((one, at) => world.perform(one, model.now, at)));
            const after = await world.state();
            const order = permutations(fresh.map((_, at) => at)).find((candidate) => {
              const trial = structuredClone(model);
              const given: unknown[] = [];
              for (const at of candidate) given[at] = apply(trial, fresh[at]!);
              if (JSON.stringify([given, view(trial)]) !== JSON.stringify([answers, after])) return false;
              model = trial;
              return true;
            });
            expect({ steps, fresh, answers, after, order }).toMatchObject({ order: expect.any(Array) });
            model.now += passes;
          }
          await world.end();
        }),
        { numRuns: name === "a file" ? 200 : 40 },
      );
    },
    60_000,
  );
});

/** The part of the model that the store shows. */
function view({ sessions, runs }: ModelRuns) {
  return {
    messages: sessions.map((session) => session.messages),
    runs: Object.entries(runs).map(([number, one]) => ({
      run: Number(number),
      ...{ status: one.status, recoveries: one.recoveries, key: one.key },
      calls: Object.entries(one.calls)
        .map(([id, call]) => [id, call.state, call.result])
        .toSorted(),
    })),
  };
}

class World {
  readonly #stores: TestStore[];
  readonly #owner: string;
  readonly #sessions: string[];
  readonly #begun = new Set<number>();
  readonly #callIds: string[] = [];

  private constructor(stores: TestStore[], owner: string, sessions: string[]) {
    this.#stores = stores;
    this.#owner = owner;
    this.#sessions = sessions;
  }

  static async create(stores: TestStore[], owner: string): Promise<World> {
    const sessions: string[] = [];
    for (let at = 0; at < SESSIONS; at++) sessions.push((await stores[0]!.sessions.open(owner, "new")).id);
    return new World(stores, owner, sessions);
  }

  /** The operation with ids of its own. A run begins once, so a second beginning is left out. */
  prepare(operation: Operation): Operation[] {
    if (operation.op === "commit") {
      const n = this.#callIds.length;
      this.#callIds.push(`c${n}`);
      return [{ ...operation, n }];
    }
    if (operation.op === "begin" && this.#begun.has(operation.run)) return [];
    if (operation.op === "begin") this.#begun.add(operation.run);
    return [operation];
  }

  async perform(operation: Operation, now: number, at: number): Promise<unknown> {
    const { runs } = this.#stores[at % this.#stores.length]!;
    const owner = this.#owner;
    const id = "run" in operation ? this.#id(operation.run) : "";
    const own = "holder" in operation ? `${operation.holder} of ${owner}` : "";
    switch (operation.op) {
      case "begin": {
        const sessionId = this.#sessions[operation.session]!;
        const answer = await runs.begin(
          owner,
          newRun(sessionId, { id, holder: own, leaseUntil: time(now + LEASE) }),
          [user("go")],
        );
        return "inTheWay" in answer ? { inTheWay: this.#number(answer.inTheWay.id) } : answer;
      }
      case "commit":
        return runs.commit(owner, id, own, this.#change(operation, now));
      case "resume":
        return (await runs.resume(owner, id, own, time(now + LEASE))) !== null;
      case "takeOver":
        return (await runs.takeOver(id, own, time(now), time(now + LEASE))) !== null;
      case "decide": {
        const { decided } = await runs.decide(owner, id, this.#callIds, operation.decision, time(now));
        return decided.toSorted();
      }
      case "askToStop":
        return runs.askToStop(owner, id);
      case "cancel":
        return runs.cancelPaused(owner, id, (call) => resultOf(call.callId), CANCELLED);
      case "renew":
        return (await runs.renew(own, time(now + LEASE))).map((one) => this.#number(one)).toSorted();
      case "expire": {
        const late = await runs.expire(time(now), 1_000);
        return late.map((one) => this.#number(one.runId)).toSorted();
      }
    }
  }

  async state() {
    const store = this.#stores[0]!;
    const messages: number[] = [];
    for (const sessionId of this.#sessions) {
      const said = await history(store, this.#owner, sessionId);
      expect((await store.sessions.get(this.#owner, sessionId)).lastSeq).toBe(said.length);
      expect(findPairingFault(said)?.kind ?? "call-without-result").toBe("call-without-result");
      messages.push(said.length);
    }
    const runs = [];
    for (let number = 0; number < RUNS; number++) {
      const record = await store.runs.get(this.#owner, this.#id(number));
      if (!record) continue;
      const calls = await store.runs.calls(this.#owner, record.id);
      runs.push({
        run: number,
        ...{ status: record.status, recoveries: record.recoveries, key: record.sealedKey !== null },
        calls: calls.map((call) => [call.callId, call.state, call.result !== null]).toSorted(),
      });
    }
    return { messages, runs };
  }

  /** Leaves nothing that the next story could meet. */
  async end(): Promise<void> {
    for (const sessionId of this.#sessions) await this.#stores[0]!.sessions.delete(this.#owner, sessionId);
  }

  #change({ run: number, what, n }: Extract<Operation, { op: "commit" }>, now: number) {
    const id = this.#id(number);
    if (what === "pause" || what === "end")
      return { end: { status: what === "end" ? "completed" : "paused", stop: "stop" } } as const;
    if (what === "message") return { messages: [reply("x")] };
    const call = newCall(newRun("", { id }), `c${n}`, { step: n, expiresAt: time(now + DECISION_TIME) });
    return { messages: [calling(call.callId)], calls: [call] };
  }

  #id(run: number): string {
    return `run_${this.#owner}_${run}`;
  }

  #number(id: string): number {
    return Number(id.split("_").at(-1));
  }
}

const time = (at: number) => new Date(1_800_000_000_000 + at);

function permutations<T>(items: T[]): T[][] {
  if (items.length <= 1) return [items];
  return items.flatMap((item, at) =>
    permutations([...items.slice(0, at), ...items.slice(at + 1)]).map((rest) => [item, ...rest]),
  );
}
