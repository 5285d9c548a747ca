/**
 * What an Anthropic model accepts, read from its id: which kind of thinking, which efforts, whether it writes to a schema.
 *
 * The API lists capabilities in `GET /v1/models`, but asking there would cost a round trip before the first call and is
 * unknown to stand-ins behind the same base URL, so the generations are told apart by name and version.
 */
import type { MessageCreateParamsStreaming, OutputConfig } from "@anthropic-ai/sdk/resources/messages";
import type { AssistantMessage } from "../core/message.ts";
import type { ModelRequest } from "../core/model.ts";

type Effort = NonNullable<OutputConfig["effort"]>;
type Thinking = NonNullable<MessageCreateParamsStreaming["thinking"]>;

export interface ModelTraits {
  /** How thinking is asked for: not at all, with a number of tokens, or left to the model. */
  thinking: "none" | "budget" | "adaptive";
  /** Thinks unless told not to. */
  thinksByDefault: boolean;
  /** Refuses to be told not to. */
  alwaysThinks: boolean;
  /** Thinking text is withheld unless asked for. */
  omitsThinking: boolean;
  /** The highest word that `output_config.effort` takes; null where the field is refused. */
  effort: "high" | "max" | "any" | null;
  /** `output_config.format` and `strict` tools. */
  structured: boolean;
  /** A `system` message among the others. */
  systemMessages: boolean;
  /** `max_tokens` where the request names none. */
  maxTokens: number;
}

/** Output tokens where the request names no limit: no more than the smallest limit of the generation. */
const MAX_TOKENS = { claude3: 4096, claude35: 8192, current: 32_000, unknown: 8192 };

/** `claude-opus-4-8`, `claude-3-5-sonnet-20241022`, `us.anthropic.claude-sonnet-4-6-v1:0`, `anthropic/claude-opus-4.8`. */
const VERSIONED = /claude-(?:([a-z]+)-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;

export function traitsOf(model: string): ModelTraits {
  const match = VERSIONED.exec(model);
  const line = match?.[1] ?? (model.includes("mythos") ? "mythos" : "");
  const version = match ? Number(match[2]) * 100 + Number(match[3] ?? 0) : line === "mythos" ? 407 : 0;
  const opus = line === "opus";
  const unbridled = line === "fable" || line === "mythos";
  return {
    thinking: version >= 406 ? "adaptive" : version >= 307 ? "budget" : "none",
    thinksByDefault: version >= 500 || unbridled,
    alwaysThinks: unbridled || (opus && version >= 505) || version >= 600,
    omitsThinking: version >= 407,
    effort: version >= 407 ? "any" : version === 406 ? "max" : opus && version === 405 ? "high" : null,
    structured: version >= 405,
    systemMessages: version >= 500 || (opus && version >= 408),
    maxTokens:
      version === 0
        ? MAX_TOKENS.unknown
        : version < 305
          ? MAX_TOKENS.claude3
          : version < 307
            ? MAX_TOKENS.claude35
            : MAX_TOKENS.current,
  };
}

/** Thinking tokens for an effort, on models that want a number. */
const BUDGETS: Record<string, number> = {
  minimal: 1024,
  low: 4096,
  medium: 10_240,
  high: 20_480,
  xhigh: 24_000,
  max: 24_000,
};
/** The API's own least budget, in tokens. */
const LEAST_BUDGET = 1024;
/** How much of `max_tokens` a budget derived from an effort may take: the rest is for the answer. */
const LARGEST_SHARE = 0.75;

export interface ThinkingPlan {
  thinking?: Thinking | undefined;
  effort?: Effort | undefined;
  maxTokens: number;
}

/**
 * The request's reasoning settings as the model wants them.
 *
 * A request of the messages door (`native`) says exactly what it wants, and gets it. From elsewhere comes an effort, which
 * is a hint: it gives way to what was asked exactly and does not go with thinking (a forced tool, a temperature), to a
 * tool turn that another model began without thinking, and to an output limit too small to share.
 */
export function planThinking(request: ModelRequest, traits: ModelTraits, native: boolean): ThinkingPlan {
  const { reasoning, settings } = request;
  const maxTokens = settings.maxTokens ?? traits.maxTokens;
  if (native) return planAsAsked(reasoning ?? {}, settings.maxTokens, maxTokens);
  const off = reasoning?.effort === "none" || (reasoning?.budget !== undefined && reasoning.budget <= 0);
  const wanted = !off && (reasoning?.effort ?? reasoning?.budget ?? reasoning?.adaptive) !== undefined;
  const forced = request.toolChoice?.type === "required" || request.toolChoice?.type === "tool";
  if (off || forced) {
    if (traits.alwaysThinks)
      return { effort: off ? "low" : effortFor(reasoning?.effort, traits.effort), maxTokens };
    return {
      thinking: traits.thinksByDefault ? { type: "disabled" } : undefined,
      // Without thinking the two highest efforts are refused.
      effort: off ? undefined : effortFor(reasoning?.effort, traits.effort && "high"),
      maxTokens,
    };
  }
  if (!wanted) return { maxTokens };
  const effort = effortFor(reasoning?.effort, traits.effort);
  const display = reasoning?.display ?? (traits.omitsThinking ? "summarized" : undefined);
  if (traits.thinking === "none") return { maxTokens };
  if (traits.thinking === "adaptive") {
    if (!traits.thinksByDefault && samples(request)) return { effort, maxTokens };
    return { thinking: { type: "adaptive", ...(display ? { display } : {}) }, effort, maxTokens };
  }
  const asked = reasoning?.budget ?? BUDGETS[reasoning?.effort ?? "medium"] ?? BUDGETS.medium!;
  const budget = Math.min(asked, Math.floor(maxTokens * LARGEST_SHARE));
  if (budget < LEAST_BUDGET || samples(request) || inUnthinkingTurn(request)) return { effort, maxTokens };
  return { thinking: { type: "enabled", budget_tokens: budget }, effort, maxTokens };
}

function planAsAsked(
  reasoning: NonNullable<ModelRequest["reasoning"]>,
  limit: number | undefined,
  fallback: number,
): ThinkingPlan {
  const shown = reasoning.display ? { display: reasoning.display } : {};
  const effort = reasoning.effort as Effort | undefined;
  if (reasoning.adaptive) return { thinking: { type: "adaptive", ...shown }, effort, maxTokens: fallback };
  const budget = reasoning.budget;
  if (budget === undefined) return { effort, maxTokens: fallback };
  if (budget <= 0) return { thinking: { type: "disabled" }, effort, maxTokens: fallback };
  return {
    thinking: { type: "enabled", budget_tokens: budget, ...shown },
    effort,
    maxTokens: limit ?? Math.max(fallback, budget + LEAST_BUDGET),
  };
}

function effortFor(word: string | undefined, highest: ModelTraits["effort"]): Effort | undefined {
  if (word === undefined || highest === null || word === "none") return undefined;
  if (word === "minimal") return "low";
  if (highest === "any") return word as Effort;
  if (word === "xhigh" || word === "max") return word === highest ? word : "high";
  return word as Effort;
}

/** Sampling that is not the default: refused beside thinking. */
function samples({ settings }: ModelRequest): boolean {
  return (
    (settings.temperature ?? 1) !== 1 ||
    (settings.topP !== undefined && settings.topP < 0.95) ||
    !!settings.topK
  );
}

/** The turn under way has calls without sealed reasoning before them: with a budget the API refuses to go on from there. */
function inUnthinkingTurn({ messages }: ModelRequest): boolean {
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i]!;
    if (message.role === "user") return false;
    if (message.role !== "assistant") continue;
    const first = message.content[0];
    if (first?.type !== "reasoning" || first.seal === undefined || !isOwn(message)) return true;
  }
  return false;
}

/** Made by this provider, or replayed by a client of the messages door, which does not say by whom. */
export function isOwn(message: AssistantMessage): boolean {
  return message.origin === undefined || message.origin.provider === "anthropic";
}
