/** Who answers a request: which of the owner's agents, on which provider and model, with whose key, and what it may delegate. */
import { type AgentWords, briefs, findAgent } from "../agent/named-agents.ts";
import { resolveTarget, type Target } from "../agent/target.ts";
import type { Ask } from "../agent/turn.ts";
import type { NamedAgent } from "../core/agents.ts";
import type { Credentials, ProviderWish } from "../core/model.ts";
import { AppError } from "../errors.ts";
import type { Services } from "../services.ts";

export interface WhoAnswers {
  /** null: the default agent, or the bare model. */
  agent: NamedAgent | null;
  credentials: Credentials;
  target: Target;
}

/** Throws AppError; see findAgent, ModelRegistry.choose and resolveTarget. */
export async function whoAnswers(
  { config, models, store }: Services,
  owner: string,
  words: AgentWords,
  wish: ProviderWish,
): Promise<WhoAnswers> {
  const agent = await findAgent(store.agents, owner, words);
  const wanted = agent?.provider ?? undefined;
  // A key says by itself where it belongs, and is sent nowhere else because of an agent.
  const provider = wish.provider ?? (wish.key === undefined ? wanted : undefined);
  const credentials = models.choose({ ...wish, provider });
  const elsewhere = wanted !== undefined && credentials.provider !== wanted;
  if (elsewhere && wish.provider === undefined)
    throw new AppError(
      "invalid_request",
      `The agent '${agent?.name}' answers on ${wanted}, and the key of this request is one for ${credentials.provider}. Send a key for ${wanted}, or none where the service has one, or say which provider to use (${wish.param}).`,
      { param: wish.param },
    );
  const { model } = config.providers[credentials.provider];
  const own = agent && (elsewhere ? { ...agent, model: null } : agent);
  return { agent, credentials, target: resolveTarget(words.model, model, config.models.aliases, own) };
}

/** `wish`: the request asks for a swarm. An agent that has agents below it leads one in any case. */
export async function swarmFor(
  { store }: Pick<Services, "store">,
  owner: string,
  agent: NamedAgent | null,
  wish?: { rounds?: number | undefined },
): Promise<Ask["swarm"]> {
  const subAgents = agent?.subAgents ?? [];
  if (!wish && subAgents.length === 0) return undefined;
  // The default agent knows all others, one with a name its own.
  const agents = agent ? await briefs({ store }, owner, subAgents) : await store.agents.names(owner);
  return { depth: 0, agents, rounds: wish?.rounds };
}
