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

const LENGTH = 32;
/** Random bytes are fetched for many ids at once, since the call costs more than they do; each is used for one id. */
const pool = new Uint8Array(64 * LENGTH);
let next = pool.length;

export function createId(prefix: IdPrefix): string {
  if (next === pool.length) {
    crypto.getRandomValues(pool);
    next = 0;
  }
  let out = prefix === "chatcmpl" ? "chatcmpl-" : `${prefix}_`;
  for (const end = next + LENGTH; next < end; next++) out += ALPHABET[(pool[next] as number) & 31];
  return out;
}
