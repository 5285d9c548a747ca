/** Which of the agent's own tools join a request. */
import type { ToolChoice, ToolSpec } from "../core/model.ts";
import type { Tool } from "../core/tool.ts";
import type { Policy } from "./policy.ts";

/** The tool with which an agent leads a swarm. It is offered by what a run is, and not by its selection. */
export const DELEGATE = "delegate";

/** `x-agent-tools`: by default it depends on whether the client brings tools of its own. */
export type ToolSelection = "default" | "all" | "none" | string[];

export interface ToolOffer {
  /** What this platform can run. */
  available: readonly Tool[];
  policy: Policy;
  selection: ToolSelection;
  clientTools: readonly ToolSpec[];
  toolChoice: ToolChoice | undefined;
  /** Whether a person can be asked in the course of the run. */
  canAsk: boolean;
}

export function selectTools(offer: ToolOffer): Tool[] {
  const { available, policy, selection, clientTools, toolChoice, canAsk } = offer;
  if (selection === "none") return [];
  // A choice that forces or forbids calls speaks of the client's tools; the agent's own would stand in its way.
  if (toolChoice && toolChoice.type !== "auto") return [];
  const taken = new Set(clientTools.map((tool) => tool.name));
  return available.filter((tool) => {
    if (taken.has(tool.name)) return false;
    if (Array.isArray(selection) && !selection.includes(tool.name)) return false;
    // A coding client has a shell and files of its own, and must not find them doubled.
    if (selection === "default" && clientTools.length > 0 && tool.needs.length > 0) return false;
    return policy.mayAllow(tool) || (canAsk && policy.decide(tool, {}) === "ask");
  });
}
