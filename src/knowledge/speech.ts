/** A text, a speaker and how it is to sound -> audio: what is asked for is checked, split, spoken piece by piece and joined. */
import {
  SPEECH_TYPES,
  type Speaker,
  type SpeechBytes,
  type SpeechFormat,
  type SpeechOption,
  type SpeechOrder,
  type SpeechUsage,
} from "../core/speech.ts";
import { AppError } from "../errors.ts";
import { JOINABLE, joinAudio } from "./speech-join.ts";
import { lengthOf, speakable, splitText } from "./speech-text.ts";

/** Characters of one text. */
export const TEXT_LIMIT = 4096;
/** Texts that one owner, and all of them, may have spoken at once. */
const OF_ONE = 8;
const OF_ALL = 32;
/** Seconds after which one of them may have ended. */
const WAIT_S = 2;

export interface SpeechWish extends Omit<SpeechOrder, "format"> {
  format?: SpeechFormat | undefined;
  /** What text and format are called where the wish came from. */
  names: { text: string; format: string };
}

/** Audio that has begun: its first bytes are there. */
export interface SpeechAudio {
  contentType: string;
  /** The rest comes as it is made. Throws AppError when that fails. */
  bytes: SpeechBytes;
  /** Resolves when all has been read or given up. */
  ended: Promise<void>;
  /** Gives up what is left. Has to be called by who does not read to the end; may be called again. */
  close(): void;
}

export class SpeechDesk {
  readonly #limits: { ofOne: number; ofAll: number };
  readonly #underWay = new Map<string, number>();
  #all = 0;

  constructor(limits = { ofOne: OF_ONE, ofAll: OF_ALL }) {
    this.#limits = limits;
  }

  /** Texts that are being spoken. */
  get active(): number {
    return this.#all;
  }

  /**
   * Resolves once the first bytes are there. Throws AppError: `invalid_request` or `unsupported_field` for what the speaker
   * cannot do, `rate_limited` or `unavailable` where too many speak, and what the speaker throws.
   */
  async begin(owner: string, speaker: Speaker, wish: SpeechWish, signal: AbortSignal): Promise<SpeechAudio> {
    const { format, pieces } = planOf(speaker, wish);
    const leave = this.#enter(owner);
    const controller = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const close = (): void => {
      signal.removeEventListener("abort", close);
      controller.abort();
      leave();
      resolve();
    };
    signal.addEventListener("abort", close, { once: true });
    if (signal.aborted) close();
    const { names: _, ...order } = wish;
    const audio = joinAudio(format, pieces, (text) =>
      speaker.speak({ ...order, text, format }, controller.signal),
    );
    try {
      const first = await audio.next();
      if (first.done) throw noAudio();
      return { contentType: SPEECH_TYPES[format], bytes: passOn(first.value, audio, close), ended, close };
    } catch (error) {
      close();
      throw error;
    }
  }

  #enter(owner: string): () => void {
    const count = this.#underWay.get(owner) ?? 0;
    if (count >= this.#limits.ofOne)
      throw new AppError(
        "rate_limited",
        `You have ${count} texts spoken at once, which is the limit. Wait until one has ended.`,
        { retryAfter: WAIT_S },
      );
    if (this.#all >= this.#limits.ofAll)
      throw new AppError("unavailable", "Too many texts are being spoken. Send this one again in a moment.", {
        retryAfter: WAIT_S,
      });
    this.#underWay.set(owner, count + 1);
    this.#all += 1;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.#all -= 1;
      const left = (this.#underWay.get(owner) ?? 1) - 1;
      if (left === 0) this.#underWay.delete(owner);
      else this.#underWay.set(owner, left);
    };
  }
}

async function* passOn(first: Uint8Array, rest: SpeechBytes, close: () => void): SpeechBytes {
  let usage: SpeechUsage | undefined;
  try {
    yield first;
    usage = yield* rest;
  } finally {
    close();
  }
  return usage;
}

/** What not every speaker honours, the field that asks for it, and what to say where it does not. */
const OPTIONS: readonly [option: SpeechOption, name: string, cannot: string][] = [
  ["speed", "speed", "has a pace of its own"],
  ["instructions", "instructions", "takes no instructions"],
  ["voiceId", "voice", "has no voices of your own"],
  ["counted", "stream_format", "streams audio and no events"],
];

function planOf(speaker: Speaker, wish: SpeechWish): { format: SpeechFormat; pieces: string[] } {
  const { names } = wish;
  for (const [option, name, what] of OPTIONS)
    if (isAsked(wish, option) && !speaker.honours.includes(option))
      throw unsupported(name, `${name}: ${nameOf(speaker)} ${what}. Leave it out.`);
  const format = wish.format ?? (speaker.formats[0] as SpeechFormat);
  if (!speaker.formats.includes(format))
    throw unsupported(
      names.format,
      `${names.format}: ${nameOf(speaker)} speaks in ${speaker.formats.join(", ")}, not in ${format}.`,
    );
  const pieces = piecesOf(speaker, wish);
  if (pieces.length > 1 && !JOINABLE.includes(format))
    throw unsupported(
      names.format,
      `${names.format}: a text of this length is spoken in ${pieces.length} parts, and ${format} cannot be joined from parts. Ask for another format, or send shorter texts.`,
    );
  return { format, pieces };
}

function piecesOf(speaker: Speaker, { text, names }: SpeechWish): string[] {
  const length = lengthOf(text);
  if (length > TEXT_LIMIT)
    throw refusal(
      "invalid_request",
      names.text,
      `${names.text} has ${length} characters, and ${TEXT_LIMIT} is the limit. Send it in parts.`,
    );
  const pieces = splitText(speakable(text), speaker.limit).filter((piece) => piece.trim() !== "");
  if (pieces.length === 0)
    throw refusal("invalid_request", names.text, `${names.text} holds nothing that could be spoken.`);
  return pieces;
}

function isAsked(wish: SpeechWish, option: SpeechOption): boolean {
  const value = wish[option];
  // The pace that it has anyway.
  if (option === "speed") return value !== undefined && value !== 1;
  return value !== undefined && value !== "" && value !== false;
}

const NAMES = { openai: "OpenAI", groq: "Groq", gemini: "Gemini", embedded: "the embedded voice" };

function nameOf({ name }: Speaker): string {
  return NAMES[name];
}

function unsupported(param: string, message: string): AppError {
  return refusal("unsupported_field", param, message);
}

function refusal(code: "invalid_request" | "unsupported_field", param: string, message: string): AppError {
  return new AppError(code, message, { param, details: { errors: [{ path: param, message }] } });
}

function noAudio(): AppError {
  return new AppError("upstream_unreachable", "The provider answered with no audio. Try again.");
}
