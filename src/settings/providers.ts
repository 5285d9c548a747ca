/** Settings of the providers and their models. */
import * as z from "zod";
import type { ProviderConfig } from "../config.ts";
import { PROVIDERS, type ProviderName } from "../core/message.ts";
import type { Values } from "../settings.ts";
import { duration, flag, httpUrl, key, list, number, pair, type Setting, setting, text } from "./kinds.ts";

/** Names and default models. The models are the current general ones of each vendor. */
const VENDORS: Record<ProviderName, { name: string; model: string }> = {
  anthropic: { name: "Anthropic", model: "claude-sonnet-5-5" },
  groq: { name: "Groq", model: "openai/gpt-oss-120b" },
  openai: { name: "OpenAI", model: "gpt-5.5" },
  gemini: { name: "Gemini", model: "gemini-3.8-flash" },
};

type Upper = Uppercase<ProviderName>;
type ProviderSettings = { [K in `${Upper}_API_KEY` | `${Upper}_BASE_URL`]: Setting<string | undefined> } & {
  [K in `${Upper}_MODEL`]: Setting<string>;
};

function providerSettings(): ProviderSettings {
  const out: Record<string, Setting<string | undefined>> = {};
  for (const provider of PROVIDERS) {
    const { name, model } = VENDORS[provider];
    const prefix = provider.toUpperCase();
    out[`${prefix}_API_KEY`] = key(`The operator's ${name} key, used for requests that bring none.`);
    out[`${prefix}_BASE_URL`] = {
      default: `${name}'s own`,
      description: `Where ${name} requests go: any server that speaks its protocol.`,
      allowed: "an http or https URL",
      parse: z
        .string()
        .refine(httpUrl)
        .transform((url) => url.replace(/\/+$/, "")),
      fallback: undefined,
    };
    out[`${prefix}_MODEL`] = {
      default: model,
      description: `The model behind \`dragoman\` when ${name} answers.`,
      allowed: "a model id",
      parse: text,
      fallback: model,
    };
  }
  return out as ProviderSettings;
}

export const PROVIDER = {
  ...providerSettings(),
};

export const MODELS = {
  STRICT_KEY_PREFIX: flag(
    "`1` refuses keys whose prefix belongs to no provider instead of sending them to Gemini.",
  ),
  MODEL_ALIASES: setting<{ glob: string; model: string }[]>({
    default: "none",
    description: "Model ids to replace, first match wins: `claude-*=gpt-5.5,small=gemini-3.8-flash`.",
    allowed: "glob=model entries with commas between them",
    parse: list((item) => {
      const entry = pair(item);
      return entry && { glob: entry[0], model: entry[1] };
    }),
    fallback: [],
  }),
  CONTEXT_WINDOWS: setting<{ glob: string; tokens: number }[]>({
    default: "built-in table",
    description: "Context windows of models that the built-in table has not or has wrong: `llama*=8192`.",
    allowed: "glob=tokens entries with commas between them, tokens a whole number from 256",
    parse: list((item) => {
      const entry = pair(item);
      return entry && /^\d{3,9}$/.test(entry[1]) && Number(entry[1]) >= 256
        ? { glob: entry[0], tokens: Number(entry[1]) }
        : null;
    }),
    fallback: [],
  }),
};

function speechModel(vendor: string, model: string): Setting<string> {
  return {
    default: model,
    description: `The model that speaks when ${vendor} is asked to and none is named.`,
    allowed: "a model id",
    parse: text,
    fallback: model,
  };
}

export const SPEECH = {
  OPENAI_TTS_MODEL: speechModel("OpenAI", "gpt-4o-mini-tts"),
  GROQ_TTS_MODEL: speechModel("Groq", "canopylabs/orpheus-v1-english"),
  GEMINI_TTS_MODEL: speechModel("Gemini", "gemini-3.8-flash-tts"),
};

export const UPSTREAM = {
  UPSTREAM_FIRST_BYTE_TIMEOUT: duration(60, "How long a provider may take until its first byte."),
  UPSTREAM_IDLE_TIMEOUT: duration(120, "How long a provider may be silent between two bytes."),
  UPSTREAM_RETRIES: number(
    2,
    0,
    10,
    "How often a failed call to a provider is repeated, before its first byte.",
  ),
};

export function providersOf(values: Values): Record<ProviderName, ProviderConfig> {
  const out: Partial<Record<ProviderName, ProviderConfig>> = {};
  for (const provider of PROVIDERS) {
    const prefix = provider.toUpperCase() as Uppercase<ProviderName>;
    out[provider] = {
      apiKey: values[`${prefix}_API_KEY`],
      baseUrl: values[`${prefix}_BASE_URL`],
      model: values[`${prefix}_MODEL`],
    };
  }
  return out as Record<ProviderName, ProviderConfig>;
}
