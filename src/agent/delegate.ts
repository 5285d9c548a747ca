/**
 * The tool with which an agent leads a swarm: tasks go to members that work side by side, and their results come back as
 * one. The call has no effect of its own, so that it may be made again; see delegation.ts.
 */
import type { ProviderName } from "../core/message.ts";
import { type DelegateArgs, delegateArgs, type SwarmSpec } from "../core/swarm.ts";
import { defineTool, type Tool } from "../core/tool.ts";
import { Delegation } from "./delegation.ts";
import { shortened } from "./member-names.ts";
import type { Lead, MemberBench } from "./member-run.ts";
import { DELEGATE } from "./select-tools.ts";
import type { AgentServices } from "./turn.ts";

/** Characters that the descriptions of the agents have in that of the tool, together. */
const DESCRIPTIONS_LIMIT = 10_000;

export interface SwarmOptions {
  /** Members of one swarm that work at the same time. */
  concurrency: number;
  /** Delegations below one another. */
  depth: number;
  defaultModel(provider: ProviderName): string;
  hold: MemberBench["hold"];
  retryEnd: MemberBench["retryEnd"];
  schemas: JsonSchemas;
}

export interface JsonSchemas {
  /** A sentence about what makes a schema useless, or null. */
  schemaProblem(schema: Record<string, unknown>): Promise<string | null>;
  /** Whether values are held against it. */
  isCheckable(schema: Record<string, unknown>): Promise<boolean>;
  /** A sentence about what is wrong with a value, or null. */
  outputProblem(schema: Record<string, unknown>, value: unknown): Promise<string | null>;
}

/** What turns use of it. */
export interface Swarm {
  /** Whether a run so far below another may delegate. */
  reaches(depth: number): boolean;
  tool(lead: Lead): Tool;
  /** The tool as a run without agents below it has it, for lists. */
  listed: Tool;
}

export function createSwarm(services: AgentServices, options: SwarmOptions): Swarm {
  const toolOf = (swarm: Pick<SwarmSpec, "agents" | "rounds">, run: Tool<DelegateArgs>["run"]): Tool =>
    defineTool<DelegateArgs>({
      name: DELEGATE,
      description: description(swarm),
      args: delegateArgs,
      needs: [],
      // What members do is judged call by call.
      risk: "read",
      run,
    });
  return {
    reaches: (depth) => depth < options.depth,
    tool(lead) {
      // The calls of one turn are made side by side.
      const calls = { working: 0 };
      return toolOf(lead.swarm, ({ tasks }, context) =>
        new Delegation(services, options, { lead, calls }, context, tasks).run(),
      );
    },
    listed: toolOf({ agents: [] }, () => Promise.reject(new Error("a listed tool is not run"))),
  };
}

function description({ agents, rounds }: Pick<SwarmSpec, "agents" | "rounds">): string {
  const lines = [
    "Gives tasks to other agents, which work on them side by side, each with tools and a conversation of its own, and answers with all their results. Use it for parts of the work that do not depend on each other, or to have something looked at from several sides. A member that fails is reported as such; the others' results stand.",
  ];
  if (rounds !== undefined)
    lines.push(
      `The members debate: in ${rounds} rounds each of them sees the others' answers and may change its own. Give all of them the same question, and a role of its own to each.`,
    );
  if (agents.length > 0) {
    const room = Math.floor(DESCRIPTIONS_LIMIT / agents.length);
    const named = agents.map(
      ({ name, description }) => `- ${name}${description && `: ${shortened(description, room)}`}`,
    );
    lines.push(`The agents that you may name:\n${named.join("\n")}`);
  }
  return lines.join("\n\n");
}
