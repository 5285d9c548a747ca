/** The voice that is part of the service, as a speaker like those behind keys. */
import type { LocalVoice, Speaker } from "../core/speech.ts";
import { monoFormat, wavHeader } from "../core/wav.ts";
import { AppError } from "../errors.ts";

export const EMBEDDED_MODEL = "espeak-ng";
const DEFAULT_VOICE = "en-us";
/** Words a minute: as the voice speaks by itself, and what it can do. */
const PACE = 175;
const SLOWEST = 80;
const FASTEST = 450;
/** Short pieces are heard soon, and a client that goes leaves little behind. */
const LIMIT = { most: 300, unit: "chars" } as const;

export function createEmbeddedSpeaker(voice: LocalVoice): Speaker {
  return {
    name: "embedded",
    model: EMBEDDED_MODEL,
    formats: ["wav"],
    limit: LIMIT,
    honours: ["speed"],
    async *speak(order, signal) {
      const { samples, rate } = await voice.speak(
        { text: order.text, voice: order.voice ?? DEFAULT_VOICE, wordsPerMinute: paceOf(order.speed ?? 1) },
        signal,
      );
      yield wavHeader(monoFormat(rate), samples.length);
      yield samples;
      return undefined;
    },
  };
}

function paceOf(speed: number): number {
  const pace = Math.round(PACE * speed);
  if (pace >= SLOWEST && pace <= FASTEST) return pace;
  const least = Math.ceil((SLOWEST / PACE) * 100) / 100;
  const most = Math.floor((FASTEST / PACE) * 100) / 100;
  const message = `speed: the embedded voice speaks at ${least} to ${most} times its pace, not at ${speed}.`;
  throw new AppError("invalid_request", message, { param: "speed" });
}
