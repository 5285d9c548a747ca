/**
 * The tool with which an agent leads a swarm: tasks go to members that work side by side, and their results come back as
 * one. The call has no effect of its own, so that it may be made again: after a decision on a member's call, and after a
 * crash, members that have finished are asked for their results and the others go on.
 */
import type { NamedAgent } from "../core/agents.ts";
import type { AgentEvent, PendingCall } from "../core/event.ts";
import { addUsage, type ProviderName, type Usage } from "../core/message.ts";
import { reveal } from "../core/preview.ts";
import {
  type DelegateArgs,
  delegateArgs,
  type MemberName,
  type MemberStatus,
  type SwarmSpec,
  type Task,
} from "../core/swarm.ts";
import { defineTool, type Tool, type ToolContext, type ToolOutput } from "../core/tool.ts";
import { AppError } from "../errors.ts";
import {
  type Ended,
  type Lead,
  type Member,
  type MemberBench,
  memberRunId,
  memberTurn,
} from "./member-run.ts";
import { correction, readJson, rebuttal } from "./member-words.ts";
import { DELEGATE } from "./select-tools.ts";
import type { AgentServices } from "./turn.ts";

/** Characters of one member's result that the lead is given. */
const RESULT_LIMIT = 64_000;
const NAME_LIMIT = 64;
/** Of a task that events show. */
const SHOWN_TASK_LIMIT = 500;

export interface SwarmOptions {
  /** Members of one call that work at the same time. */
  concurrency: number;
  /** Delegations below one another. */
  depth: number;
  defaultModel(provider: ProviderName): string;
  hold: MemberBench["hold"];
  retryEnd: MemberBench["retryEnd"];
  /** A sentence about what is wrong with a value, or null. */
  jsonProblem(schema: Record<string, unknown>, value: unknown): Promise<string | null>;
}

/** What turns use of it. */
export interface Swarm {
  /** Whether a run so far below another may delegate. */
  reaches(depth: number): boolean;
  tool(lead: Lead): Tool;
}

export function createSwarm(services: AgentServices, options: SwarmOptions): Swarm {
  return {
    reaches: (depth) => depth < options.depth,
    tool: (lead) =>
      defineTool<DelegateArgs>({
        name: DELEGATE,
        description: description(lead.swarm),
        args: delegateArgs,
        needs: [],
        // What members do is judged call by call.
        risk: "read",
        run: (args, context) => new Delegation(services, options, lead, context).run(args.tasks),
      }),
  };
}

function description({ agents, rounds }: SwarmSpec): string {
  const lines = [
    "Gives tasks to other agents, which work on them side by side, each with tools and a conversation of its own, and answers with all their results. Use it for parts of the work that do not depend on each other, or to have something looked at from several sides. A member that fails is reported as such; the others' results stand.",
  ];
  if (rounds !== undefined)
    lines.push(
      `The members debate: in ${rounds} rounds each of them sees the others' answers and may change its own. Give all of them the same question, and a role of its own to each.`,
    );
  if (agents.length > 0) {
    const named = agents.map((agent) => `- ${agent.name}${agent.description && `: ${agent.description}`}`);
    lines.push(`The agents that you may name:\n${named.join("\n")}`);
  }
  return lines.join("\n\n");
}

type Outcome = Ended | { status: "parked"; calls: PendingCall[] };

class Delegation {
  readonly #services: AgentServices;
  readonly #options: SwarmOptions;
  readonly #lead: Lead;
  readonly #bench: MemberBench;
  readonly #show: (event: AgentEvent) => Promise<void>;
  #usage: Usage = { input: 0, output: 0 };
  #outside = false;

  constructor(services: AgentServices, options: SwarmOptions, lead: Lead, context: ToolContext) {
    this.#services = services;
    this.#options = options;
    this.#lead = lead;
    this.#show = context.show ?? (async () => {});
    this.#bench = {
      ...{ services, lead, hold: options.hold, retryEnd: options.retryEnd },
      context: { callId: context.callId, signal: context.signal, show: this.#show },
      outside: context.outside?.() === true,
      spent: (usage) => {
        this.#usage = addUsage(this.#usage, usage);
      },
      foundOutside: () => {
        this.#outside = true;
      },
    };
  }

  async run(tasks: Task[]): Promise<ToolOutput> {
    const names = await this.#names(tasks);
    const rounds = this.#lead.swarm.rounds ?? 1;
    const members = new Map<number, Member>();
    let outcomes: Outcome[] = [];
    for (let round = 0; round < rounds; round++) {
      const before = outcomes;
      const work = async (index: number): Promise<Outcome> => {
        const task = tasks[index] as Task;
        const name = names[index] as MemberName;
        const member = members.get(index) ?? (await this.#member(task, index, name));
        members.set(index, member);
        const prompt = round === 0 ? task.task : rebuttal(index, names, before);
        return this.#answer(member, round, prompt, round === rounds - 1);
      };
      outcomes = await this.#sideBySide(tasks.length, async (index) => {
        const earlier = before[index];
        if (earlier && earlier.status !== "completed") return earlier;
        const name = names[index] as MemberName;
        if (round === 0) await this.#tell(name, "started");
        const outcome = await work(index).catch((error: unknown) => this.#fault(error));
        const over = round === rounds - 1 || outcome.status !== "completed";
        if (over && outcome.status !== "parked") await this.#tell(name, outcome.status);
        return outcome;
      });
      const parked = outcomes.flatMap((outcome) => (outcome.status === "parked" ? outcome.calls : []));
      if (parked.length > 0) return { content: [], parked };
    }
    return this.#output(tasks, names, outcomes as Ended[]);
  }

  /** Unique in the call; those of members below a member have its name in front. */
  #names(tasks: Task[]): Promise<MemberName[]> {
    const { runId, name: parent, swarm } = this.#lead;
    const { callId } = this.#bench.context;
    const used = new Set<string>();
    const unique = ({ agent, role }: Task): string => {
      const line = role?.trim().split(/[\r\n]/, 1)[0] ?? "";
      // A person who decides on its calls reads it.
      const base = reveal((agent || line).slice(0, NAME_LIMIT).toWellFormed()).trim() || "member";
      let name = base;
      for (let number = 2; used.has(name); number++) name = `${base} ${number}`;
      used.add(name);
      return swarm.depth === 0 ? name : `${parent}/${name}`;
    };
    return Promise.all(
      tasks.map(async (task, index) => {
        const name = unique(task);
        const shown = shortened(task.task, SHOWN_TASK_LIMIT);
        return { runId: await memberRunId(runId, callId, index, 0), name, task: shown, parent };
      }),
    );
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
    const read = readJson(text);
    if ("problem" in read) return read.problem;
    const problem = await this.#options.jsonProblem(schema, read.value);
    return problem === null ? null : `at ${problem}`;
  }

  /** Throws AppError for a task that nobody can be given. */
  async #member(task: Task, index: number, name: MemberName): Promise<Member> {
    const lead = this.#lead;
    const agent = task.agent === undefined ? null : await this.#agent(task.agent);
    const depth = lead.swarm.depth + 1;
    const subAgents = agent?.subAgents ?? [];
    const { allowed } = lead.swarm;
    return {
      ...{ index, name, task, agent },
      model: await this.#model(agent),
      swarm:
        subAgents.length > 0 && depth < this.#options.depth
          ? { depth, allowed, agents: await briefs(this.#services, lead.owner, subAgents) }
          : undefined,
      // Who is nobody else is as its lead.
      selection: agent ? (allowed ?? "all") : lead.tools,
      rules: agent ? agent.policy : lead.rules,
    };
  }

  async #agent(name: string): Promise<NamedAgent> {
    const { agents } = this.#lead.swarm;
    const known = agents.some((agent) => agent.name === name);
    const agent = known ? await this.#services.store.agents.get(this.#lead.owner, name) : null;
    if (agent) return agent;
    const others = agents.map((each) => each.name).join(", ") || "none; give the member a role instead";
    throw new AppError("not_found", `There is no agent '${name}' here. The agents are: ${others}.`);
  }

  /**
   * An agent on another provider than its lead's has the operator's key, unless the caller has brought one: that is not
   * for this provider, and who pays with a key of his own is not given the operator's.
   */
  async #model(agent: NamedAgent | null): Promise<Member["model"]> {
    const { adapter, key, callersKey, model } = this.#lead;
    const provider = agent?.provider ?? adapter.provider;
    if (provider === adapter.provider) return { adapter, key, callersKey, id: agent?.model ?? model };
    if (callersKey)
      throw new AppError(
        "missing_key",
        `The agent '${agent?.name}' answers on ${provider}, and the key of this run is one for ${adapter.provider}.`,
      );
    const { models } = this.#services;
    const where = "the settings of the service";
    const credentials = models.choose({ key: undefined, provider, param: "provider", where });
    return {
      adapter: await models.adapter(credentials),
      key: credentials.key,
      callersKey: false,
      id: agent?.model ?? this.#options.defaultModel(provider),
    };
  }

  #tell(member: MemberName, status: MemberStatus): Promise<void> {
    return this.#show({ type: "agent", callId: this.#bench.context.callId, member, status });
  }

  #fault(error: unknown): Ended {
    if (error instanceof AppError) return { status: "failed", text: error.message };
    this.#services.platform.log("error", "a member of a swarm failed", {
      run_id: this.#lead.runId,
      error: String((error as Error)?.stack ?? error),
    });
    return { status: "failed", text: "It failed inside the service." };
  }

  async #sideBySide(count: number, work: (index: number) => Promise<Outcome>): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    let next = 0;
    const worker = async () => {
      while (next < count) {
        const index = next++;
        outcomes[index] = await work(index);
      }
    };
    await Promise.all(Array.from({ length: Math.min(count, this.#options.concurrency) }, worker));
    return outcomes;
  }

  #output(tasks: Task[], names: MemberName[], outcomes: Ended[]): ToolOutput {
    const results = outcomes.map(({ status, text, cut }, index) => {
      const short = shortened(text, RESULT_LIMIT);
      const agent = names[index]?.name;
      if (status !== "completed") return { agent, status, error: short };
      const read = tasks[index]?.schema ? readJson(text) : null;
      const result = read && "value" in read ? read.value : short;
      return { agent, status, result, ...(cut ? { note: "It met a limit before it was ready." } : {}) };
    });
    return {
      content: [{ type: "text", text: JSON.stringify({ results }) }],
      failed: outcomes.every(({ status }) => status !== "completed"),
      usage: this.#usage,
      outside: this.#outside,
    };
  }
}

/** Those of the names that are agents of the owner's. */
export async function briefs(services: AgentServices, owner: string, names: readonly string[]) {
  return (await services.store.agents.names(owner)).filter(({ name }) => names.includes(name));
}

function shortened(text: string, limit: number): string {
  return text.length > limit ? `${text.slice(0, limit).toWellFormed()}… [cut]` : text;
}
