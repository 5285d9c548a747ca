/** RIFF WAVE, written: the header, also of a stream whose length nobody knows yet. */

/** What writers of streams put where a length belongs. */
const UNKNOWN = 0xffffffff;
/** RIFF and WAVE, the head of the format, and the head of the data. Bytes. */
const HEADS = 28;

/** The `fmt ` chunk of 16-bit mono. */
export function monoFormat(rate: number): Uint8Array {
  const format = new Uint8Array(16);
  const view = new DataView(format.buffer);
  view.setUint16(0, 1, true);
  view.setUint16(2, 1, true);
  view.setUint32(4, rate, true);
  view.setUint32(8, rate * 2, true);
  view.setUint16(12, 2, true);
  view.setUint16(14, 16, true);
  return format;
}

/** `length`: bytes of sound; absent where it is not known yet. */
export function wavHeader(format: Uint8Array, length?: number): Uint8Array {
  const header = new Uint8Array(HEADS + format.length);
  const view = new DataView(header.buffer);
  writeWord(header, 0, "RIFF");
  view.setUint32(4, length === undefined ? UNKNOWN : header.length - 8 + length, true);
  writeWord(header, 8, "WAVEfmt ");
  view.setUint32(16, format.length, true);
  header.set(format, 20);
  writeWord(header, 20 + format.length, "data");
  view.setUint32(24 + format.length, length ?? UNKNOWN, true);
  return header;
}

function writeWord(bytes: Uint8Array, at: number, word: string): void {
  for (let i = 0; i < word.length; i++) bytes[at + i] = word.charCodeAt(i);
}
