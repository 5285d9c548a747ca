/** RIFF WAVE, read: the sound in a file that arrives in pieces. core/wav.ts writes it. */
import { AppError } from "../errors.ts";

/** Lengths from here on, and 0, mean that the writer did not know: no reply is that long. Bytes. */
const TOO_LONG = 0x7fff0000;
/** What stands before the data, at most. Bytes. */
const HEAD_LIMIT = 64 * 1024;

/** The sound in a WAVE file that arrives in pieces, without what stands before and after it. */
export class WavBody {
  /** The `fmt ` chunk, once it has come. */
  format: Uint8Array | undefined;
  #head: Uint8Array = new Uint8Array(0);
  /** Bytes of sound that are still to come; null while the head is read. */
  #left: number | null = null;

  push(bytes: Uint8Array): Uint8Array {
    if (this.#left !== null) return this.#take(bytes);
    this.#head = joined(this.#head, bytes);
    const start = this.#readHead();
    if (start === null) return new Uint8Array(0);
    const sound = this.#head.subarray(start);
    this.#head = new Uint8Array(0);
    return this.#take(sound);
  }

  /** Throws AppError for a stream that had no sound. */
  end(): Uint8Array {
    if (this.#left === null) throw notWav();
    return new Uint8Array(0);
  }

  #take(bytes: Uint8Array): Uint8Array {
    const sound = bytes.subarray(0, this.#left ?? 0);
    this.#left = (this.#left ?? 0) - sound.length;
    return sound;
  }

  /** Where the sound begins; null when that has not come yet. */
  #readHead(): number | null {
    const head = this.#head;
    const view = new DataView(head.buffer, head.byteOffset, head.length);
    if (head.length >= 12 && (wordAt(head, 0) !== "RIFF" || wordAt(head, 8) !== "WAVE")) throw notWav();
    let at = 12;
    while (at + 8 <= head.length) {
      const length = view.getUint32(at + 4, true);
      if (wordAt(head, at) === "data") {
        if (!this.format) throw notWav();
        this.#left = length === 0 || length >= TOO_LONG ? Number.POSITIVE_INFINITY : length;
        return at + 8;
      }
      if (wordAt(head, at) === "fmt " && at + 8 + length <= head.length)
        this.format = head.slice(at + 8, at + 8 + length);
      at += 8 + length + (length % 2);
    }
    if (Math.max(at, head.length) > HEAD_LIMIT) throw notWav();
    return null;
  }
}

function wordAt(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}

export function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a.length === 0) return b;
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

function notWav(): AppError {
  return new AppError(
    "upstream_unreachable",
    "The provider sent something else than the WAV that it was asked for. Check the base URL configured for it.",
  );
}
