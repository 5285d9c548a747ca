/** R1: kill -9 at random moments of a busy mix. What was answered before stays so, and every session goes on. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DATABASES, type SharedDatabase } from "./database.ts";
import { LIMIT_MS, times } from "./extent.ts";
import { type Body, Service } from "./process.ts";
import { startUpstream, type Upstream } from "./upstream.ts";

const KILLS = times(5, 100);
const CLIENTS = 6;
/** Kills until everything begins anew on an empty database. */
const KILLS_PER_DATABASE = 25;
/** Answers that clients get before a kill, at most. */
const ANSWERS = 40;
/** What is left of a process behind the last of those answers, at most. Milliseconds. */
const GRACE_MS = 25;

const PROVIDERS = ["openai", "anthropic", "gemini"] as const;
const ENV = {
  APPROVAL: JSON.stringify({
    default: "auto",
    rules: [{ tool: "run_terminal_command", args: { command: "*true asked*" }, decision: "ask" }],
  }),
};

/** A generator that a seed repeats. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface ToldSession {
  /** undefined: nobody can say. */
  title?: string;
  deleted?: boolean;
  /** Renamings without an answer yet; while there are several, or one is lost, nobody knows which comes last. */
  renaming?: number;
  mixed?: boolean;
}

/** What a service has answered, and so what has to be so for ever after. */
interface Told {
  sessions: Map<string, ToldSession>;
  messages: Map<string, { sessionId: string; content: string }>;
  deletedMessages: Set<string>;
  /** Sessions that somebody wanted to delete, without an answer yet. */
  unsure: Set<string>;
  runs: Map<string, string>;
  /** Ids of calls whose result was shown. */
  done: Set<string>;
  denied: Set<string>;
}

class Mix {
  readonly database: SharedDatabase;
  readonly upstream: Upstream;
  service: Service;
  readonly told: Told = {
    ...{ sessions: new Map(), messages: new Map(), deletedMessages: new Set(), unsure: new Set() },
    ...{ runs: new Map(), done: new Set(), denied: new Set() },
  };
  readonly #random: (below: number) => number;
  #turns = 0;
  answers = 0;
  onAnswer: () => void = () => {};

  constructor(
    database: SharedDatabase,
    upstream: Upstream,
    service: Service,
    random: (below: number) => number,
  ) {
    this.database = database;
    this.upstream = upstream;
    this.service = service;
    this.#random = random;
  }

  /** Does one thing after the other until the process is gone. */
  async client(): Promise<void> {
    try {
      for (;;) await this.#one();
    } catch (error) {
      // A broken connection ends a client; a wrong answer ends the test.
      if (!(error instanceof TypeError)) throw error;
    }
  }

  async #ask(method: string, path: string, json?: unknown, allowed: number[] = [200]): Promise<Body> {
    const { status, body } = await this.service.send(method, path, json);
    expect([method, path, status, allowed.includes(status) || JSON.stringify(body)]).toEqual([
      ...[method, path, status, true],
    ]);
    this.answers++;
    this.onAnswer();
    return status < 300 ? body : null;
  }

  async #one(): Promise<void> {
    const open = [...this.told.sessions].filter(([, { deleted }]) => !deleted).map(([id]) => id);
    const sessionId = open.length < 4 ? undefined : open[this.#random(open.length)];
    const dice = this.#random(10);
    if (dice < 7 || sessionId === undefined) return this.#turn(sessionId, dice);
    if (dice === 7) return this.#rename(sessionId);
    if (dice === 8) return this.#deleteMessage(sessionId);
    return this.#random(4) === 0 ? this.#delete(sessionId) : this.#fork(sessionId);
  }

  async #turn(sessionId: string | undefined, dice: number): Promise<void> {
    const tag = `turn-${this.#turns++}`;
    const command = `${dice % 2 ? "true asked; " : ""}printf '%s\\n' ${tag} >> effects.log`;
    const calls = [{ id: `call_${tag}`, name: "run_terminal_command", args: { command } }];
    this.upstream.play(tag, ({ results }) =>
      dice < 3 || results.length > 0 ? { say: `heard #${tag}`, pieces: 3 } : { calls },
    );
    const provider = PROVIDERS[this.#random(PROVIDERS.length)];
    const message = `do #${tag}`;
    // Somebody else's turn may be in the way, or may take the session away.
    const asked = { message, session_id: sessionId, provider };
    const reply = await this.#ask("POST", "/api/chat", asked, [200, 404, 409]);
    if (!reply) return;
    this.#learn(reply);
    if (!reply.auth_required) return;
    const approved = this.#random(3) > 0;
    const decided = await this.#ask(
      "POST",
      "/api/chat/approve",
      { session_id: reply.session_id, approved, pending_calls: reply.pending_calls },
      // Whoever deletes the session stops the run.
      [200, 404, 409],
    );
    if (!decided) return;
    if (!approved) this.told.denied.add(tag);
    this.#learn(decided);
  }

  #learn(reply: Body): void {
    const { session_id, run_id, message_id, auth_required, tools } = reply;
    if (this.told.unsure.has(session_id)) return;
    if (!this.told.sessions.has(session_id)) this.told.sessions.set(session_id, {});
    if (!auth_required) this.told.runs.set(run_id, "completed");
    if (message_id) this.told.messages.set(message_id, { sessionId: session_id, content: reply.reply });
    for (const { id, is_error } of tools) if (!is_error) this.told.done.add(id.slice("call_".length));
  }

  async #rename(sessionId: string): Promise<void> {
    const title = `title ${this.#random(1_000_000)}`;
    const session = this.told.sessions.get(sessionId)!;
    // Until it is answered it may be the one or the other.
    session.title = undefined;
    session.renaming = (session.renaming ?? 0) + 1;
    session.mixed ||= session.renaming > 1;
    const renamed = await this.#ask("PATCH", `/api/sessions/${sessionId}`, { title }, [200, 404]);
    session.renaming--;
    if (renamed && !session.mixed) session.title = title;
    session.mixed &&= session.renaming > 0;
  }

  async #delete(sessionId: string): Promise<void> {
    const session = this.told.sessions.get(sessionId)!;
    for (const [id, message] of this.told.messages)
      if (message.sessionId === sessionId) this.told.messages.delete(id);
    this.told.sessions.delete(sessionId);
    this.told.unsure.add(sessionId);
    const done = await this.#ask("DELETE", `/api/sessions/${sessionId}`, undefined, [200, 404]);
    if (done) this.told.sessions.set(sessionId, { ...session, deleted: true });
  }

  async #deleteMessage(sessionId: string): Promise<void> {
    const found = [...this.told.messages].filter(([, message]) => message.sessionId === sessionId);
    const [messageId] = found[this.#random(found.length)] ?? [];
    if (messageId === undefined) return;
    this.told.messages.delete(messageId);
    const done = await this.#ask("DELETE", `/api/messages/${messageId}`, undefined, [200, 404, 409]);
    if (done) this.told.deletedMessages.add(messageId);
  }

  async #fork(sessionId: string): Promise<void> {
    const fork = await this.#ask("POST", `/api/sessions/${sessionId}/fork`, {}, [201, 404]);
    if (fork) this.told.sessions.set(fork.id, { title: fork.title });
  }
}

/** All that was told is so, nothing has happened twice, and every session goes on. */
async function verify(mix: Mix, kill: number): Promise<void> {
  const { service, told, database, upstream } = mix;
  for (;;) {
    const { runs } = await service.get("/api/runs?limit=200");
    const running = runs.filter((run: Body) => run.status === "running");
    if (running.length === 0) break;
    for (const { id } of running) await service.settled(id);
  }
  expect(await database.faults()).toEqual([]);
  expect(upstream.refused).toEqual([]);
  const lines = effects(database);
  expect(lines).toEqual([...new Set(lines)]);
  for (const tag of told.done) expect(lines).toContain(tag);
  for (const tag of told.denied) expect(lines).not.toContain(tag);
  for (const [id, status] of told.runs) {
    const run = await service.send("GET", `/api/runs/${id}`);
    if (run.status === 404) expect(told.unsure.size).toBeGreaterThan(0);
    else expect([id, run.body.status]).toEqual([id, status]);
  }
  const seen = new Map<string, string>();
  for (const [id, { title, deleted }] of told.sessions) {
    const session = await service.send("GET", `/api/sessions/${id}`);
    expect([id, session.status]).toEqual([id, deleted ? 404 : 200]);
    if (deleted) continue;
    if (title !== undefined) expect(session.body.title).toBe(title);
    for (let cursor = ""; cursor !== null; ) {
      const page: Body = await service.get(`/api/sessions/${id}/messages?limit=200&cursor=${cursor}`);
      for (const message of page.messages) seen.set(message.id, message.content);
      cursor = page.next_cursor;
    }
  }
  for (const [id, { content, sessionId }] of told.messages)
    if (told.sessions.has(sessionId))
      expect([id, content.endsWith(seen.get(id) ?? "missing")]).toEqual([id, true]);
  for (const id of told.deletedMessages) expect(seen.has(id)).toBe(false);
  let n = 0;
  for (const [id, { deleted }] of told.sessions) {
    if (deleted) continue;
    const tag = `after-${kill}-${n}`;
    const provider = PROVIDERS[n++ % PROVIDERS.length];
    const { status, body } = await service.post("/api/chat", {
      message: `#${tag}`,
      session_id: id,
      provider,
    });
    expect([status, body.reply]).toEqual([200, `heard #${tag}`]);
  }
  expect(upstream.refused).toEqual([]);
}

function effects(database: SharedDatabase): string[] {
  try {
    return readFileSync(join(database.folder, "workspace", "effects.log"), "utf8")
      .trim()
      .split("\n");
  } catch {
    return [];
  }
}

async function run(database: SharedDatabase, kills: number, seed: number): Promise<void> {
  await using upstream = await startUpstream();
  const random = randomOf(seed);
  const mix = new Mix(database, upstream, await Service.start(database, upstream, ENV), random);
  try {
    for (let kill = 0; kill < kills; kill++) {
      const wanted = mix.answers + 1 + random(ANSWERS);
      const wait = random(GRACE_MS);
      const { service } = mix;
      mix.onAnswer = () => {
        if (mix.answers === wanted) setTimeout(() => service.process.child.kill("SIGKILL"), wait);
      };
      await Promise.all(Array.from({ length: CLIENTS }, () => mix.client()));
      await service.exited;
      mix.onAnswer = () => {};
      await database.expireLeases();
      mix.service = await Service.start(database, upstream, ENV);
      await verify(mix, kill);
    }
  } finally {
    await mix.service.kill();
  }
}

for (const { name, available, create } of DATABASES)
  test.skipIf(!available)(
    `kill -9 at ${KILLS} random moments, on ${name}`,
    { timeout: LIMIT_MS, concurrent: true },
    async () => {
      const seed = Number(process.env.FAULTS_SEED ?? Math.floor(Math.random() * 2 ** 31));
      for (let done = 0; done < KILLS; done += KILLS_PER_DATABASE) {
        const database = await create();
        try {
          await run(database, Math.min(KILLS_PER_DATABASE, KILLS - done), seed + done);
        } catch (error) {
          throw new Error(`FAULTS_SEED=${seed}`, { cause: error });
        } finally {
          await database.close();
        }
      }
    },
  );
