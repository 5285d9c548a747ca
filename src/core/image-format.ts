/**
 * What an image file is, by its bytes: format, size, and whether it is whole (E3). Nothing is decoded, so that nothing
 * can be made to grow; the structure of the container is followed from its beginning to its end.
 */
import type { ImageType } from "./notes.ts";

export interface ImageFacts {
  type: ImageType;
  /** Pixels, as the header says. */
  width: number;
  height: number;
}

/** `problem` says what is wrong, without a subject. `broken`: an image that is not whole, or not that alone. */
export type ImageReading = ImageFacts | { problem: "none" } | { problem: "broken"; why: string };

/** The format that the first bytes (12 are enough) show; null when it is none of the four. */
export function imageType(bytes: Uint8Array): ImageType | null {
  if (startsWith(bytes, 0, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (startsWith(bytes, 0, "\xff\xd8\xff")) return "image/jpeg";
  if (startsWith(bytes, 0, "GIF87a") || startsWith(bytes, 0, "GIF89a")) return "image/gif";
  if (startsWith(bytes, 0, "RIFF") && startsWith(bytes, 8, "WEBP")) return "image/webp";
  return null;
}

export function readImage(bytes: Uint8Array): ImageReading {
  const type = imageType(bytes);
  if (type === null) return { problem: "none" };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const { width, height, end } = READERS[type](bytes, view);
    if (width === 0 || height === 0) return broken("its header gives it no size");
    if (end > bytes.length) return broken("it ends before it is complete");
    if (end < bytes.length) return broken(`${bytes.length - end} bytes follow behind its end`);
    return { type, width, height };
  } catch (error) {
    if (error instanceof RangeError) return broken("it ends before it is complete");
    if (error instanceof Malformed) return broken(error.message);
    throw error;
  }
}

class Malformed extends Error {}

function broken(why: string): ImageReading {
  return { problem: "broken", why };
}

/** Size of the largest picture in it, whatever shows that one, and where its last byte ends; reading behind the bytes throws RangeError. */
type Read = (bytes: Uint8Array, view: DataView) => { width: number; height: number; end: number };

const READERS: Record<ImageType, Read> = {
  "image/png": readPng,
  "image/jpeg": readPhotos,
  "image/gif": readGif,
  "image/webp": readWebp,
};

/** PNG: chunks of length, name, data and checksum, one IHDR first, IEND last. fcTL has the size of an animation's frame. */
function readPng(bytes: Uint8Array, view: DataView) {
  if (!startsWith(bytes, 12, "IHDR") || view.getUint32(8) !== 13)
    throw new Malformed("its header is not where it has to be");
  let width = view.getUint32(16);
  let height = view.getUint32(20);
  let data = false;
  for (let at = 8; ; ) {
    const end = at + 12 + view.getUint32(at);
    const name = view.getUint32(at + 4);
    if (end > bytes.length) throw new RangeError();
    if (name === 0x49484452 /* IHDR */ && at > 8) throw new Malformed("it has a second header");
    if (name === 0x6663544c /* fcTL */) {
      width = Math.max(width, view.getUint32(at + 12) + view.getUint32(at + 20));
      height = Math.max(height, view.getUint32(at + 16) + view.getUint32(at + 24));
    }
    if (name === 0x49444154 /* IDAT */) data = true;
    if (name === 0x49454e44 /* IEND */) {
      if (!data) throw new Malformed("it has no picture in it");
      return { width, height, end };
    }
    at = end;
  }
}

/** JPEG files of cameras have zeros behind the picture, and more pictures (MPO). */
function readPhotos(bytes: Uint8Array, view: DataView) {
  let { width, height, end } = readJpeg(bytes, view, 0);
  for (let at = end; at < bytes.length; ) {
    if (bytes[at] === 0) at += 1;
    else if (startsWith(bytes, at, "\xff\xd8\xff")) {
      const next = readJpeg(bytes, view, at);
      width = Math.max(width, next.width);
      height = Math.max(height, next.height);
      end = next.end;
      at = end;
    } else return { width, height, end };
  }
  return { width, height, end: bytes.length };
}

/** JPEG: segments behind markers, the size in the one that starts a frame or in DNL, coded data behind SOS up to the next marker. */
function readJpeg(bytes: Uint8Array, view: DataView, start: number) {
  let width = 0;
  let height = 0;
  let scanned = false;
  for (let at = start + 2; ; ) {
    if (view.getUint8(at) !== 0xff) throw new Malformed("its segments do not follow one another");
    while (view.getUint8(at + 1) === 0xff) at += 1;
    const marker = view.getUint8(at + 1);
    at += 2;
    if (marker === 0xd9 /* EOI */) {
      if (!scanned) throw new Malformed("it has no picture in it");
      return { width, height, end: at };
    }
    if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) continue;
    if (marker === 0x00 || marker === 0xd8) throw new Malformed("its segments do not follow one another");
    const length = view.getUint16(at);
    if (length < 2) throw new Malformed("one of its segments has no length");
    if (isFrame(marker)) {
      height = Math.max(height, view.getUint16(at + 3));
      width = Math.max(width, view.getUint16(at + 5));
    }
    if (marker === 0xdc /* DNL */) height = Math.max(height, view.getUint16(at + 2));
    at += length;
    if (marker !== 0xda /* SOS */) continue;
    scanned = true;
    at = endOfScan(bytes, at);
  }
}

function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

/** In coded data an 0xff is followed by 0, or by a restart marker. */
function endOfScan(bytes: Uint8Array, from: number): number {
  for (let at = from; ; at += 1) {
    at = bytes.indexOf(0xff, at);
    if (at === -1 || at + 1 >= bytes.length) throw new RangeError();
    const next = bytes[at + 1] as number;
    if (next !== 0x00 && next !== 0xff && !(next >= 0xd0 && next <= 0xd7)) return at;
  }
}

/** GIF: a screen, perhaps a table of colours, then images and extensions in blocks of up to 255 bytes, and `;`. */
function readGif(_bytes: Uint8Array, view: DataView) {
  let width = view.getUint16(6, true);
  let height = view.getUint16(8, true);
  let images = 0;
  for (let at = 13 + colours(view.getUint8(10)); ; ) {
    const kind = view.getUint8(at);
    if (kind === 0x3b) {
      if (images === 0) throw new Malformed("it has no picture in it");
      return { width, height, end: at + 1 };
    }
    if (kind === 0x21) at = endOfBlocks(view, at + 2);
    else if (kind === 0x2c) {
      images += 1;
      width = Math.max(width, view.getUint16(at + 1, true) + view.getUint16(at + 5, true));
      height = Math.max(height, view.getUint16(at + 3, true) + view.getUint16(at + 7, true));
      at = endOfBlocks(view, at + 11 + colours(view.getUint8(at + 9)));
    } else throw new Malformed("its blocks do not follow one another");
  }
}

/** Bytes of a table of colours. */
function colours(flags: number): number {
  return flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0;
}

function endOfBlocks(view: DataView, from: number): number {
  for (let at = from; ; ) {
    const size = view.getUint8(at);
    at += size + 1;
    if (size === 0) return at;
  }
}

/** WebP: chunks in a RIFF, whose length is in its head. */
function readWebp(bytes: Uint8Array, view: DataView) {
  const end = 8 + view.getUint32(4, true);
  let width = 0;
  let height = 0;
  let picture = false;
  for (let at = 12; at < Math.min(end, bytes.length); ) {
    const name = String.fromCharCode(...bytes.subarray(at, at + 4));
    const length = view.getUint32(at + 4, true);
    const data = at + 8;
    if (name === "VP8X") {
      width = Math.max(width, 1 + threeBytes(view, data + 4));
      height = Math.max(height, 1 + threeBytes(view, data + 7));
    } else if (name === "ANMF") {
      width = Math.max(width, 2 * threeBytes(view, data) + 1 + threeBytes(view, data + 6));
      height = Math.max(height, 2 * threeBytes(view, data + 3) + 1 + threeBytes(view, data + 9));
    } else if (name === "VP8 ") {
      if (threeBytes(view, data + 3) !== 0x2a019d) throw new Malformed("its picture has no beginning");
      width = Math.max(width, view.getUint16(data + 6, true) & 0x3fff);
      height = Math.max(height, view.getUint16(data + 8, true) & 0x3fff);
    } else if (name === "VP8L") {
      if (view.getUint8(data) !== 0x2f) throw new Malformed("its picture has no beginning");
      const sizes = view.getUint32(data + 1, true);
      width = Math.max(width, 1 + (sizes & 0x3fff));
      height = Math.max(height, 1 + ((sizes >>> 14) & 0x3fff));
    }
    picture ||= name === "VP8 " || name === "VP8L" || name === "ANMF";
    at = data + length + (length % 2);
    if (at > end) throw new Malformed("one of its chunks is longer than itself");
  }
  if (end <= bytes.length && !picture) throw new Malformed("it has no picture in it");
  return { width, height, end };
}

function threeBytes(view: DataView, at: number): number {
  return view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
}

function startsWith(bytes: Uint8Array, offset: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[offset + i] !== text.charCodeAt(i)) return false;
  return true;
}
