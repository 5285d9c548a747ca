/** Speech of Groq. */
import Groq from "groq-sdk";
import type { Speaker } from "../core/speech.ts";
import { fetchWithPlainErrors, SDK_TIMEOUT_MS } from "./chat-completions.ts";
import { groqBaseUrl } from "./groq.ts";
import { createSdkPost } from "./sdk-post.ts";
import type { SpeakerOptions } from "./speech.ts";
import { streamSpeech } from "./speech-upstream.ts";

const DEFAULT_VOICE = "troy";
/** What its Orpheus models take at once. */
const LIMIT = { most: 200, unit: "chars" } as const;
const HEADERS = { accept: "audio/wav" };

export function createGroqSpeaker({ key, model, limits, ...options }: SpeakerOptions): Speaker {
  const plainErrors = fetchWithPlainErrors(options.fetch ?? fetch);
  const client = new Groq({
    ...{ apiKey: key, baseURL: groqBaseUrl(options.baseUrl), maxRetries: 0 },
    ...{ timeout: SDK_TIMEOUT_MS, logLevel: "off" },
    fetch: plainErrors,
  });
  const post = createSdkPost({
    client,
    errors: Groq.APIError,
    path: "/openai/v1/audio/speech",
    fetch: plainErrors,
  });
  return {
    name: "groq",
    model,
    // Not every model has all of them; Groq says which.
    formats: ["wav", "mp3", "flac"],
    limit: LIMIT,
    honours: ["speed"],
    speak: ({ text, format, voice = DEFAULT_VOICE, speed, extra, ...order }, signal) => {
      const body = {
        ...extra,
        ...{ model: order.model, input: text, voice, response_format: format, speed },
      };
      const open = (attempt: AbortSignal) => post(body, attempt, { headers: HEADERS });
      return streamSpeech({ provider: "groq", key, open }, limits, signal);
    },
  };
}
