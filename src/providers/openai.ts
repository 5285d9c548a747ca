/** OpenAI, and every server that imitates its chat completions behind a configured base URL. */
import OpenAI from "openai";
import type { ModelAdapter } from "../core/model.ts";
import { fetchWithPlainErrors, listChat, SDK_TIMEOUT_MS, streamChat } from "./chat-completions.ts";
import type { ChatDialect } from "./chat-completions-messages.ts";
import { createSdkPost } from "./sdk-post.ts";
import type { AdapterOptions } from "./upstream.ts";

const BASE_URL = "https://api.openai.com/v1";
/** OpenAI's own hosts, its regions, and Azure's, where the same models stand. */
const OFFICIAL_HOST = /(^|\.)api\.openai\.com$|\.openai\.azure\.com$/;

export function createOpenAIAdapter(options: AdapterOptions): ModelAdapter {
  const baseURL = options.baseUrl ?? BASE_URL;
  const plainErrors = fetchWithPlainErrors(options.fetch ?? fetch);
  // Nothing may come from the environment: keys and addresses are the caller's and the configuration's.
  const client = new OpenAI({
    apiKey: options.key,
    adminAPIKey: null,
    baseURL,
    organization: null,
    project: null,
    webhookSecret: null,
    maxRetries: 0,
    timeout: SDK_TIMEOUT_MS,
    logLevel: "off",
    fetch: plainErrors,
  });
  const post = createSdkPost({
    client,
    errors: OpenAI.APIError,
    path: "/chat/completions",
    fetch: plainErrors,
  });
  const dialect = openAIDialect(baseURL);
  return {
    provider: "openai",
    stream: (request, signal) => streamChat(request, signal, dialect, options, post),
    models: (signal) => listChat("openai", options.key, signal, () => client.models.list({ signal })),
  };
}

/**
 * OpenAI's reasoning models refuse `max_tokens`, and many of the servers that imitate it know nothing else. `system`
 * is understood everywhere, `developer` by OpenAI alone.
 */
export function openAIDialect(baseUrl: string): ChatDialect {
  const official = URL.canParse(baseUrl) && OFFICIAL_HOST.test(new URL(baseUrl).hostname);
  return {
    provider: "openai",
    name: official ? "OpenAI" : "The server behind OPENAI_BASE_URL",
    official,
    developer: official,
    customTools: true,
    files: true,
    reasoningField: official ? null : "reasoning_content",
    maxTokensField: official ? "max_completion_tokens" : "max_tokens",
    topK: !official,
  };
}
