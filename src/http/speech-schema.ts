/** What may be asked of `POST /api/tts` and of `POST /v1/audio/speech`. */
import * as z from "zod";
import { SPEECH_FORMATS } from "../core/speech.ts";

const speed = z.number().min(0.25).max(4).optional().describe("1 is the voice's own pace.");

export const ttsRequest = z
  .object({
    text: z
      .string()
      .min(1)
      .meta({ maxLength: 4096 })
      .describe("What to say: 1 to 4,096 characters. Long texts are spoken sentence by sentence."),
    voice: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe(
        "A voice of the provider's (`alloy`, `troy`, `Kore`); of the embedded voice a language, `en-us`, `de`, `fr-fr`, with or without a variant: `en-gb+f3`. An unknown one is answered with those there are.",
      ),
    format: z
      .enum(["mp3", "wav", "opus"])
      .optional()
      .describe(
        "OpenAI has all, Groq `wav` and `mp3`, Gemini and the embedded voice `wav`. The first of them by default, of OpenAI `mp3`.",
      ),
    speed,
    provider: z
      .string()
      .max(40)
      .optional()
      .describe(
        "`openai`, `groq`, `gemini` (`google`), or `embedded`, which needs no key. Wins over the prefix of the key. Where it is left out and no key can speak, the embedded voice does.",
      ),
    model: z.string().min(1).max(200).optional().describe("A model of the provider's that speaks."),
    api_key: z.string().min(1).max(500).optional().describe("Without it the operator's is used."),
  })
  .meta({ id: "SpeechRequest" });

export const audioSpeechRequest = z
  .looseObject({
    input: z.string().min(1).meta({ maxLength: 4096 }),
    model: z.string().min(1).describe("A model that speaks, or `dragoman` for the provider's default one."),
    voice: z
      .union([z.string().min(1).max(200), z.object({ id: z.string().min(1).max(200) })])
      .optional()
      .describe("A voice by its name, or one of your own at OpenAI by its id."),
    response_format: z
      .enum(SPEECH_FORMATS)
      .optional()
      .describe("By default `mp3` where the provider has it, else `wav`."),
    speed,
    instructions: z.string().max(4096).optional().describe("How to speak. With OpenAI and Gemini."),
    stream_format: z
      .enum(["audio", "sse"])
      .optional()
      .describe("`sse`: events with pieces of the audio, and the usage at the end. With OpenAI and Gemini."),
  })
  .meta({ id: "AudioSpeechRequest" });
