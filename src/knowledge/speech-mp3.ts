/**
 * The frames of an MP3, without what describes the whole file: an ID3 tag, and the frame that says how many frames there
 * are. Frames of several files then follow one another as one.
 */
import { joined } from "./speech-wav.ts";

const NOTHING = new Uint8Array(0);
const ID3_HEAD = 10;
const FRAME_HEAD = 4;
/** The longest frame there is. Bytes. */
const LONGEST_FRAME = 2_881;
/** kbit/s by index, of layer III: MPEG 1, and MPEG 2 with 2.5. */
const BIT_RATES = [
  [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];
const SAMPLE_RATES = [44_100, 48_000, 32_000];

export class Mp3Body {
  #head: Uint8Array = NOTHING;
  /** Bytes of a tag that are still to come. */
  #skip = 0;
  #passing = false;

  push(bytes: Uint8Array): Uint8Array {
    if (this.#passing) return bytes;
    const skipped = Math.min(this.#skip, bytes.length);
    this.#skip -= skipped;
    this.#head = joined(this.#head, bytes.subarray(skipped));
    return this.#skip > 0 ? NOTHING : this.#begin();
  }

  /** What was held back because it might have been such a frame. */
  end(): Uint8Array {
    const rest = this.#head;
    this.#head = NOTHING;
    return rest;
  }

  #begin(): Uint8Array {
    if (this.#head.length < ID3_HEAD) return NOTHING;
    if (startsWith(this.#head, 0, "ID3")) {
      const [flags = 0, ...size] = this.#head.subarray(5, ID3_HEAD);
      const footer = (flags & 0x10) === 0 ? 0 : ID3_HEAD;
      const length = ID3_HEAD + footer + size.reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0);
      const bytes = this.#head;
      this.#head = NOTHING;
      this.#skip = length;
      return this.push(bytes);
    }
    const frame = frameOf(this.#head);
    if (frame && this.#head.length < frame.length) return NOTHING;
    this.#passing = true;
    const bytes = this.end();
    const counts = frame && (startsWith(bytes, frame.tag, "Xing") || startsWith(bytes, frame.tag, "Info"));
    return counts ? bytes.subarray(frame.length) : bytes;
  }
}

/** The length of the frame that begins here, and where in it a tag would stand; null for what is no frame of layer III. */
function frameOf(bytes: Uint8Array): { length: number; tag: number } | null {
  const [sync = 0, kind = 0, rates = 0, channels = 0] = bytes.subarray(0, FRAME_HEAD);
  if (sync !== 0xff || (kind & 0xe6) !== 0xe2) return null;
  const version = (kind >> 3) & 3;
  const first = version === 3;
  const bitRate = BIT_RATES[first ? 0 : 1]?.[rates >> 4] ?? 0;
  const sampleRate = (SAMPLE_RATES[(rates >> 2) & 3] ?? 0) / (first ? 1 : version === 2 ? 2 : 4);
  if (bitRate === 0 || sampleRate === 0 || version === 1) return null;
  const length = Math.floor(((first ? 144 : 72) * bitRate * 1000) / sampleRate) + ((rates >> 1) & 1);
  const mono = channels >> 6 === 3;
  const side = first ? (mono ? 17 : 32) : mono ? 9 : 17;
  return length <= LONGEST_FRAME ? { length, tag: FRAME_HEAD + side } : null;
}

function startsWith(bytes: Uint8Array, at: number, word: string): boolean {
  for (let i = 0; i < word.length; i++) if (bytes[at + i] !== word.charCodeAt(i)) return false;
  return true;
}
