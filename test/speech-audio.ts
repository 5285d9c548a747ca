/** Audio for tests: made here, and read back as a player would. */

export const RATE = 24_000;

/** 16-bit samples of a tone, so that a piece of one is known from a piece of another. */
export function tone(hertz: number, seconds: number, rate = RATE): Uint8Array {
  const samples = new Int16Array(Math.round(seconds * rate));
  for (let i = 0; i < samples.length; i++)
    samples[i] = Math.round(12_000 * Math.sin((2 * Math.PI * hertz * i) / rate));
  return new Uint8Array(samples.buffer);
}

export interface Wav {
  rate: number;
  channels: number;
  bits: number;
  /** What the header says of the length of the sound. Bytes. */
  announced: number;
  data: Uint8Array;
  seconds: number;
  /** Root mean square of all samples, 1 is the loudest there is. */
  loudness: number;
}

/** Throws for what no player would take. */
export function readWav(bytes: Uint8Array): Wav {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const word = (at: number) => String.fromCharCode(...bytes.subarray(at, at + 4));
  if (word(0) !== "RIFF" || word(8) !== "WAVE" || word(12) !== "fmt ")
    throw new Error("This is no WAVE file.");
  const format = view.getUint32(16, true);
  const head = 20 + format;
  if (view.getUint16(20, true) !== 1 || word(head) !== "data") throw new Error("This is no plain PCM.");
  const rate = view.getUint32(24, true);
  const data = bytes.slice(head + 8);
  const samples = new Int16Array(data.buffer, 0, data.length >> 1);
  const sum = samples.reduce((all, sample) => all + (sample / 32_768) ** 2, 0);
  return {
    rate,
    channels: view.getUint16(22, true),
    bits: view.getUint16(34, true),
    announced: view.getUint32(head + 4, true),
    data,
    seconds: samples.length / rate,
    loudness: Math.sqrt(sum / Math.max(1, samples.length)),
  };
}

/** In pieces of these lengths, over and over. */
export function cut(bytes: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const out: Uint8Array[] = [];
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const length = lengths[n % lengths.length] ?? bytes.length;
    out.push(bytes.subarray(at, at + length));
    at += length;
  }
  return out;
}

export function glue(pieces: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(pieces));
}
