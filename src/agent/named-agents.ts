/** Which of an owner's agents a request means, by `agent_name` or by the word that it has for a model. */
import type { AgentBrief, Agents, NamedAgent } from "../core/agents.ts";
import { AppError } from "../errors.ts";
import { AGENT, agentOf } from "./target.ts";

/** The words of a request that may name an agent. */
export interface AgentWords {
  /** `model` as the client sent it. */
  model: string;
  /** `agent_name`. */
  agentName?: string | undefined;
}

/**
 * The named agent that is meant; null for the default agent and for the bare model. Throws AppError `not_found` that lists
 * the agents for one that does not exist, `invalid_request` where the two words name different ones.
 */
export async function findAgent(
  agents: Agents,
  owner: string,
  words: AgentWords,
): Promise<NamedAgent | null> {
  const { agentName } = words;
  const inModel = agentOf(words.model);
  if (agentName !== undefined && inModel !== undefined && inModel !== agentName)
    throw new AppError(
      "invalid_request",
      `agent_name: model names the agent '${inModel ?? "raw"}', and agent_name names '${agentName.slice(0, 100)}'. Leave one of them out.`,
      { param: "agent_name" },
    );
  const name = agentName ?? inModel ?? AGENT;
  if (name === AGENT) return null;
  const agent = await agents.get(owner, name);
  // An id is no name: what a client shows as `dragoman/<name>` must be what it means.
  if (agent?.name === name) return agent;
  const param = agentName === undefined ? "model" : "agent_name";
  const upstreamCode = agentName === undefined ? "model_not_found" : undefined;
  throw new AppError(
    "not_found",
    `${param}: there is no agent '${name.slice(0, 100)}'. The agents are: ${(await namesOf(agents, owner)).join(", ")}.`,
    { param, upstreamCode },
  );
}

/** Those of the names that are agents of the owner's. */
export async function briefs(
  { store }: { store: { agents: Pick<Agents, "names"> } },
  owner: string,
  names: readonly string[],
): Promise<AgentBrief[]> {
  return (await store.agents.names(owner)).filter(({ name }) => names.includes(name));
}

/** What an answer lists when it names the agents. */
const LISTED = 50;

async function namesOf(agents: Agents, owner: string): Promise<string[]> {
  const names = (await agents.names(owner)).map(({ name }) => name);
  const more = names.length > LISTED ? [`and ${names.length - LISTED} more (GET /api/agents)`] : [];
  return [AGENT, ...names.slice(0, LISTED), ...more];
}
