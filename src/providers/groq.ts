/** Groq: chat completions without files, custom tools and `top_k`, with reasoning in `reasoning`. */
import Groq from "groq-sdk";
import type { ModelAdapter } from "../core/model.ts";
import { fetchWithPlainErrors, listChat, SDK_TIMEOUT_MS, streamChat } from "./chat-completions.ts";
import type { ChatDialect } from "./chat-completions-messages.ts";
import { createSdkPost } from "./sdk-post.ts";
import type { AdapterOptions } from "./upstream.ts";

const BASE_URL = "https://api.groq.com";
/** The SDK appends this itself, while Groq's documents name base URLs that hold it already. */
const SDK_PATH = /\/openai\/v1\/?$/;

export const GROQ_DIALECT: ChatDialect = {
  provider: "groq",
  name: "Groq",
  official: true,
  developer: false,
  customTools: false,
  files: false,
  reasoningField: "reasoning",
  maxTokensField: "max_completion_tokens",
  topK: false,
};

export function createGroqAdapter(options: AdapterOptions): ModelAdapter {
  const plainErrors = fetchWithPlainErrors(options.fetch ?? fetch);
  const client = new Groq({
    apiKey: options.key,
    baseURL: groqBaseUrl(options.baseUrl),
    maxRetries: 0,
    timeout: SDK_TIMEOUT_MS,
    logLevel: "off",
    fetch: plainErrors,
  });
  const post = createSdkPost({
    client,
    errors: Groq.APIError,
    path: "/openai/v1/chat/completions",
    fetch: plainErrors,
  });
  return {
    provider: "groq",
    stream: (request, signal) => streamChat(request, signal, GROQ_DIALECT, options, post),
    models: (signal) => listChat("groq", options.key, signal, () => client.models.list({ signal })),
  };
}

/** As the SDK wants it. */
export function groqBaseUrl(configured: string | undefined): string {
  return (configured ?? BASE_URL).replace(SDK_PATH, "");
}
