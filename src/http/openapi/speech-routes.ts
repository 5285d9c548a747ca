/** `/api/tts` and `/v1/audio/speech`. */
import * as z from "zod";
import { SPEECH_TYPES } from "../../core/speech.ts";
import { audioSpeechRequest, ttsRequest } from "../speech-schema.ts";
import type { Operation } from "./operation.ts";

const speechEvent = z
  .union([
    z.object({ type: z.literal("speech.audio.delta"), audio: z.string().describe("Base64.") }),
    z.object({
      type: z.literal("speech.audio.done"),
      usage: z
        .object({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() })
        .optional()
        .describe("Where the provider counts."),
    }),
  ])
  .meta({ id: "SpeechEvent" });

export const SPEECH_ROUTES = [
  {
    id: "speak",
    method: "post",
    path: "/api/tts",
    tag: "Speech",
    summary: "Read a text aloud",
    description:
      "The audio is sent as it is made. With a key, OpenAI, Groq or Gemini speaks; without any, the embedded voice. A fault after the first byte breaks the connection off.",
    family: "api",
    body: {
      schema: ttsRequest,
      examples: {
        "Without a key": { text: "Good morning.", provider: "embedded", voice: "en-gb" },
        "With OpenAI": { text: "Good morning.", voice: "alloy", format: "mp3", api_key: "sk-…" },
      },
    },
    replies: {
      200: {
        description: "The audio.",
        bytes: [SPEECH_TYPES.mp3, SPEECH_TYPES.wav, SPEECH_TYPES.opus],
        headers: ["x-upstream-model"],
      },
    },
    faults: [501, 502, 504],
  },
  {
    id: "audioSpeech",
    method: "post",
    path: "/v1/audio/speech",
    tag: "Speech",
    summary: "Read a text aloud, for the OpenAI SDK",
    description:
      "Also answers below `/openai/v1` and `/v1/v1`. What a provider cannot honour is a 400 that names it.",
    family: "chat",
    headers: z.object({
      "x-provider": z
        .enum(["openai", "groq", "gemini", "google", "embedded"])
        .optional()
        .describe("Wins over the prefix of the key; `embedded` needs none."),
    }),
    body: {
      schema: audioSpeechRequest,
      examples: {
        Speech: { model: "gpt-4o-mini-tts", voice: "alloy", input: "Good morning." },
      },
    },
    replies: {
      200: {
        description: "The audio, or with `stream_format: sse` events.",
        headers: ["x-upstream-model"],
        bytes: Object.values(SPEECH_TYPES),
        events: {
          schema: speechEvent,
          framing: "plain",
          examples: {
            Speech: [
              { type: "speech.audio.delta", audio: "//PExAA" },
              {
                type: "speech.audio.done",
                usage: { input_tokens: 4, output_tokens: 21, total_tokens: 25 },
              },
            ],
          },
        },
      },
    },
    faults: [501],
  },
] as const satisfies readonly Operation[];
