/** The `model` word of a request -> which agent answers, on which upstream model. Pure. */
import type { NamedAgent } from "../core/agents.ts";
import { matchGlob } from "../core/glob.ts";
import { AppError } from "../errors.ts";

/** The default agent's name, and the prefix of all others. */
export const AGENT = "dragoman";
/** `dragoman/raw@<model>`: no agent at all, the bare model. */
const RAW = "raw";

export interface Target {
  /** The agent by name; null is the bare model. */
  agent: string | null;
  /** The agent was named in so many words, rather than implied by a model id. */
  named: boolean;
  /** Upstream model id. */
  model: string;
}

export interface ModelAlias {
  glob: string;
  model: string;
}

/** `agent`: the one that is meant, see findAgent. Throws AppError `not_found` with param `model` for one that is not it. */
export function resolveTarget(
  word: string,
  defaultModel: string,
  aliases: readonly ModelAlias[],
  agent?: Pick<NamedAgent, "name" | "model"> | null,
): Target {
  const target = targetOf(word, agent?.model ?? defaultModel, aliases, agent?.name);
  return agent ? { ...target, agent: agent.name, named: true } : target;
}

function targetOf(
  word: string,
  defaultModel: string,
  aliases: readonly ModelAlias[],
  known: string | undefined,
): Target {
  const named = word === AGENT || word.startsWith(`${AGENT}/`) || word.startsWith(`${AGENT}@`);
  if (!named) return { agent: AGENT, named, model: alias(word, aliases) };
  const at = word.indexOf("@");
  const path = at === -1 ? word : word.slice(0, at);
  const model = at === -1 ? defaultModel : alias(word.slice(at + 1), aliases);
  const agent = path.slice(AGENT.length + 1) || AGENT;
  if (model === "")
    throw new AppError("invalid_request", `model: put a model id behind the @ of '${word}'.`, {
      param: "model",
    });
  if (agent === RAW) return { agent: null, named, model };
  if (agent !== AGENT && agent !== known)
    throw new AppError(
      "not_found",
      `There is no agent '${agent}'. The agents are ${AGENT} and, for a bare model, ${AGENT}/${RAW}@<model id>.`,
      { param: "model", upstreamCode: "model_not_found" },
    );
  return { agent, named, model };
}

/** The named agent that a word for a model means: null for the bare model, undefined where the word names none. */
export function agentOf(word: string): string | null | undefined {
  if (!word.startsWith(`${AGENT}/`)) return undefined;
  const name = word.slice(AGENT.length + 1).split("@", 1)[0];
  if (name === AGENT || name === "") return undefined;
  return name === RAW ? null : name;
}

function alias(model: string, aliases: readonly ModelAlias[]): string {
  return aliases.find(({ glob }) => matchGlob(glob, model))?.model ?? model;
}
