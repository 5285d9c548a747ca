/**
 * One call of `delegate`: its members from their beginning to their results. It may be made again, after a decision or a
 * crash: members that have finished are asked for their results, and the others go on.
 */
import type { AgentEvent, PendingCall } from "../core/event.ts";
import { addUsage, type Usage } from "../core/message.ts";
import type { MemberName, MemberStatus, Task } from "../core/swarm.ts";
import type { ToolContext, ToolOutput } from "../core/tool.ts";
import { AppError } from "../errors.ts";
import { createMember } from "./create-member.ts";
import type { SwarmOptions } from "./delegate.ts";
import { nameMembers, shortened } from "./member-names.ts";
import { type Ended, type Lead, type Member, type MemberBench, memberTurn, turnId } from "./member-run.ts";
import { correction, readJson, rebuttal } from "./member-words.ts";
import { sessionOfRoot } from "./members.ts";
import { pause } from "./pause.ts";
import type { AgentServices } from "./turn.ts";
import { grantsOf } from "./turn-policy.ts";

/** Characters of one member's result that the lead is given, and of all together. */
const RESULT_LIMIT = 64_000;
const RESULTS_LIMIT = 256_000;
/** How often decisions are looked for while members wait for one and others work. Milliseconds. */
const LOOK_AGAIN_MS = 200;

const STOPPED = "The run was stopped.";

type Parked = { status: "parked"; calls: PendingCall[] };
type Outcome = Ended | Parked;

/** A member's part of a round. */
interface Part {
  round: number;
  last: boolean;
  prompt: string;
  /** Of its turns in it. */
  runIds: string[];
}

export class Delegation {
  readonly #services: AgentServices;
  readonly #options: SwarmOptions;
  readonly #lead: Lead;
  /** Of all calls of the lead: how many of its members work. */
  readonly #calls: { working: number };
  readonly #tasks: Task[];
  readonly #bench: MemberBench;
  readonly #members = new Map<number, Member>();
  /** Of the turns that have ended, by run. */
  readonly #usage = new Map<string, Usage>();
  #names: MemberName[] = [];
  /** A member has read content from outside. */
  #outside = false;
  #session: string | undefined;

  constructor(
    services: AgentServices,
    options: SwarmOptions,
    { lead, calls }: { lead: Lead; calls: { working: number } },
    context: ToolContext,
    tasks: Task[],
  ) {
    this.#services = services;
    this.#options = options;
    this.#lead = lead;
    this.#calls = calls;
    this.#tasks = tasks;
    this.#bench = {
      ...{ services, lead, hold: options.hold, retryEnd: options.retryEnd },
      context: {
        callId: context.callId,
        signal: context.signal,
        show: context.show ?? (async () => {}),
      },
      outside: (turn) => (turn > 0 && this.#outside) || context.outside?.() === true,
      spent: (runId, usage) => void this.#usage.set(runId, usage),
      foundOutside: () => {
        this.#outside = true;
      },
    };
  }

  async run(): Promise<ToolOutput> {
    const { share, runId } = this.#lead;
    // A member that waits for its own members does not work.
    share.lend(runId);
    try {
      return await this.#run();
    } finally {
      await share.takeBack(runId, this.#options.concurrency, this.#bench.context.signal);
    }
  }

  async #run(): Promise<ToolOutput> {
    this.#names = await nameMembers(this.#services.store.runs, this.#lead, this.#bench.context, this.#tasks);
    const rounds = this.#lead.swarm.rounds ?? 1;
    let outcomes: Outcome[] = [];
    for (let round = 0; round < rounds; round++) {
      outcomes = await this.#round(round, outcomes, round === rounds - 1);
      const parked = outcomes.flatMap((outcome) => (outcome.status === "parked" ? outcome.calls : []));
      if (parked.length > 0) return { content: [], parked };
    }
    return this.#output(outcomes as Ended[]);
  }

  /** All members side by side. A member that is parked goes on as soon as it may, for as long as others work. */
  async #round(round: number, before: Outcome[], last: boolean): Promise<Outcome[]> {
    // The same for all of them, whoever is first.
    const prompts = this.#names.map((_, index) => this.#prompt(index, round, before));
    // A result that does not fit its schema has another turn.
    const turns = last ? [round, round + 1] : [round];
    const runIds = await Promise.all(
      this.#names.map((_, index) => Promise.all(turns.map((turn) => turnId(this.#bench, { index }, turn)))),
    );
    const outcomes = new Map<number, Outcome>();
    const running = new Map<number, Promise<void>>();
    const begin = (index: number) => {
      outcomes.delete(index);
      this.#calls.working++;
      const part = { round, last, prompt: prompts[index] as string, runIds: runIds[index] as string[] };
      const work = this.#work(index, part).then((outcome) => {
        outcomes.set(index, outcome);
        running.delete(index);
        this.#calls.working--;
      });
      running.set(index, work);
    };
    for (const index of this.#names.keys()) {
      const earlier = before[index];
      if (earlier && earlier.status !== "completed") outcomes.set(index, earlier);
      else begin(index);
    }
    const { signal } = this.#bench.context;
    const othersWork = () => this.#calls.working > 0 && parkedIn(outcomes).size > 0 && !signal.aborted;
    while (running.size > 0 || othersWork()) {
      await this.#next([...running.values()], parkedIn(outcomes).size > 0 ? LOOK_AGAIN_MS : undefined);
      // Who cannot look now looks again; the members are not left alone because of it.
      const decided = signal.aborted ? [] : await this.#decided(parkedIn(outcomes)).catch(() => []);
      for (const index of decided) begin(index);
    }
    return this.#names.map((_, index) => {
      const outcome = outcomes.get(index) as Outcome;
      // Nobody waits for a decision any more.
      return signal.aborted && outcome.status === "parked" ? { status: "stopped", text: STOPPED } : outcome;
    });
  }

  /** Waits until one of them is over, at most so long. */
  async #next(running: Promise<void>[], ms: number | undefined): Promise<void> {
    if (ms === undefined) return Promise.race(running);
    const over = new AbortController();
    await Promise.race([...running, pause(ms, over.signal)]);
    over.abort();
  }

  /** The members that are parked and may go on: somebody has decided on a call of theirs, or it was cancelled. */
  async #decided(parked: ReadonlyMap<number, string[]>): Promise<number[]> {
    if (parked.size === 0) return [];
    const { runs, sessions } = this.#services.store;
    const { owner, root } = this.#lead;
    this.#session ??= await sessionOfRoot(runs, owner, root);
    if (this.#session === undefined) return [];
    const calls = await runs.callsById(owner, this.#session, [...parked.values()].flat());
    const open = new Set(calls.flatMap(({ callId, state }) => (state === "pending" ? [callId] : [])));
    const decided = [...parked].flatMap(([index, ids]) => (ids.every((id) => open.has(id)) ? [] : [index]));
    if (decided.length > 0)
      this.#lead.share.grants = await grantsOf(sessions, owner, this.#session, this.#lead.unattended);
    return decided;
  }

  /** A member's part of a round, as far as it gets, when there is a place for it. Never throws. */
  async #work(index: number, { round, last, prompt, runIds }: Part): Promise<Outcome> {
    const { share } = this.#lead;
    const { signal } = this.#bench.context;
    let outcome: Outcome;
    try {
      outcome = await share.placed(runIds, this.#options.concurrency, signal, async () => {
        if (round === 0) await this.#tell(index, "started");
        return this.#answer(await this.#member(index), round, prompt, last);
      });
    } catch (error) {
      outcome = this.#fault(error);
    }
    if (outcome.status === "parked") await this.#tellWaiting(index, outcome.calls);
    else if (last || outcome.status !== "completed") await this.#tell(index, outcome.status);
    return outcome;
  }

  #prompt(index: number, round: number, before: Outcome[]): string {
    if (round === 0) return (this.#tasks[index] as Task).task;
    return rebuttal(index, this.#names, before, this.#bench.outside(round));
  }

  /** A turn, and where its result is not what the schema wants, one more. */
  async #answer(member: Member, round: number, prompt: string, last: boolean): Promise<Outcome> {
    const { schema } = member.task;
    const outcome = await memberTurn(this.#bench, member, round, prompt);
    if (!schema || !last || outcome.status !== "completed") return outcome;
    const problem = await this.#problem(schema, outcome.text);
    if (problem === null) return outcome;
    const second = await memberTurn(this.#bench, member, round + 1, correction(problem));
    if (second.status !== "completed") return second;
    const still = await this.#problem(schema, second.text);
    if (still === null) return second;
    return { status: "failed", text: `Its result does not fit the schema, ${still} It was: ${second.text}` };
  }

  async #problem(schema: Record<string, unknown>, text: string): Promise<string | null> {
    if (text.length > this.#room)
      return `it is ${text.length} characters long, and ${this.#room} is the most that is passed on.`;
    const read = readJson(text);
    if ("problem" in read) return read.problem;
    const problem = await this.#options.schemas.outputProblem(schema, read.value);
    return problem === null ? null : `at ${problem}`;
  }

  /** Characters of one result. */
  get #room(): number {
    return Math.min(RESULT_LIMIT, Math.floor(RESULTS_LIMIT / this.#tasks.length));
  }

  async #member(index: number): Promise<Member> {
    const known = this.#members.get(index);
    if (known) return known;
    const task = this.#tasks[index] as Task;
    const name = this.#names[index] as MemberName;
    const member = await createMember(this.#services, this.#options, this.#lead, { index, name, task });
    this.#members.set(index, member);
    return member;
  }

  #tell(index: number, status: MemberStatus, calls?: PendingCall[]): Promise<void> {
    const { callId, show } = this.#bench.context;
    const member = this.#names[index] as MemberName;
    const event: AgentEvent = { type: "agent", callId, member, status };
    return show(calls ? { ...event, calls } : event);
  }

  /** Its own calls: those of its members have been told of by them. */
  async #tellWaiting(index: number, calls: readonly PendingCall[]): Promise<void> {
    const own = calls.filter(({ agent }) => agent === this.#names[index]?.name);
    if (own.length > 0) await this.#tell(index, "waiting", own);
  }

  #fault(error: unknown): Ended {
    if (error instanceof AppError) return { status: "failed", text: error.message };
    this.#services.platform.log("error", "a member of a swarm failed", {
      run_id: this.#lead.runId,
      error: String((error as Error)?.stack ?? error),
    });
    return { status: "failed", text: "It failed inside the service." };
  }

  async #output(outcomes: Ended[]): Promise<ToolOutput> {
    const results = await Promise.all(outcomes.map((outcome, index) => this.#result(outcome, index)));
    return {
      content: [{ type: "text", text: JSON.stringify({ results }) }],
      failed: outcomes.every(({ status }) => status !== "completed"),
      usage: [...this.#usage.values()].reduce(addUsage, { input: 0, output: 0 }),
      outside: this.#outside,
    };
  }

  async #result({ status, text, cut }: Ended, index: number): Promise<Record<string, unknown>> {
    const agent = this.#names[index]?.name;
    if (status !== "completed") return { agent, status, error: shortened(text, this.#room) };
    const schema = this.#tasks[index]?.schema;
    const read = schema ? readJson(text) : null;
    const result = read && "value" in read ? read.value : shortened(text, this.#room);
    const unchecked = schema && !(await this.#options.schemas.isCheckable(schema));
    const notes = [
      ...(cut ? ["It met a limit before it was ready."] : []),
      ...(unchecked
        ? ["The schema refers to itself or is too large: that the result fits was not checked."]
        : []),
    ];
    return { agent, status, result, ...(notes.length > 0 ? { note: notes.join(" ") } : {}) };
  }
}

/** Of the members that are parked: the calls that they wait with. */
function parkedIn(outcomes: ReadonlyMap<number, Outcome>): Map<number, string[]> {
  const parked = new Map<number, string[]>();
  for (const [index, outcome] of outcomes)
    if (outcome.status === "parked")
      parked.set(
        index,
        outcome.calls.map(({ id }) => id),
      );
  return parked;
}
