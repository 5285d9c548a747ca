/** Embeddings of OpenAI, and of every server that imitates it behind a configured base URL. */
import OpenAI from "openai";
import { fetchWithPlainErrors } from "./chat-completions.ts";
import type { Ask, EmbedderOptions } from "./embeddings.ts";

const BASE_URL = "https://api.openai.com/v1";

export function askOpenAI({ model, key, baseUrl, retries, fetch: send = fetch }: EmbedderOptions): Ask {
  // Nothing may come from the environment: keys and addresses are the configuration's.
  const client = new OpenAI({
    ...{ apiKey: key, adminAPIKey: null, organization: null, project: null, webhookSecret: null },
    ...{ baseURL: baseUrl ?? BASE_URL, maxRetries: retries, logLevel: "off" },
    fetch: fetchWithPlainErrors(send),
  });
  return async (input, _, signal) => {
    // Base64, the SDK's own default, is more than servers that imitate this one understand.
    const { data } = await client.embeddings.create({ model, input, encoding_format: "float" }, { signal });
    if (!Array.isArray(data)) return [];
    return data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding);
  };
}
