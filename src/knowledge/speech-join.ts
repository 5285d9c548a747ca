/** The audio of several pieces of a text -> one file of that format, passed on as it comes. */
import type { SpeechBytes, SpeechFormat, SpeechUsage } from "../core/speech.ts";
import { wavHeader } from "../core/wav.ts";
import { AppError } from "../errors.ts";
import { Mp3Body } from "./speech-mp3.ts";
import { joined, WavBody } from "./speech-wav.ts";

/**
 * Formats whose files can follow one another: MP3 and ADTS frames and samples do by their nature, Ogg by chaining, WAVE under
 * one header. FLAC says at its start how it goes on.
 */
export const JOINABLE: readonly SpeechFormat[] = ["mp3", "wav", "opus", "aac", "pcm"];

/** `speak` makes the audio of a piece; the next one is asked for once that before it has ended. */
export async function* joinAudio(
  format: SpeechFormat,
  pieces: readonly string[],
  speak: (piece: string) => SpeechBytes,
): SpeechBytes {
  // As the speaker made it, with a true header where it has one.
  if (pieces.length === 1) return yield* speak(pieces[0] as string);
  const usage: (SpeechUsage | undefined)[] = [];
  const wav = new WavJoin();
  for (const piece of pieces) {
    if (format === "mp3") usage.push(yield* filtered(speak(piece), new Mp3Body()));
    else if (format === "wav") usage.push(yield* filtered(speak(piece), wav.part()));
    else usage.push(yield* speak(piece));
  }
  return sum(usage);
}

/** One header, in front of the sound of the first part. */
class WavJoin {
  #format: Uint8Array | undefined;

  part(): Filter {
    const body = new WavBody();
    return {
      push: (bytes) => {
        const sound = body.push(bytes);
        if (!body.format) return sound;
        if (this.#format) {
          if (!same(body.format, this.#format)) throw changed();
          return sound;
        }
        this.#format = body.format;
        return joined(wavHeader(body.format), sound);
      },
      end: () => body.end(),
    };
  }
}

/** What takes something out of a stream of bytes. */
interface Filter {
  push(bytes: Uint8Array): Uint8Array;
  end(): Uint8Array;
}

async function* filtered(audio: SpeechBytes, filter: Filter): SpeechBytes {
  try {
    for (;;) {
      const { done, value } = await audio.next();
      const bytes = done ? filter.end() : filter.push(value);
      if (bytes.length > 0) yield bytes;
      if (done) return value;
    }
  } finally {
    await audio.return(undefined);
  }
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function sum(usage: (SpeechUsage | undefined)[]): SpeechUsage | undefined {
  const known = usage.filter((each) => each !== undefined);
  if (known.length < usage.length) return undefined;
  return known.reduce((all, each) => ({ input: all.input + each.input, output: all.output + each.output }));
}

function changed(): AppError {
  return new AppError(
    "upstream_unreachable",
    "The provider changed the form of its WAV between two parts of the text. Send shorter texts, or ask for mp3.",
  );
}
