/** `/api/agents`: agents that have a name, and what makes them different from the default one. */
import { type Context, Hono } from "hono";
import * as z from "zod";
import { type AgentDraft, agentFields, agentName, type NamedAgent, toProviderName } from "../core/agents.ts";
import { PROVIDERS } from "../core/message.ts";
import { PolicyRule } from "../core/policy.ts";
import { AppError } from "../errors.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";
import { pageOf, readBody } from "./validate.ts";

const { description, instructions, provider, model, tools, policy, sub_agents } = agentFields;

export const agentRequest = z
  .looseObject({
    name: agentName.describe("`agent_name`, and `dragoman/<name>` as a model. Unique among your agents."),
    description: description.nullish(),
    instructions: instructions.nullish(),
    provider: provider.optional(),
    model: model.optional(),
    tools: tools.optional(),
    policy: policy.nullish(),
    sub_agents: sub_agents.nullish(),
  })
  .meta({ id: "AgentRequest" });

export const agentChange = z
  .looseObject({
    name: agentName.optional(),
    description: description.optional(),
    instructions: instructions.optional(),
    provider: provider.optional(),
    model: model.optional(),
    tools: tools.optional(),
    policy: policy.optional(),
    sub_agents: sub_agents.optional(),
  })
  .meta({ id: "AgentChange", description: "What is absent stays as it is." });

export const agentView = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    instructions: z.string(),
    provider: z.enum(PROVIDERS).nullable(),
    model: z.string().nullable(),
    tools: z.array(z.string()).nullable(),
    policy: z.array(PolicyRule),
    sub_agents: z.array(z.string()),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: "Agent" });

export const agentList = z
  .object({ agents: z.array(agentView), next_cursor: z.string().nullable() })
  .meta({ id: "AgentList" });

export const agentSaved = z
  .object({ status: z.enum(["created", "updated"]), agent_id: z.string(), agent: agentView })
  .meta({ id: "AgentSaved" });

export function agentRoutes({ store, config }: Services): Hono<AppEnv> {
  const { agents } = store;
  const limits = { limit: config.body.apiLimit, timeoutMs: config.body.timeoutMs };

  /** A name that nobody has is a slip of the pen. `own`: an agent may name itself. */
  async function checkSubAgents(owner: string, names: readonly string[], own: string): Promise<void> {
    if (names.length === 0) return;
    const known = new Set((await agents.names(owner)).map(({ name }) => name)).add(own);
    const unknown = names.findIndex((name) => !known.has(name));
    if (unknown === -1) return;
    throw new AppError(
      "invalid_request",
      `sub_agents[${unknown}]: there is no agent '${names[unknown]}'. Make it first with POST /api/agents.`,
      { param: `sub_agents[${unknown}]` },
    );
  }

  async function find(c: Context<AppEnv>): Promise<NamedAgent> {
    const agent = await agents.get(c.get("owner"), c.req.param("id") ?? "");
    if (agent) return agent;
    throw noAgent();
  }

  return new Hono<AppEnv>()
    .get("/", async (c) => {
      const page = await agents.list(c.get("owner"), pageOf(c));
      return c.json({ agents: page.agents.map(encodeAgent), next_cursor: page.next });
    })
    .post("/", async (c) => {
      const owner = c.get("owner");
      const wire = await readBody(c, agentRequest, limits);
      await checkSubAgents(owner, wire.sub_agents ?? [], wire.name);
      const agent = await agents.create(owner, {
        name: wire.name,
        description: wire.description ?? "",
        instructions: wire.instructions ?? "",
        provider: wire.provider ? toProviderName(wire.provider) : null,
        model: wire.model ?? null,
        tools: wire.tools ?? null,
        policy: wire.policy ?? [],
        subAgents: unique(wire.sub_agents ?? []),
      });
      return c.json({ status: "created", agent_id: agent.id, agent: encodeAgent(agent) }, 201, {
        location: `/api/agents/${agent.id}`,
      });
    })
    .get("/:id", async (c) => c.json(encodeAgent(await find(c))))
    .patch("/:id", async (c) => {
      const owner = c.get("owner");
      const change = changeOf(await readBody(c, agentChange, limits));
      const { id, name } = await find(c);
      await checkSubAgents(owner, change.subAgents ?? [], change.name ?? name);
      const agent = await agents.update(owner, id, change);
      if (!agent) throw noAgent();
      return c.json({ status: "updated", agent_id: agent.id, agent: encodeAgent(agent) });
    })
    .delete("/:id", async (c) => {
      if (!(await agents.delete(c.get("owner"), c.req.param("id")))) throw noAgent();
      return c.json({ status: "deleted", deleted: 1 });
    });
}

function changeOf(wire: z.output<typeof agentChange>): Partial<AgentDraft> {
  const { name, description, instructions, model, tools, policy } = wire;
  const change: Partial<AgentDraft> = { name, description, instructions, model, tools, policy };
  if (wire.provider !== undefined) change.provider = wire.provider && toProviderName(wire.provider);
  if (wire.sub_agents !== undefined) change.subAgents = unique(wire.sub_agents);
  return change;
}

export function encodeAgent(agent: NamedAgent): z.output<typeof agentView> {
  const { id, name, description, instructions, provider, model, tools, policy, subAgents } = agent;
  return {
    ...{ id, name, description, instructions, provider, model, tools, policy, sub_agents: subAgents },
    created_at: agent.createdAt.toISOString(),
    updated_at: agent.updatedAt.toISOString(),
  };
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)];
}

function noAgent(): AppError {
  return new AppError(
    "not_found",
    "There is no agent with this id or name. GET /api/agents lists those there are.",
  );
}
