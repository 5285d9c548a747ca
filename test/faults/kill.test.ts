/**
 * R1: kill -9 at named points. In each round every session of the test is brought to its own point, then the process
 * dies at one more, another is started, and nothing that anybody was told is missing, nothing has happened twice, and
 * every session goes on with every provider.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { CrashPoint } from "./crash-point.ts";
import { DATABASES, type SharedDatabase } from "./database.ts";
import type { EventReader } from "./event-reader.ts";
import { LIMIT_MS, times, whole } from "./extent.ts";
import { type Body, Service } from "./process.ts";
import { type Act, startUpstream, type Upstream } from "./upstream.ts";

const ROUNDS = times(2, 20);
const PROVIDERS = ["openai", "anthropic", "gemini"] as const;
type Provider = (typeof PROVIDERS)[number];
/** Takeovers after which a run is given up. */
const RECOVERIES = 3;

/** Commands with this word in them are asked about. */
const ASKED = "true asked";
const ENV = {
  APPROVAL: JSON.stringify({
    default: "auto",
    rules: [{ tool: "run_terminal_command", args: { command: `*${ASKED}*` }, decision: "ask" }],
  }),
};

const touch = (tag: string) => `printf '%s\\n' ${tag} >> effects.log`;
const shell = (tag: string, command: string) => ({
  calls: [{ id: `call_${tag}`, name: "run_terminal_command", args: { command } }],
});
/** Leaves its mark, says so, and goes on until it is told to end. */
const waits = (tag: string) =>
  shell(
    tag,
    `${touch(tag)}; echo begun; until [ -e release-${tag} ] || [ ! -e effects.log ]; do sleep 0.1; done`,
  );
const writes = (tag: string) => shell(tag, touch(tag));
const asks = (tag: string) => shell(tag, `${ASKED}; ${touch(tag)}`);
const looks = (tag: string) => ({ calls: [{ id: `call_${tag}`, name: "list_files", args: { path: "." } }] });

class World {
  readonly database: SharedDatabase;
  readonly upstream: Upstream;
  service: Service;
  /** The session of each point. */
  readonly sessions = new Map<string, string>();
  /** What services have said is so. */
  readonly acknowledged: { sessionId: string; messageId: string; content: string }[] = [];

  constructor(database: SharedDatabase, upstream: Upstream, service: Service) {
    this.database = database;
    this.upstream = upstream;
    this.service = service;
  }

  async restart(): Promise<void> {
    await this.database.expireLeases();
    this.service = await Service.start(this.database, this.upstream, ENV);
  }

  async session(point: string, provider: Provider): Promise<string> {
    return (
      this.sessions.get(point) ??
      this.turn(point, undefined, `warm-${point}-${this.acknowledged.length}`, provider)
    );
  }

  /** A whole turn, acknowledged. */
  async turn(point: string, sessionId: string | undefined, tag: string, provider: Provider): Promise<string> {
    const { status, body } = await this.service.post("/api/chat", {
      message: `next #${tag}`,
      session_id: sessionId,
      provider,
    });
    expect([tag, status, body]).toEqual([tag, 200, expect.objectContaining({ reply: `heard #${tag}` })]);
    this.sessions.set(point, body.session_id);
    this.acknowledged.push({ sessionId: body.session_id, messageId: body.message_id, content: body.reply });
    return body.session_id;
  }

  effects(tag: string): number {
    return this.lines().filter((line) => line === tag).length;
  }

  lines(): string[] {
    try {
      return readFileSync(join(this.database.folder, "workspace", "effects.log"), "utf8")
        .trim()
        .split("\n");
    } catch {
      return [];
    }
  }

  async newestRun(sessionId: string): Promise<Body> {
    return (await this.service.get(`/api/runs?session_id=${sessionId}&limit=1`)).runs[0];
  }

  async ended(sessionId: string): Promise<Body> {
    return this.service.settled((await this.newestRun(sessionId)).id);
  }
}

interface Turn {
  tag: string;
  sessionId: string;
  provider: Provider;
}

/** What there is to verify once another process has taken over. */
type Verify = (world: World) => Promise<void>;

interface Point {
  name: string;
  /** What the model says to each step, by the number of results and of earlier attempts. */
  script(tag: string): (results: number, attempt: number) => Act;
  /** Resolves when the turn is at its point. */
  reach(world: World, turn: Turn): Promise<Verify>;
}

const chat = ({ tag, sessionId, provider }: Turn) => ({
  message: `do #${tag}`,
  session_id: sessionId,
  provider,
});

const finished = (tag: string) => `finished #${tag}`;

/** Held on the first attempt, then answered. */
const held = (hold: Act["hold"]) => (tag: string) => (_: number, attempt: number) => ({
  say: finished(tag),
  pieces: 4,
  ...(attempt === 0 ? { hold } : {}),
});

const calling = (call: (tag: string) => Act) => (tag: string) => (results: number) =>
  results === 0 ? call(tag) : { say: finished(tag) };

async function completed(world: World, { tag, sessionId }: Turn, recoveries: number): Promise<Body> {
  const run = await world.ended(sessionId);
  expect([tag, run.status, run.recoveries, run.error]).toEqual([tag, "completed", recoveries, null]);
  const reader = await world.service.follow(run.id);
  await reader.over;
  wellFormed(reader);
  expect(reader.events.at(-1)).toMatchObject({ type: "done", reply: expect.stringContaining(finished(tag)) });
  world.acknowledged.push({
    sessionId,
    messageId: (reader.events.at(-1) as Body).message_id,
    content: finished(tag),
  });
  return run;
}

/** The last request of the turn, as the model got it. */
async function toldModel(world: World, tag: string): Promise<string> {
  const request = world.upstream.asked.findLast((each) => each.tag === tag && each.results.length > 0);
  return request?.results.map(({ text }) => text).join("\n") ?? "nothing";
}

function wellFormed({ frames }: EventReader): void {
  const seqs = frames.map(({ seq }) => seq);
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
  const ends = frames.filter(
    ({ event }) => event.type === "error" || (event.type === "done" && !event.auth_required),
  );
  expect(ends.map(({ seq }) => seq)).toEqual([seqs.at(-1)]);
}

/** Points that a turn stays at for as long as the process lives. */
const HELD: Point[] = [
  {
    name: "user-message-stored",
    script: held("request"),
    async reach(world, turn) {
      world.service.post("/api/chat", chat(turn)).catch(() => {});
      await world.upstream.reached(turn.tag);
      return async (after) => void (await completed(after, turn, 1));
    },
  },
  {
    name: "before-the-first-byte",
    script: held("headers"),
    async reach(world, turn) {
      world.service.stream("/api/chat", chat(turn)).catch(() => {});
      await world.upstream.reached(turn.tag);
      return async (after) => void (await completed(after, turn, 1));
    },
  },
  {
    name: "mid-stream",
    script: held("middle"),
    async reach(world, turn) {
      const reader = await world.service.stream("/api/chat", chat(turn));
      await reader.event((event) => event.type === "content");
      return async (after) => {
        const run = await completed(after, turn, 1);
        const rest = await after.service.follow(run.id, reader.lastSeq);
        await rest.over;
        expect(rest.frames[0]?.seq).toBeGreaterThan(reader.lastSeq);
        wellFormed(rest);
      };
    },
  },
  {
    name: "reply-stored",
    script: calling(writes),
    async reach(world, turn) {
      const reader = await world.service.stream("/api/chat", chat(turn));
      await reader.event((event) => event.type === "done");
      return async (after) => {
        const run = await completed(after, turn, 0);
        const again = await after.service.follow(run.id);
        await again.over;
        expect(again.text).toBe(reader.text);
        expect(after.effects(turn.tag)).toBe(1);
      };
    },
  },
  {
    name: "tool-started",
    script: calling(waits),
    async reach(world, turn) {
      const reader = await world.service.stream("/api/chat", chat(turn));
      await reader.event((event) => event.type === "tool_progress");
      return async (after) => {
        await completed(after, turn, 1);
        expect(await toldModel(after, turn.tag)).toContain("Interrupted");
        expect(after.effects(turn.tag)).toBe(1);
        // It has outlived its service.
        writeFileSync(join(after.database.folder, "workspace", `release-${turn.tag}`), "");
      };
    },
  },
  {
    name: "approval-pending",
    script: calling(asks),
    async reach(world, turn) {
      const reader = await world.service.stream("/api/chat", chat(turn));
      const parked = await reader.event((event) => event.type === "done");
      expect(parked).toMatchObject({ auth_required: true });
      const asked = (await reader.event((event) => event.type === "auth_required")) as Body;
      return async (after) => {
        const run = await after.newestRun(turn.sessionId);
        expect(run).toMatchObject({ status: "paused", recoveries: 0, pending_calls: asked.pending_calls });
        const again = await after.service.follow(run.id);
        await again.over;
        expect(again.text).toBe(reader.text);
        expect(after.effects(turn.tag)).toBe(0);
        const approved = turn.tag.length % 2 === 0;
        const { status, body } = await after.service.post("/api/chat/approve", {
          session_id: turn.sessionId,
          approved,
          pending_calls: run.pending_calls,
        });
        expect([status, body.reply]).toEqual([200, finished(turn.tag)]);
        expect(after.effects(turn.tag)).toBe(approved ? 1 : 0);
        await completed(after, turn, 0);
      };
    },
  },
];

/** A run that no process ever gets to the end of. */
const CURSED: Point = {
  name: "cursed",
  script: (tag) => () => ({ say: finished(tag), pieces: 4, hold: "middle" }),
  async reach(world, turn) {
    world.service.post("/api/chat", chat(turn)).catch(() => {});
    await world.upstream.reached(turn.tag);
    return async () => {};
  },
};

const state = (word: string) => `\\"${word}\\"`;

/** Points between two writes: the process kills itself there. */
interface Crash extends Point {
  at(turn: Turn, run: Body): CrashPoint;
  /** Brought to the approval first; the crash comes with the approving. */
  approves?: boolean;
}

const crash = (
  name: string,
  script: Point["script"],
  at: Crash["at"],
  verify: (world: World, turn: Turn) => Promise<void>,
  approves = false,
): Crash => ({
  ...{ name, script, at, approves },
  async reach(world, turn) {
    const { service } = world;
    let run: Body;
    if (approves) {
      const { body } = await service.post("/api/chat", chat(turn));
      expect(body.auth_required).toBe(true);
      run = { id: body.run_id };
    }
    service.arm(at(turn, run));
    const answer = approves
      ? service.post("/api/chat/approve", { session_id: turn.sessionId, approved: true })
      : service.post("/api/chat", chat(turn));
    await expect(answer).rejects.toThrow();
    return (after) => verify(after, turn);
  },
});

const outcome =
  (effects: number, told: string | null, recoveries: number) => async (world: World, turn: Turn) => {
    await completed(world, turn, recoveries);
    expect([turn.tag, world.effects(turn.tag)]).toEqual([turn.tag, effects]);
    if (told !== null) expect(await toldModel(world, turn.tag)).toContain(told);
  };

const CRASHES: Crash[] = [
  crash(
    "user-message-just-stored",
    () => () => ({ say: "unused" }),
    ({ tag }) => ({ when: "after", texts: ["INSERT INTO runs", tag] }),
    async (world, turn) => {
      const run = await world.ended(turn.sessionId);
      expect(run).toMatchObject({ status: "completed", recoveries: 1 });
    },
  ),
  crash(
    "reply-stored-tool-not-started",
    calling(writes),
    ({ tag }) => ({ when: "after", texts: [state("started"), `call_${tag}`] }),
    outcome(0, "Interrupted", 1),
  ),
  crash(
    "tool-done-not-stored",
    calling(writes),
    ({ tag }) => ({ when: "before", texts: [state("done"), `call_${tag}`] }),
    outcome(1, "Interrupted", 1),
  ),
  crash(
    "tool-done-and-stored",
    calling(writes),
    ({ tag }) => ({ when: "after", texts: [state("done"), `call_${tag}`] }),
    outcome(1, "Exit code: 0", 1),
  ),
  crash(
    "read-done-not-stored",
    calling(looks),
    ({ tag }) => ({ when: "before", texts: [state("done"), `call_${tag}`] }),
    outcome(0, "effects.log", 1),
  ),
  crash(
    "end-stored-not-told",
    (tag) => () => ({ say: finished(tag) }),
    ({ tag }) => ({ when: "after", texts: ["ended_at = ?", finished(tag)] }),
    outcome(0, null, 0),
  ),
  crash(
    "approved-not-taken-up",
    calling(asks),
    ({ tag }) => ({ when: "after", texts: ["UPDATE run_calls SET state = ?", `call_${tag}`] }),
    async (world, turn) => {
      // Somebody takes it up: it stays paused until then.
      let reader: EventReader;
      do {
        const { id, last_event } = await world.newestRun(turn.sessionId);
        reader = await world.service.follow(id, last_event);
        await reader.over;
      } while ((await world.newestRun(turn.sessionId)).status !== "completed");
      await outcome(1, "Exit code: 0", 0)(world, turn);
    },
    true,
  ),
  crash(
    "approved-not-started",
    calling(asks),
    (_, run) => ({ when: "after", texts: ["SET status = 'running', lease_holder", run.id] }),
    outcome(1, "Exit code: 0", 1),
    true,
  ),
  crash(
    "approved-and-started",
    calling(asks),
    ({ tag }) => ({ when: "after", texts: [state("started"), `call_${tag}`] }),
    outcome(0, "Interrupted", 1),
    true,
  ),
];

async function bring(world: World, point: Point, round: number, provider: Provider): Promise<[Turn, Verify]> {
  const tag = `${point.name}-${round}`;
  const sessionId = await world.session(point.name, provider);
  const script = point.script(tag);
  world.upstream.play(tag, ({ results, attempt }) => script(results.length, attempt));
  const turn = { tag, sessionId, provider };
  return [turn, await point.reach(world, turn)];
}

async function nothingIsMissing(world: World): Promise<void> {
  expect(await world.database.faults()).toEqual([]);
  expect(world.upstream.refused).toEqual([]);
  const lines = world.lines();
  expect(lines).toEqual([...new Set(lines)]);
  const messages = new Map<string, string>();
  for (const sessionId of new Set(world.sessions.values()))
    for (let cursor = ""; cursor !== null; ) {
      const page: Body = await world.service.get(
        `/api/sessions/${sessionId}/messages?limit=200&cursor=${cursor}`,
      );
      for (const { id, content } of page.messages) messages.set(id, content);
      cursor = page.next_cursor;
    }
  for (const { messageId, content, sessionId } of world.acknowledged)
    if ([...world.sessions.values()].includes(sessionId)) expect(messages.get(messageId)).toBe(content);
}

/** Rounds until the sessions begin anew: long histories are not what is tested here. */
const SESSION_ROUNDS = 12;

for (const { name, available, create } of DATABASES)
  test.skipIf(!available)(
    `kill -9 at each of ${HELD.length + CRASHES.length} points, ${ROUNDS} times, on ${name}`,
    { timeout: LIMIT_MS, concurrent: true },
    async () => {
      const database = await create();
      await using upstream = await startUpstream();
      const world = new World(database, upstream, await Service.start(database, upstream, ENV));
      try {
        let cursed: Turn | undefined;
        let kills = 0;
        for (let round = 0; round < ROUNDS * CRASHES.length; round++) {
          if (round % SESSION_ROUNDS === SESSION_ROUNDS - 1) world.sessions.clear();
          const last = CRASHES[round % CRASHES.length]!;
          const verifies = await Promise.all(
            HELD.map((point, i) => bring(world, point, round, PROVIDERS[(round + i) % PROVIDERS.length]!)),
          );
          if (!cursed) {
            cursed = (await bring(world, CURSED, round, "openai"))[0];
            kills = 0;
          } else await upstream.reached(cursed.tag, kills + 1);
          const provider = PROVIDERS[round % PROVIDERS.length]!;
          verifies.push(await bring(world, last, round, provider));
          await world.service.exited;
          kills++;
          await world.restart();
          for (const [, verify] of verifies) await verify(world);
          if (kills > RECOVERIES) {
            const run = await world.ended(cursed.sessionId);
            expect(run).toMatchObject({ status: "failed", recoveries: RECOVERIES + 1 });
            expect(run.error.message).toMatch(/interrupted \d+ times/);
            verifies.push([cursed, async () => {}]);
            cursed = undefined;
          }
          await nothingIsMissing(world);
          await Promise.all(
            verifies.map(async ([{ tag, sessionId }], i) => {
              const point = [...world.sessions].find(([, id]) => id === sessionId)?.[0] ?? "";
              const next = whole ? PROVIDERS : [PROVIDERS[(round + i + 1) % PROVIDERS.length]!];
              for (const each of next) await world.turn(point, sessionId, `${tag}-then-${each}`, each);
            }),
          );
        }
        expect(upstream.refused).toEqual([]);
      } finally {
        await world.service.kill();
        await database.close();
      }
    },
  );
