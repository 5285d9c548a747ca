/** Groq: chat completions without files, custom tools and `top_k`, with reasoning in `reasoning`. */
import Groq from "groq-sdk";
import type { ModelAdapter } from "../core/model.ts";
import { fetchWithPlainErrors, listChat, SDK_TIMEOUT_MS, streamChat } from "./chat-completions.ts";
import type { ChatDialect } from "./chat-completions-messages.ts";
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
  const client = new Groq({
    apiKey: options.key,
    baseURL: (options.baseUrl ?? BASE_URL).replace(SDK_PATH, ""),
    maxRetries: 0,
    timeout: SDK_TIMEOUT_MS,
    logLevel: "off",
    fetch: fetchWithPlainErrors(options.fetch ?? fetch),
  });
  return {
    provider: "groq",
    stream: (request, signal) =>
      streamChat(request, signal, GROQ_DIALECT, options, (body, send) =>
        client.chat.completions.create(body as never, send).asResponse(),
      ),
    models: (signal) => listChat("groq", options.key, signal, () => client.models.list({ signal })),
  };
}
