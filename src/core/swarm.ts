/** Swarms: what a run may delegate, to whom, and what is known of the runs that it delegates to. */
import * as z from "zod";
import type { AgentBrief } from "./agents.ts";
import type { PolicyRule } from "./policy.ts";

/** Tasks of one call. */
export const TASKS_LIMIT = 20;
const TASK_LIMIT = 100_000;
const ROLE_LIMIT = 4_000;

export const delegateArgs = z.object({
  tasks: z
    .array(
      z.object({
        agent: z
          .string()
          .max(64)
          .optional()
          .describe("One of the agents named above. Either this or `role`."),
        role: z
          .string()
          .max(ROLE_LIMIT)
          .optional()
          .describe("Who the member is, for a member that is none of the agents: `historian`, `critic`."),
        task: z
          .string()
          .min(1)
          .max(TASK_LIMIT)
          .describe("All that the member has to know: it sees nothing of this conversation."),
        schema: z
          .record(z.string(), z.unknown())
          .optional()
          .describe("A JSON schema, where the result has to be JSON."),
      }),
    )
    .min(1)
    .max(TASKS_LIMIT),
});

export type DelegateArgs = z.infer<typeof delegateArgs>;
export type Task = DelegateArgs["tasks"][number];

/** Stored with a run that may delegate. */
export interface SwarmSpec {
  /** How many delegations lie above the run: 0 for one that a caller began. */
  depth: number;
  /** The named agents that it may delegate to. */
  agents: AgentBrief[];
  /** Names of the only tools that members may have; null: all that policy allows. */
  allowed: string[] | null;
  /** Of a debate: how often members see each other's answers. */
  rounds?: number | undefined;
}

/** Stored with a run that was delegated. */
export interface MemberSpec {
  /** The run that all of the swarm hangs from, and the one that delegated. */
  root: string;
  lead: string;
  /** What events and approvals call it: unique in the swarm. */
  name: string;
  /** What the lead had read comes from outside, and so may what it says (E4). */
  outside: boolean;
  /** The rules of the agents above it, each of which narrows what is below. */
  above?: PolicyRule[][] | undefined;
}

/** A member as events name it. */
export interface MemberName {
  /** Its first run. */
  runId: string;
  name: string;
  /** Its beginning. */
  task: string;
  /** The name of the lead. */
  parent: string;
}

/** `waiting`: for somebody to decide on its calls, while others still work. */
export type MemberStatus = "started" | "waiting" | "completed" | "failed" | "stopped";
