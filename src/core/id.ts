/** Identifiers: a readable prefix and 160 random bits in lower-case base 32, so that they are safe in URLs and file names. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

export type IdPrefix =
  | "ses"
  | "msg"
  | "run"
  | "req"
  | "chatcmpl"
  | "call"
  | "mem"
  | "job"
  | "wdg"
  | "note"
  | "img";

export function createId(prefix: IdPrefix): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  let out = prefix === "chatcmpl" ? "chatcmpl-" : `${prefix}_`;
  for (const byte of bytes) out += ALPHABET[byte & 31];
  return out;
}
