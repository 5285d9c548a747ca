/** `POST /api/tts` and its twin for the OpenAI SDK, `POST /v1/audio/speech`: a text -> audio, sent as it is made. */
import { type Context, type Handler, Hono } from "hono";
import { resolveTarget } from "../agent/target.ts";
import type { Speaker } from "../core/speech.ts";
import { AppError } from "../errors.ts";
import type { SpeechAudio, SpeechWish } from "../knowledge/speech.ts";
import { parseWire } from "../protocols/problem.ts";
import type { Services } from "../services.ts";
import { audioBody } from "./audio-body.ts";
import { readJson } from "./body.ts";
import type { AppEnv } from "./env.ts";
import { headerValue } from "./header-value.ts";
import { speechFrames } from "./speech-events.ts";
import { audioSpeechRequest, ttsRequest } from "./speech-schema.ts";
import { STREAM_HEADERS, streamBody } from "./sse.ts";
import { readBody } from "./validate.ts";

const EMBEDDED = "embedded";
/** Providers with an operator's key are asked in this order. */
const SPEAKING = ["openai", "gemini", "groq"] as const;

export function speechRoutes(services: Services): Hono<AppEnv> {
  const { apiLimit: limit, timeoutMs } = services.config.body;
  return new Hono<AppEnv>().post("/", async (c) => {
    const { text, voice, format, speed, provider, model, api_key } = await readBody(c, ttsRequest, {
      limit,
      timeoutMs,
    });
    const speaker = await speakerOf(services, {
      key: api_key ?? c.get("providerKey"),
      provider,
      param: "provider",
      where: "the field api_key",
      orEmbedded: true,
    });
    const names = { text: "text", format: "format" };
    const wish = { text, voice, format, speed, model: modelOf(services, speaker, model), names };
    return audioAnswer(services, wish, await begin(c, services, speaker, wish));
  });
}

export function audioSpeech(services: Services): Handler<AppEnv> {
  const { v1Limit: limit, timeoutMs } = services.config.body;
  return async (c) => {
    const body = parseWire(audioSpeechRequest, await readJson(c.req.raw, { limit, timeoutMs }));
    const { input: text, model, voice, response_format: format, stream_format, ...rest } = body;
    const { speed, instructions, ...extra } = rest;
    const speaker = await speakerOf(services, {
      key: c.get("providerKey"),
      provider: c.req.header("x-provider"),
      param: "x-provider",
      where: "the Authorization header (Bearer <key>)",
      orEmbedded: false,
    });
    const wish: SpeechWish = {
      ...{ text, format, speed, instructions, extra },
      ...(typeof voice === "object" ? { voiceId: voice.id } : { voice }),
      model: modelOf(services, speaker, model),
      counted: stream_format === "sse",
      names: { text: "input", format: "response_format" },
    };
    const audio = await begin(c, services, speaker, wish);
    return wish.counted
      ? eventAnswer(services, wish, audio, c.get("requestId"))
      : audioAnswer(services, wish, audio);
  };
}

interface SpeakerWish {
  key: string | undefined;
  provider: string | undefined;
  /** The field or header that named the provider. */
  param: string;
  /** Where a key belongs. */
  where: string;
  /** Where nobody is named and no key can speak, the embedded voice does. */
  orEmbedded: boolean;
}

async function speakerOf(services: Services, wish: SpeakerWish): Promise<Speaker> {
  const { models, config, speech } = services;
  const { key, provider, param, where } = wish;
  if (provider?.toLowerCase() === EMBEDDED) return embedded(services, param);
  const operators = SPEAKING.find((name) => config.providers[name].apiKey !== undefined);
  const nobody = provider === undefined && key === undefined && operators === undefined;
  if (nobody && wish.orEmbedded && speech.embedded) return speech.embedded;
  const named = provider ?? (key === undefined ? operators : undefined);
  const credentials = models.choose({ key, provider: named, param, where });
  const mute = credentials.provider === "anthropic" && provider === undefined;
  if (mute && wish.orEmbedded && speech.embedded) return speech.embedded;
  return speech.speakers.of(credentials);
}

function embedded({ speech }: Services, param: string): Speaker {
  if (speech.embedded) return speech.embedded;
  throw new AppError(
    "not_implemented",
    "The embedded voice is a program, and there are none on Workers. Name openai, groq or gemini, and send a key.",
    { param },
  );
}

/** Throws AppError for a model that the embedded voice is not. */
function modelOf({ config }: Services, speaker: Speaker, model = "dragoman"): string {
  const target = resolveTarget(model, speaker.model, config.models.aliases).model;
  if (speaker.name !== EMBEDDED || target === speaker.model) return target;
  throw new AppError(
    "unsupported_field",
    `model: here the embedded voice speaks, whose one model is ${speaker.model}. Leave model out, or send the key of a provider that has '${target.slice(0, 100)}'.`,
    { param: "model" },
  );
}

async function begin(c: Context<AppEnv>, services: Services, speaker: Speaker, wish: SpeechWish) {
  const { speech, platform } = services;
  const audio = await speech.desk.begin(c.get("owner"), speaker, wish, c.req.raw.signal);
  // On Workers nothing would be left to tell the provider that the client has gone.
  platform.background(audio.ended);
  return audio;
}

function audioAnswer({ platform }: Services, { model }: SpeechWish, audio: SpeechAudio): Response {
  return new Response(audioBody(audio, { log: platform.log }), {
    headers: {
      "content-type": audio.contentType,
      "x-upstream-model": headerValue(model),
      "x-content-type-options": "nosniff",
    },
  });
}

function eventAnswer(
  { platform }: Services,
  { model }: SpeechWish,
  audio: SpeechAudio,
  requestId: string,
): Response {
  const body = streamBody(speechFrames(audio.bytes, requestId), {
    log: platform.log,
    onClose: () => audio.close(),
  });
  return new Response(body, { headers: { ...STREAM_HEADERS, "x-upstream-model": headerValue(model) } });
}
