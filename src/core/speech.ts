/** Speech: what is asked for, what comes back, and who speaks. */
import type { ProviderName } from "./message.ts";
import type { Credentials } from "./model.ts";

export const SPEECH_FORMATS = ["mp3", "wav", "opus", "aac", "flac", "pcm"] as const;
export type SpeechFormat = (typeof SPEECH_FORMATS)[number];

/** What each of them is served as. `pcm` is 24 kHz, mono, 16 bits, little-endian, as OpenAI has it. */
export const SPEECH_TYPES: Record<SpeechFormat, string> = {
  mp3: "audio/mpeg",
  wav: "audio/wav",
  opus: "audio/ogg",
  aac: "audio/aac",
  flac: "audio/flac",
  pcm: "audio/pcm",
};

/** Providers that speak. */
export type SpeechProvider = Exclude<ProviderName, "anthropic">;

/** Tokens, as the provider counts them. */
export interface SpeechUsage {
  input: number;
  output: number;
}

/** Of a voice that made what it was asked for, piece by piece; the end says what it took where the provider counts it. */
export type SpeechBytes = AsyncGenerator<Uint8Array, SpeechUsage | undefined, void>;

/** One piece of a text. */
export interface SpeechOrder {
  /** Within the speaker's {@link Speaker.limit}. */
  text: string;
  format: SpeechFormat;
  model: string;
  voice?: string | undefined;
  /** A voice of the caller's own, by its id at the provider. */
  voiceId?: string | undefined;
  /** 1 is as the voice speaks by itself. */
  speed?: number | undefined;
  /** How to speak, in words. */
  instructions?: string | undefined;
  /** Fields that are the provider's own, passed on as they came. */
  extra?: Record<string, unknown> | undefined;
  /** Usage is wanted at the end. */
  counted?: boolean | undefined;
}

export interface PieceLimit {
  most: number;
  /** UTF-16 units, or bytes of UTF-8. */
  unit: "chars" | "bytes";
}

export type SpeechOption = "speed" | "instructions" | "voiceId" | "counted";

export interface Speaker {
  readonly name: SpeechProvider | "embedded";
  /** The model where none is named. */
  readonly model: string;
  /** In which it can speak; the first where none is named. */
  readonly formats: readonly SpeechFormat[];
  readonly limit: PieceLimit;
  /** What it can honour beside text, format, model and voice. */
  readonly honours: readonly SpeechOption[];
  /**
   * The audio of one piece, whole in its format, as it is made. Throws AppError; `cancelled` once the signal says so. Leaving
   * the generator early ends what is under way upstream.
   */
  speak(order: SpeechOrder, signal: AbortSignal): SpeechBytes;
}

/** The speakers behind provider keys. */
export interface Speakers {
  /** Throws AppError `invalid_request` for a provider that does not speak. */
  of(credentials: Credentials): Promise<Speaker>;
}

export interface VoiceOrder {
  text: string;
  /** A language such as `en-us` or `de`, with or without a variant (`+f3`). */
  voice: string;
  wordsPerMinute: number;
}

/** 16-bit samples, little-endian, mono. */
export interface VoiceSamples {
  samples: Uint8Array;
  /** Per second. */
  rate: number;
}

/** A voice that needs neither key nor network. */
export interface LocalVoice {
  /**
   * Throws AppError: `invalid_request` with param `voice` for a voice that it has not, `not_implemented` where it is not
   * installed, `unavailable` when too many wait for it; and an Error when it fails.
   */
  speak(order: VoiceOrder, signal: AbortSignal): Promise<VoiceSamples>;
  close(): Promise<void>;
}
