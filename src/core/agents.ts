/** Named agents: what an owner has written down of one, and the rules for what may be written. */
import * as z from "zod";
import { matchGlob } from "./glob.ts";
import { PROVIDERS, type ProviderName } from "./message.ts";
import { PolicyRule } from "./policy.ts";
import type { Tool } from "./tool.ts";

/** What an owner says of an agent. */
export interface AgentDraft {
  /** Unique among the owner's agents: `agent_name`, and `dragoman/<name>` as a model. */
  name: string;
  /** What it is for, for agents that may delegate to it. */
  description: string;
  /** Its part of the system prompt. */
  instructions: string;
  /** null: that of the request, or of the agent that delegates. */
  provider: ProviderName | null;
  model: string | null;
  /** Names and globs of the tools that it may use; null: all that policy allows. */
  tools: string[] | null;
  /** They narrow what the operator allows, and never widen it. */
  policy: PolicyRule[];
  /** Names of the agents that it may delegate to. */
  subAgents: string[];
}

export interface NamedAgent extends AgentDraft {
  id: string;
  createdAt: Date;
  updatedAt: Date;
}

export interface AgentPage {
  agents: NamedAgent[];
  /** Opaque; null at the end. */
  next: string | null;
}

/** `ref` is an id or a name. Another owner's agent is one that is not there. */
export interface Agents {
  /** Throws AppError `conflict` for a name that is taken, and where the owner has too many. */
  create(owner: string, draft: AgentDraft): Promise<NamedAgent>;
  get(owner: string, ref: string): Promise<NamedAgent | null>;
  /** Throws AppError `conflict` for a name that is taken. null: there is none. */
  update(owner: string, ref: string, change: Partial<AgentDraft>): Promise<NamedAgent | null>;
  /** false: there is none. */
  delete(owner: string, ref: string): Promise<boolean>;
  /** Newest first. */
  list(owner: string, options: { limit: number; cursor?: string | undefined }): Promise<AgentPage>;
  /** All of the owner's, by name. */
  names(owner: string): Promise<AgentBrief[]>;
}

export type AgentBrief = Pick<AgentDraft, "name" | "description">;

/** Agents of one owner. */
export const AGENTS_LIMIT = 200;
/** The default agent, the bare model, and what could be taken for an id. */
const RESERVED = /^(dragoman|raw|agt_.*)$/;
const NAME = /^[a-z0-9][a-z0-9_-]*$/;
const INSTRUCTIONS_LIMIT = 64 * 1024;
const LIST_LIMIT = 200;

/** A rule in the words that complete "has to …". */
const rule = (wants: string) => ({ error: `has to ${wants}`, params: { wants } });
const storable = (value: string) => !value.includes("\0") && value.isWellFormed();
const STORABLE = rule("be without NUL and without halves of surrogate pairs, which cannot be stored");

export const agentName = z
  .string()
  .min(1)
  .max(64)
  .refine(
    (name) => NAME.test(name) && !RESERVED.test(name),
    rule(
      "be of lower-case letters, digits, - and _, begin with a letter or a digit, and be neither dragoman nor raw nor begin with agt_",
    ),
  );
const word = z.string().min(1).max(200).refine(storable, STORABLE);

const PROVIDER_WORDS = [...PROVIDERS, "claude", "google"] as const;
const ALIASES: Record<string, ProviderName> = { claude: "anthropic", google: "gemini" };

export const agentFields = {
  description: z
    .string()
    .max(1000)
    .refine(storable, STORABLE)
    .describe("What it is for. Agents that may delegate to it read this."),
  instructions: z
    .string()
    .max(INSTRUCTIONS_LIMIT)
    .refine(storable, STORABLE)
    .describe("What it is told about itself, behind what every agent is told."),
  provider: z
    .enum(PROVIDER_WORDS)
    .nullable()
    .describe("null: the provider of the request's key, or of the agent that delegates to it."),
  model: word.nullable().describe("An upstream model id. null: the provider's default model."),
  tools: z
    .array(word)
    .max(LIST_LIMIT)
    .nullable()
    .describe("Names and globs of the tools that it may use, `github__*`. null: all that policy allows."),
  policy: z
    .array(PolicyRule)
    .max(LIST_LIMIT)
    .describe(
      "Rules for its calls, and for those of the agents below it in a swarm. They make the policy above them stricter, and never looser.",
    ),
  sub_agents: z
    .array(agentName)
    .max(LIST_LIMIT)
    .describe("Names of the agents that it may delegate to. With any, it leads a swarm in every door."),
};

export function toProviderName(provider: (typeof PROVIDER_WORDS)[number]): ProviderName {
  return ALIASES[provider] ?? (provider as ProviderName);
}

/** Whether an agent's list of tools has room for one. */
export function hasTool(tools: readonly string[] | null, tool: Pick<Tool, "name">): boolean {
  return tools === null || tools.some((glob) => matchGlob(glob, tool.name));
}
