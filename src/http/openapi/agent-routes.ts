/** `/api/agents`. */
import * as z from "zod";
import { agentChange, agentList, agentRequest, agentSaved, agentView } from "../agents.ts";
import type { Operation } from "./operation.ts";
import { idempotency, paging } from "./parameters.ts";
import { deleted } from "./session-routes.ts";

const agentId = z.object({
  id: z
    .string()
    .describe("An id or a name.")
    .meta({ examples: ["agt_example"] }),
});

const REVIEWER = {
  id: "agt_example",
  name: "reviewer",
  description: "Reads a change and says what is wrong with it.",
  instructions: "You review code. Read before you judge, and quote the lines that you mean.",
  provider: null,
  model: null,
  tools: ["read_file", "list_files", "search_files"],
  policy: [{ tool: "read_file", args: { path: "secrets/*" }, decision: "deny" }],
  sub_agents: [],
  created_at: "2026-11-20T10:00:00.000Z",
  updated_at: "2026-11-20T10:00:00.000Z",
};
const LEAD = {
  ...REVIEWER,
  id: "agt_example2",
  name: "lead",
  description: "",
  instructions: "Split the work among your agents, and answer for the whole.",
  tools: null,
  policy: [],
  sub_agents: ["reviewer"],
};
const saved = (status: string, agent: typeof LEAD | typeof REVIEWER) => ({
  status,
  agent_id: agent.id,
  agent,
});

export const AGENT_ROUTES = [
  {
    id: "listAgents",
    method: "get",
    path: "/api/agents",
    tag: "Agents",
    summary: "List your agents",
    description: "Newest first. The default agent, `dragoman`, is not among them.",
    family: "api",
    query: z.object(paging),
    replies: {
      200: {
        description: "A page of agents.",
        json: { schema: agentList, examples: { Page: { agents: [LEAD, REVIEWER], next_cursor: null } } },
      },
    },
    faults: [400],
  },
  {
    id: "createAgent",
    method: "post",
    path: "/api/agents",
    tag: "Agents",
    summary: "Make an agent",
    description:
      "It is reached by `agent_name` of `POST /api/chat`, as the model `dragoman/<name>` or `dragoman/<name>@<model id>` in every door, and by the agents that have it among their `sub_agents`.",
    family: "api",
    headers: idempotency,
    body: {
      schema: agentRequest,
      examples: {
        Reviewer: {
          name: REVIEWER.name,
          description: REVIEWER.description,
          instructions: REVIEWER.instructions,
          tools: REVIEWER.tools,
          policy: REVIEWER.policy,
        },
        "One that leads others": {
          name: LEAD.name,
          instructions: LEAD.instructions,
          sub_agents: LEAD.sub_agents,
        },
      },
    },
    replies: {
      201: {
        description: "It is there.",
        headers: ["idempotency-replayed"],
        json: { schema: agentSaved, examples: { Created: saved("created", REVIEWER) } },
      },
    },
    faults: [409, 422, 507],
  },
  {
    id: "getAgent",
    method: "get",
    path: "/api/agents/{id}",
    tag: "Agents",
    summary: "Read an agent",
    family: "api",
    params: agentId,
    replies: {
      200: { description: "The agent.", json: { schema: agentView, examples: { Agent: REVIEWER } } },
    },
    faults: [404],
  },
  {
    id: "updateAgent",
    method: "patch",
    path: "/api/agents/{id}",
    tag: "Agents",
    summary: "Change an agent",
    description:
      "Runs under way keep what they began with. Under a new name it is not found by the old one any more: change the `sub_agents` and the jobs that have it.",
    family: "api",
    params: agentId,
    body: { schema: agentChange, examples: { "Another model": { model: "gpt-5" } } },
    replies: {
      200: {
        description: "It is changed.",
        json: { schema: agentSaved, examples: { Updated: saved("updated", LEAD) } },
      },
    },
    faults: [404, 409, 507],
  },
  {
    id: "deleteAgent",
    method: "delete",
    path: "/api/agents/{id}",
    tag: "Agents",
    summary: "Delete an agent",
    description:
      "Its sessions stay. Runs under way keep what they began with. Agents that have it among their `sub_agents` cannot delegate to it any more, and jobs that name it fail and say why.",
    family: "api",
    params: agentId,
    replies: {
      200: {
        description: "It is gone.",
        json: { schema: deleted, examples: { Deleted: { status: "deleted", deleted: 1 } } },
      },
    },
    faults: [404],
  },
] as const satisfies readonly Operation[];
