/** Key, header and configuration -> the adapter that answers. Adapters, and the SDK clients in them, are kept per key. */
import type { ModelEvent } from "../core/event.ts";
import { PROVIDERS, type ProviderName } from "../core/message.ts";
import type { Credentials, ModelAdapter, ModelRegistry, ModelRequest, ProviderWish } from "../core/model.ts";
import { AppError } from "../errors.ts";
import { repairHistory } from "./repair-history.ts";
import type { AdapterOptions, Fetch, UpstreamLimits } from "./upstream.ts";

export interface ProviderSettings {
  /** The operator's own key, for callers that bring none. */
  apiKey?: string | undefined;
  baseUrl?: string | undefined;
}

export interface RegistryOptions {
  providers: Record<ProviderName, ProviderSettings>;
  limits: UpstreamLimits;
  /** `STRICT_KEY_PREFIX`: refuse keys that belong to none of the four. */
  strictKeys: boolean;
  fetch?: Fetch | undefined;
}

/** The contract's table; the longest prefix that matches wins, anything else is Gemini's. */
const PREFIXES: readonly (readonly [prefix: string, provider: ProviderName])[] = [
  ["sk-ant-", "anthropic"],
  ["gsk_", "groq"],
  ["sk-", "openai"],
];
/** Prefixes of vendors that are not behind any of the four, though one of the above may match them. */
const FOREIGN = ["sk-or-", "xai-", "nvapi-", "AKIA", "ASIA", "hf_", "r8_", "pplx-", "ghp_", "github_pat_"];
/** What Google gives out. */
const GEMINI_KEY = /^(AIza[\w-]{20,}|AQ\.[\w.-]{20,})$/;

const ALIASES: Record<string, ProviderName> = { claude: "anthropic", google: "gemini" };

/** Adapters kept at most, the least recently used goes first. */
const KEPT = 256;

export function detectProvider(key: string): ProviderName {
  return PREFIXES.find(([prefix]) => key.startsWith(prefix))?.[1] ?? "gemini";
}

function providerByName(name: string, param: string): ProviderName {
  const provider = PROVIDERS.find((known) => known === name.toLowerCase()) ?? ALIASES[name.toLowerCase()];
  if (!provider)
    throw new AppError(
      "invalid_request",
      `${param}: '${name}' is not a provider. Use openai, anthropic (claude), groq or gemini (google).`,
      { param },
    );
  return provider;
}

function choose(options: RegistryOptions, { key, provider, param, where }: ProviderWish): Credentials {
  const named = provider === undefined ? undefined : providerByName(provider, param);
  if (key !== undefined && key !== "") {
    if (options.strictKeys && !named) refuseForeign(key);
    return { provider: named ?? detectProvider(key), key };
  }
  const owned = named ? [named] : (["gemini", ...PROVIDERS] as const);
  for (const candidate of owned) {
    const { apiKey } = options.providers[candidate];
    if (apiKey) return { provider: candidate, key: apiKey };
  }
  throw new AppError(
    "missing_key",
    `No provider key. Put one into ${where}, or set ${settingNames(named)} on the server.`,
  );
}

function settingNames(named: ProviderName | undefined): string {
  if (named) return `${named.toUpperCase()}_API_KEY`;
  return "one of OPENAI_API_KEY, ANTHROPIC_API_KEY, GROQ_API_KEY and GEMINI_API_KEY";
}

function refuseForeign(key: string): void {
  const foreign = FOREIGN.find((prefix) => key.startsWith(prefix));
  const known = PREFIXES.some(([prefix]) => key.startsWith(prefix)) || GEMINI_KEY.test(key);
  if (known && !foreign) return;
  throw new AppError(
    "invalid_request",
    `This key${foreign ? ` (${foreign}…)` : ""} belongs to none of OpenAI, Anthropic, Groq and Gemini, so it is not sent anywhere. ` +
      "Name the provider it is meant for (x-provider header, or the provider field), or unset STRICT_KEY_PREFIX.",
  );
}

export function createModelRegistry(options: RegistryOptions): ModelRegistry {
  const kept = new Map<string, ModelAdapter>();
  return {
    choose: (wish) => choose(options, wish),
    async adapter({ provider, key }) {
      const id = `${provider}\0${key}`;
      let adapter = kept.get(id);
      if (adapter) {
        kept.delete(id);
      } else {
        const { providers, limits, fetch } = options;
        const { baseUrl } = providers[provider];
        adapter = repaired(await createAdapter(provider, { key, baseUrl, limits, fetch }));
        if (kept.size >= KEPT) kept.delete(kept.keys().next().value as string);
      }
      kept.set(id, adapter);
      return adapter;
    },
  };
}

/** An SDK is loaded when the first key for it comes: none of them is needed to be healthy. */
async function createAdapter(provider: ProviderName, options: AdapterOptions): Promise<ModelAdapter> {
  switch (provider) {
    case "openai":
      return (await import("./openai.ts")).createOpenAIAdapter(options);
    case "groq":
      return (await import("./groq.ts")).createGroqAdapter(options);
    case "anthropic":
      return (await import("./anthropic.ts")).createAnthropicAdapter(options);
    case "gemini":
      return (await import("./gemini.ts")).createGeminiAdapter(options);
  }
}

/** The adapter with every history repaired for it. */
function repaired(adapter: ModelAdapter): ModelAdapter {
  const { provider } = adapter;
  const repair = (request: ModelRequest) => ({
    ...request,
    messages: repairHistory(request.messages, provider),
  });
  return {
    provider,
    models: (signal) => adapter.models(signal),
    stream: (request, signal): AsyncGenerator<ModelEvent, void, void> =>
      adapter.stream(repair(request), signal),
    ...(adapter.countTokens
      ? {
          countTokens: (request: ModelRequest, signal: AbortSignal) =>
            adapter.countTokens!(repair(request), signal),
        }
      : {}),
  };
}
