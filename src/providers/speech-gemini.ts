/** Speech of Gemini's TTS models: raw samples in the events of a stream, wrapped as WAVE or passed on as they are. */
import { type Candidate, GoogleGenAI, Modality } from "@google/genai/web";
import type { Speaker, SpeechOrder, SpeechUsage } from "../core/speech.ts";
import { monoFormat, wavHeader } from "../core/wav.ts";
import { AppError } from "../errors.ts";
import { BASE_URL, splitBaseUrl } from "./gemini.ts";
import { replyError, statusError, statusOf } from "./gemini-error.ts";
import { modelId } from "./gemini-model.ts";
import type { SpeakerOptions } from "./speech.ts";
import { fromBase64, noAudio, type SpeechDecoder, streamSpeech } from "./speech-upstream.ts";
import type { SseEvent } from "./sse.ts";
import { parseEvent } from "./upstream-error.ts";

const DEFAULT_VOICE = "Kore";
/** Well below the tokens that the models take, and the minutes that they speak at once. */
const LIMIT = { most: 4000, unit: "bytes" } as const;
/** Samples per second, unless the media type says otherwise. */
const RATE = 24_000;

export function createGeminiSpeaker({ key, model, limits, ...options }: SpeakerOptions): Speaker {
  const send = options.fetch ?? fetch;
  const client = new GoogleGenAI({
    apiKey: key,
    vertexai: false,
    httpOptions: splitBaseUrl(options.baseUrl ?? BASE_URL),
  });
  const open = async (order: SpeechOrder, signal: AbortSignal): Promise<Response> => {
    let answer: Response | undefined;
    await client.models.generateContentStream({
      model: modelId(order.model),
      contents: [{ role: "user", parts: [{ text: promptOf(order) }] }],
      config: {
        responseModalities: [Modality.AUDIO],
        speechConfig: {
          voiceConfig: { prebuiltVoiceConfig: { voiceName: order.voice ?? DEFAULT_VOICE } },
        },
        automaticFunctionCalling: { disable: true },
        httpOptions: {
          fetch: async (input, init) => {
            const response = await send(input, { ...init, signal });
            if (!response.ok) throw await replyError(response, key);
            answer = response;
            // The SDK gets an empty reply, and nobody reads the iterator that it makes of it.
            return new Response();
          },
        },
      },
    });
    if (!answer) throw new Error("The Gemini SDK has sent nothing.");
    return answer;
  };
  return {
    name: "gemini",
    model,
    formats: ["wav", "pcm"],
    limit: LIMIT,
    honours: ["instructions", "counted"],
    speak: (order, signal) =>
      streamSpeech(
        {
          provider: "gemini",
          key,
          open: (attempt) => open(order, attempt),
          events: () => new GeminiSpeech(order.format === "wav"),
        },
        limits,
        signal,
      ),
  };
}

/** The models take directions in front of the text; without any they may answer it instead of speaking it. */
function promptOf({ text, instructions }: SpeechOrder): string {
  return `${instructions ?? "Say"}: ${text}`;
}

interface Chunk {
  candidates?: Candidate[];
  promptFeedback?: { blockReason?: string };
  usageMetadata?: { promptTokenCount?: number; candidatesTokenCount?: number };
}

class GeminiSpeech implements SpeechDecoder {
  readonly #wrapped: boolean;
  #begun = false;
  #finish: string | undefined;
  #usage: SpeechUsage | undefined;

  constructor(wrapped: boolean) {
    this.#wrapped = wrapped;
  }

  push({ data }: SseEvent, out: Uint8Array[]): void {
    const chunk = parseEvent<Chunk>(data, "gemini");
    const status = statusOf(chunk);
    if (status) throw statusError(status);
    const [candidate] = chunk.candidates ?? [];
    for (const { inlineData } of candidate?.content?.parts ?? []) {
      if (!inlineData?.data) continue;
      if (!this.#begun) this.#begin(inlineData.mimeType ?? "", out);
      out.push(fromBase64(inlineData.data, "gemini"));
    }
    this.#finish = candidate?.finishReason ?? chunk.promptFeedback?.blockReason ?? this.#finish;
    const { promptTokenCount: input, candidatesTokenCount: output } = chunk.usageMetadata ?? {};
    if (input !== undefined && output !== undefined) this.#usage = { input, output };
  }

  #begin(type: string, out: Uint8Array[]): void {
    if (!/^audio\/(l16|pcm)\b/i.test(type))
      throw new AppError(
        "upstream_unreachable",
        `Gemini sent '${type.slice(0, 60)}' instead of samples. Take one of its TTS models.`,
      );
    this.#begun = true;
    const rate = Number(/rate=(\d+)/i.exec(type)?.[1] ?? RATE);
    if (this.#wrapped) out.push(wavHeader(monoFormat(rate)));
    else if (rate !== RATE)
      throw new AppError("upstream_unreachable", `Gemini speaks at ${rate} Hz here: ask for wav instead.`);
  }

  end(): SpeechUsage | undefined {
    if (!this.#begun) throw noAudio("gemini", this.#finish);
    if (this.#finish === undefined)
      throw new AppError("upstream_unreachable", "Gemini ended its reply before its audio was complete.");
    if (this.#finish !== "STOP")
      throw new AppError("upstream_error", `Gemini stopped speaking before the end (${this.#finish}).`);
    return this.#usage;
  }
}
