/** Who a task of a swarm goes to: which agent it is, on whose model, with which tools and rules, and whether it may delegate. */
import type { NamedAgent } from "../core/agents.ts";
import { AppError } from "../errors.ts";
import type { SwarmOptions } from "./delegate.ts";
import type { Lead, Member } from "./member-run.ts";
import { briefs } from "./named-agents.ts";
import type { AgentServices } from "./turn.ts";

/** Throws AppError for a task that nobody can be given. */
export async function createMember(
  services: AgentServices,
  options: SwarmOptions,
  lead: Lead,
  place: Pick<Member, "index" | "name" | "task">,
): Promise<Member> {
  const { task } = place;
  const unfit = task.schema && (await options.schemas.schemaProblem(task.schema));
  if (unfit) throw new AppError("invalid_request", `Its schema cannot be used. ${unfit}`);
  const agent = task.agent === undefined ? null : await agentOf(services, lead, task.agent);
  const depth = lead.swarm.depth + 1;
  const subAgents = agent?.subAgents ?? [];
  const { allowed } = lead.swarm;
  const above = lead.rules.length > 0 ? [...lead.above, lead.rules] : lead.above;
  return {
    ...place,
    agent,
    model: await modelOf(services, options, lead, agent),
    swarm:
      subAgents.length > 0 && depth < options.depth
        ? { depth, allowed, agents: await briefs(services, lead.owner, subAgents) }
        : undefined,
    // Who is nobody else is as its lead.
    selection: agent ? (allowed ?? "all") : lead.tools,
    ...(agent ? { rules: agent.policy, above } : { rules: lead.rules, above: lead.above }),
  };
}

async function agentOf({ store }: AgentServices, { owner, swarm }: Lead, name: string): Promise<NamedAgent> {
  const known = swarm.agents.some((agent) => agent.name === name);
  const agent = known ? await store.agents.get(owner, name) : null;
  if (agent) return agent;
  const others = swarm.agents.map((each) => each.name).join(", ") || "none; give the member a role instead";
  throw new AppError("not_found", `There is no agent '${name}' here. The agents are: ${others}.`);
}

/**
 * An agent on another provider than its lead's has the operator's key, unless the caller has brought one: that is not
 * for this provider, and who pays with a key of his own is not given the operator's.
 */
async function modelOf(
  { models }: AgentServices,
  { defaultModel }: SwarmOptions,
  { adapter, key, callersKey, model }: Lead,
  agent: NamedAgent | null,
): Promise<Member["model"]> {
  const provider = agent?.provider ?? adapter.provider;
  if (provider === adapter.provider) return { adapter, key, callersKey, id: agent?.model ?? model };
  if (callersKey)
    throw new AppError(
      "missing_key",
      `The agent '${agent?.name}' answers on ${provider}, and the key of this run is one for ${adapter.provider}.`,
    );
  const where = "the settings of the service";
  const credentials = models.choose({ key: undefined, provider, param: "provider", where });
  return {
    adapter: await models.adapter(credentials),
    key: credentials.key,
    callersKey: false,
    id: agent?.model ?? defaultModel(provider),
  };
}
