/** Key and configuration -> the speaker behind it. Speakers, and the SDK clients in them, are kept per key. */
import type { Speaker, Speakers, SpeechProvider } from "../core/speech.ts";
import { AppError } from "../errors.ts";
import type { AdapterOptions, Fetch, UpstreamLimits } from "./upstream.ts";

export interface SpeakerOptions extends AdapterOptions {
  /** Where none is asked for. */
  model: string;
}

export interface SpeakersOptions {
  providers: Record<SpeechProvider, { baseUrl?: string | undefined }>;
  /** The default models. */
  models: Record<SpeechProvider, string>;
  limits: UpstreamLimits;
  fetch?: Fetch | undefined;
}

/** Speakers kept at most, the least recently used goes first. */
const KEPT = 64;

export function createSpeakers({ providers, models, limits, fetch }: SpeakersOptions): Speakers {
  const kept = new Map<string, Speaker>();
  return {
    async of({ provider, key }) {
      if (provider === "anthropic")
        throw new AppError(
          "invalid_request",
          "Anthropic has no speech. Send a key of OpenAI, Groq or Gemini, or name the provider 'embedded', which needs none.",
          { param: "provider" },
        );
      const id = `${provider}\0${key}`;
      const { baseUrl } = providers[provider];
      const options = { key, limits, fetch, baseUrl, model: models[provider] };
      const speaker = kept.get(id) ?? (await createSpeaker(provider, options));
      kept.delete(id);
      if (kept.size >= KEPT) kept.delete(kept.keys().next().value as string);
      kept.set(id, speaker);
      return speaker;
    },
  };
}

/** An SDK is loaded when it is first needed. */
async function createSpeaker(provider: SpeechProvider, options: SpeakerOptions): Promise<Speaker> {
  switch (provider) {
    case "openai":
      return (await import("./speech-openai.ts")).createOpenAISpeaker(options);
    case "groq":
      return (await import("./speech-groq.ts")).createGroqSpeaker(options);
    case "gemini":
      return (await import("./speech-gemini.ts")).createGeminiSpeaker(options);
  }
}
