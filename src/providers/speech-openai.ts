/** Speech of OpenAI, and of every server that imitates it behind a configured base URL. */
import OpenAI from "openai";
import type { Speaker, SpeechOrder, SpeechUsage } from "../core/speech.ts";
import { AppError } from "../errors.ts";
import { fetchWithPlainErrors, SDK_TIMEOUT_MS } from "./chat-completions.ts";
import { createSdkPost } from "./sdk-post.ts";
import type { SpeakerOptions } from "./speech.ts";
import { fromBase64, type SpeechDecoder, streamSpeech } from "./speech-upstream.ts";
import type { SseEvent } from "./sse.ts";
import { parseEvent } from "./upstream-error.ts";

const BASE_URL = "https://api.openai.com/v1";
const DEFAULT_VOICE = "alloy";
/** The API takes 4,096 characters, but its newer models 2,000 tokens: of scripts with long tokens that is less. */
const LIMIT = { most: 4096, unit: "bytes" } as const;
const HEADERS = { accept: "application/octet-stream" };

export function createOpenAISpeaker({ key, model, limits, ...options }: SpeakerOptions): Speaker {
  const plainErrors = fetchWithPlainErrors(options.fetch ?? fetch);
  // Nothing may come from the environment: keys and addresses are the caller's and the configuration's.
  const client = new OpenAI({
    ...{ apiKey: key, adminAPIKey: null, organization: null, project: null, webhookSecret: null },
    ...{ baseURL: options.baseUrl ?? BASE_URL, maxRetries: 0, timeout: SDK_TIMEOUT_MS, logLevel: "off" },
    fetch: plainErrors,
  });
  const post = createSdkPost({
    client,
    errors: OpenAI.APIError,
    path: "/audio/speech",
    fetch: plainErrors,
  });
  return {
    name: "openai",
    model,
    formats: ["mp3", "wav", "opus", "aac", "flac", "pcm"],
    limit: LIMIT,
    honours: ["speed", "instructions", "voiceId", "counted"],
    speak: (order, signal) =>
      streamSpeech(
        {
          provider: "openai",
          key,
          open: (attempt) => post(toBody(order), attempt, { headers: HEADERS }),
          ...(order.counted ? { events: () => new SpeechEvents() } : {}),
        },
        limits,
        signal,
      ),
  };
}

function toBody({ text, format, voice, voiceId, counted, extra, ...order }: SpeechOrder) {
  const { model, speed, instructions } = order;
  return {
    ...extra,
    ...{ model, input: text, response_format: format, speed, instructions },
    voice: voiceId === undefined ? (voice ?? DEFAULT_VOICE) : { id: voiceId },
    ...(counted ? { stream_format: "sse" } : {}),
  };
}

interface Event {
  type?: string;
  audio?: string;
  usage?: { input_tokens?: number; output_tokens?: number };
  error?: { message?: string; type?: string; code?: string };
}

/** `speech.audio.delta` and `speech.audio.done`. */
class SpeechEvents implements SpeechDecoder {
  #done = false;
  #usage: SpeechUsage | undefined;

  push({ data }: SseEvent, out: Uint8Array[]): void {
    if (data === "[DONE]") return;
    const event = parseEvent<Event>(data, "openai");
    if (event.error)
      throw new AppError("upstream_error", event.error.message ?? "OpenAI failed and did not say why.", {
        upstreamType: event.error.type,
        upstreamCode: event.error.code,
      });
    if (event.type === "speech.audio.delta") out.push(fromBase64(event.audio ?? "", "openai"));
    if (event.type !== "speech.audio.done") return;
    this.#done = true;
    const { input_tokens, output_tokens } = event.usage ?? {};
    if (input_tokens !== undefined && output_tokens !== undefined)
      this.#usage = { input: input_tokens, output: output_tokens };
  }

  end(): SpeechUsage | undefined {
    if (this.#done) return this.#usage;
    throw new AppError("upstream_unreachable", "OpenAI ended its reply before its audio was complete.");
  }
}
