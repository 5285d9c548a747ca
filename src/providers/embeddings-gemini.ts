/** Embeddings of Gemini. */
import { GoogleGenAI } from "@google/genai/web";
import type { Ask, EmbedderOptions } from "./embeddings.ts";
import { BASE_URL, splitBaseUrl } from "./gemini.ts";
import { replyError } from "./gemini-error.ts";

export function askGemini({ model, key, baseUrl, fetch: send = fetch }: EmbedderOptions): Ask {
  const client = new GoogleGenAI({
    apiKey: key,
    vertexai: false,
    httpOptions: splitBaseUrl(baseUrl ?? BASE_URL),
  });
  return async (contents, purpose, signal) => {
    const taskType = purpose === "query" ? "RETRIEVAL_QUERY" : "RETRIEVAL_DOCUMENT";
    const { embeddings = [] } = await client.models.embedContent({
      model,
      contents,
      config: {
        taskType,
        httpOptions: {
          fetch: async (input, init) => {
            const response = await send(input, { ...init, signal });
            if (!response.ok) throw await replyError(response, key);
            return response;
          },
        },
      },
    });
    return embeddings.map(({ values }) => values);
  };
}
