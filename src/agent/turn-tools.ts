/** What of the agent's joins a turn: its prompt, its tools, and what it may delegate. */
import { hasTool, type NamedAgent } from "../core/agents.ts";
import { type TextPart, text } from "../core/message.ts";
import type { ModelRequest } from "../core/model.ts";
import type { SwarmSpec } from "../core/swarm.ts";
import type { Tool } from "../core/tool.ts";
import type { Lead } from "./member-run.ts";
import type { Policy } from "./policy.ts";
import { agentPrompt } from "./prompt.ts";
import { DELEGATE, selectTools } from "./select-tools.ts";
import type { SwarmShare } from "./swarm-share.ts";
import type { AgentServices, Ask } from "./turn.ts";

/** The request with the agent's prompt, and the tools that join it. */
export function prepare(services: AgentServices, ask: Ask, policy: Policy, all: readonly Tool[]) {
  const { platform } = services;
  const files = platform.files(ask.owner);
  const terminal = platform.terminal?.(ask.owner);
  const { agent } = ask;
  const available = all.filter(
    (tool) =>
      (!tool.needs.includes("terminal") || terminal !== undefined) && hasTool(agent?.tools ?? null, tool),
  );
  const { clientTools, toolChoice } = { clientTools: ask.request.tools, toolChoice: ask.request.toolChoice };
  const { selection } = ask;
  // What is denied to a job is reported, so it has to be offered.
  const canAsk = ask.asking !== "nobody" || ask.unattended !== undefined;
  const chosen =
    ask.target.agent === null
      ? []
      : selectTools({ available, policy, selection, clientTools, toolChoice, canAsk });
  const prompted = ask.target.agent !== null && (chosen.length > 0 || ask.target.named);
  const system = prompted
    ? [agentPrompt({ tools: chosen, files, terminal }), ...instructionsOf(agent), ...ask.request.system]
    : ask.request.system;
  const request: ModelRequest = { ...ask.request, model: ask.target.model, system };
  return {
    request,
    tools: new Map(chosen.map((tool) => [tool.name, tool])),
    swarm: swarmOf(services, ask, policy, all),
  };
}

function instructionsOf(agent: NamedAgent | undefined): TextPart[] {
  return agent?.instructions.trim() ? [text(agent.instructions)] : [];
}

/** What the run may delegate; undefined where it may not. */
function swarmOf(
  { swarm }: AgentServices,
  ask: Ask,
  policy: Policy,
  all: readonly Tool[],
): SwarmSpec | undefined {
  const { selection, request } = ask;
  if (!swarm || !ask.swarm || ask.target.agent === null || selection === "none") return undefined;
  if (request.toolChoice && request.toolChoice.type !== "auto") return undefined;
  if (request.tools.some(({ name }) => name === DELEGATE) || !swarm.reaches(ask.swarm.depth))
    return undefined;
  if (policy.decide({ name: DELEGATE, risk: "read" }, {}) === "deny") return undefined;
  // A coding client has a shell and files of its own, and must not find them doubled in members.
  const doubled = selection === "default" && request.tools.length > 0;
  const named = Array.isArray(selection) ? selection : null;
  const apart = () => all.filter((tool) => tool.needs.length === 0).map(({ name }) => name);
  return { allowed: named ?? (doubled ? apart() : null), ...ask.swarm };
}

/** The tool that a run leads its swarm with, behind its own. */
export function addDelegate(
  services: AgentServices,
  tools: Map<string, Tool>,
  swarm: SwarmSpec | undefined,
  share: SwarmShare | undefined,
  lead: Omit<Lead, "swarm" | "share" | "tools">,
): void {
  if (!swarm || !share || !services.swarm) return;
  const tool = services.swarm.tool({ ...lead, swarm, share, tools: [...tools.keys()] });
  tools.set(tool.name, tool);
}
