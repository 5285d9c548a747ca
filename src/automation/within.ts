/** What an agent makes for later may do no more than the agent itself may: a job gets no tool that its conversation has not. */
import { narrowed } from "../agent/narrow.ts";
import { createPolicy } from "../agent/policy.ts";
import type { AgentServices } from "../agent/turn.ts";
import { hasTool, type NamedAgent } from "../core/agents.ts";
import { wrong } from "./cron-change.ts";

/** `has`: the tools of the run that asks. Throws AppError `invalid_request` for a job that would have others. */
export async function checkWithin(
  services: AgentServices,
  { owner, allowedTools }: { owner: string; allowedTools: string[] | null },
  agent: NamedAgent | null,
  has: readonly string[],
): Promise<void> {
  if (allowedTools) {
    const more = allowedTools.filter((name) => !has.includes(name));
    if (more.length === 0) return;
    throw wrong(
      "allowed_tools",
      `this conversation has no tool ${more.join(", ").slice(0, 200)} itself. Name only tools that are here.`,
    );
  }
  const offered = await runsUnasked(services, owner, agent);
  if (offered.every((name) => has.includes(name))) return;
  throw wrong(
    "allowed_tools",
    "this conversation has only some of the tools, and the task would have them all. Name those that it needs.",
  );
}

/** Names of the tools that a job without a list of its own can use. */
async function runsUnasked(
  services: AgentServices,
  owner: string,
  agent: NamedAgent | null,
): Promise<string[]> {
  const policy = narrowed(createPolicy(services.approval), agent?.policy ?? []);
  const terminal = services.platform.terminal?.(owner);
  return (await services.tools.of(owner))
    .filter((tool) => hasTool(agent?.tools ?? null, tool))
    .filter((tool) => terminal !== undefined || !tool.needs.includes("terminal"))
    .filter((tool) => policy.mayAllow(tool))
    .map(({ name }) => name);
}
