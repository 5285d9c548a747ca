/** Is an inline image what it says it is? Looks at the first bytes only; decoding the picture is the provider's work. */
import { imageType } from "../core/image-format.ts";

/** Characters of base64 that are decoded to see the magic bytes: 12 bytes, enough for all four formats. */
const HEAD_CHARS = 16;

/** Characters from which on the runtime's decoder is asked first. */
const NATIVE_FROM = 16_384;

const FORMATS = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** 1 for the characters of base64 and base64url. */
const BASE64 = new Uint8Array(128);
for (const char of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
  BASE64[char.charCodeAt(0)] = 1;

/**
 * What is wrong with an inline image, as a sentence without the field's name, or null when it is good.
 * `base64` has no data-URL prefix. Line breaks inside are allowed, since some clients wrap at 76 columns.
 */
export function checkImage(mediaType: string, base64: string): string | null {
  const type = mediaType.toLowerCase() === "image/jpg" ? "image/jpeg" : mediaType.toLowerCase();
  if (!FORMATS.includes(type))
    return `The media type ${JSON.stringify(mediaType)} is not supported. Send ${FORMATS.join(", ")}.`;
  const base64Problem = checkBase64(base64);
  if (base64Problem) return base64Problem;
  const actual = sniff(base64);
  if (actual === null) return "The data is not a PNG, JPEG, GIF or WebP image.";
  if (actual !== type) return `The data is ${actual}, but the media type says ${mediaType}.`;
  return null;
}

/** What is wrong with base64 text, as a sentence without the field's name, or null when it is good. */
export function checkBase64(base64: string): string | null {
  if (base64.length === 0) return "The data is empty.";
  if (base64.length > NATIVE_FROM && decodes(base64)) return null;
  let count = 0;
  let end = base64.length;
  while (end > 0 && (base64.charCodeAt(end - 1) === 61 || isBreak(base64.charCodeAt(end - 1)))) end--;
  for (let i = 0; i < end; i++) {
    const code = base64.charCodeAt(i);
    if (code < 128 && BASE64[code] === 1) count++;
    else if (!isBreak(code)) return "The data is not valid base64.";
  }
  return count === 0 || count % 4 === 1 ? "The data is not valid base64." : null;
}

/** The runtime's own decoder is several times as fast, but knows no base64url. */
function decodes(base64: string): boolean {
  try {
    return atob(base64).length > 0;
  } catch {
    return false;
  }
}

function isBreak(code: number): boolean {
  return code === 10 || code === 13;
}

/** The media type that the first bytes show; null when they are of none of the four formats. */
export function sniff(base64: string): string | null {
  let head = base64.slice(0, HEAD_CHARS + 4);
  if (head.includes("\n") || head.includes("\r")) head = head.replace(/[\r\n]/g, "");
  let bytes: string;
  try {
    bytes = atob(head.slice(0, HEAD_CHARS).replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return null;
  }
  return imageType(Uint8Array.from(bytes, (char) => char.charCodeAt(0)));
}
