/**
 * What has to be known of a Gemini model before it is asked: generations differ in how thinking is set, in what a tool
 * result may hold, and in whether calls must be signed.
 */
import type { ThinkingConfig, ThinkingLevel } from "@google/genai/web";
import type { ReasoningSettings } from "../core/model.ts";

/** `models/gemini-3-pro` and `gemini-3-pro` are the same model. */
export function modelId(model: string): string {
  return model.startsWith("models/") ? model.slice("models/".length) : model;
}

/** 2.5 for `gemini-2.5-flash`; the newest for an alias that moves (`gemini-flash-latest`); undefined for other names. */
export function generationOf(model: string): number | undefined {
  const id = modelId(model);
  const version = /^gemini-(\d+(?:\.\d+)?)(?:-|$)/.exec(id)?.[1];
  if (version !== undefined) return Number(version);
  return /^gemini-.*-latest$/.test(id) ? Number.POSITIVE_INFINITY : undefined;
}

/** Calls are checked for thought signatures, and results may hold images, from here on. */
export function isThirdGeneration(model: string): boolean {
  return (generationOf(model) ?? 0) >= 3;
}

/** Thinking tokens for an effort, on models that count tokens. The figures are those of Google's own translation of efforts. */
const BUDGETS: Record<string, number> = {
  none: 0,
  minimal: 1_024,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
  xhigh: 32_768,
  max: 32_768,
};
/** The model decides how long it thinks. */
const DYNAMIC = -1;
/** The ranges that the 2.5 models accept, in tokens. */
const PRO_RANGE = [128, 32_768] as const;
const FLASH_MOST = 24_576;
const FLASH_LITE_LEAST = 512;

const LEVELS: Record<string, string> = {
  none: "MINIMAL",
  minimal: "MINIMAL",
  low: "LOW",
  medium: "MEDIUM",
  high: "HIGH",
  xhigh: "HIGH",
  max: "HIGH",
};
/** Thinking tokens up to which a budget means the level, on models that know levels only. */
const LEVEL_BUDGETS: readonly [number, string][] = [
  [0, "none"],
  [4_096, "low"],
  [12_288, "medium"],
  [Number.POSITIVE_INFINITY, "high"],
];

/** The thinking settings of a request; undefined where nothing was asked for or the model does not think. */
export function toThinkingConfig(
  model: string,
  reasoning: ReasoningSettings | undefined,
): ThinkingConfig | undefined {
  if (!reasoning) return undefined;
  const generation = generationOf(model);
  if (generation !== undefined && generation < 2.5) return undefined;
  const off = reasoning.effort === "none" || reasoning.budget === 0;
  const config: ThinkingConfig = generation === 2.5 ? budgetOf(model, reasoning) : levelOf(model, reasoning);
  // A model of another name may not think at all, and refuses what only thinking ones understand.
  if (generation === undefined && config.thinkingLevel === undefined) return undefined;
  if (!off && reasoning.display !== "omitted") config.includeThoughts = true;
  return config;
}

function budgetOf(model: string, reasoning: ReasoningSettings): ThinkingConfig {
  const budget = reasoning.budget ?? BUDGETS[reasoning.effort ?? ""];
  if (budget === undefined || budget === DYNAMIC) return { thinkingBudget: DYNAMIC };
  const id = modelId(model);
  if (id.includes("-pro")) return { thinkingBudget: Math.min(Math.max(budget, PRO_RANGE[0]), PRO_RANGE[1]) };
  const least = budget > 0 && id.includes("-lite") ? FLASH_LITE_LEAST : 0;
  return { thinkingBudget: Math.min(Math.max(budget, least), FLASH_MOST) };
}

function levelOf(model: string, reasoning: ReasoningSettings): ThinkingConfig {
  const effort = reasoning.effort ?? effortOf(reasoning.budget);
  if (effort === undefined) return {};
  return { thinkingLevel: nearest(modelId(model), LEVELS[effort] ?? effort.toUpperCase()) as ThinkingLevel };
}

function effortOf(budget: number | undefined): string | undefined {
  if (budget === undefined || budget === DYNAMIC) return undefined;
  return LEVEL_BUDGETS.find(([most]) => budget <= most)?.[1];
}

/** Pro models cannot stop thinking, and the first of them knew two levels only. */
function nearest(id: string, level: string): string {
  if (!id.includes("-pro")) return level;
  if (level === "MINIMAL") return "LOW";
  return level === "MEDIUM" && /^gemini-3-pro/.test(id) ? "HIGH" : level;
}
