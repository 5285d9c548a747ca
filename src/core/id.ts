/**
 * Identifiers: a readable prefix, the time in 30 bits and 130 random bits, in lower-case base 32, so that they are safe in
 * URLs and file names. They grow with time: a new row goes to the end of every index, to pages which the one before has
 * just touched.
 */
/** In the order of their codes. */
const ALPHABET = "234567abcdefghijklmnopqrstuvwxyz";

export type IdPrefix =
  | "ses"
  | "msg"
  | "run"
  | "req"
  | "chatcmpl"
  | "call"
  | "mcp"
  | "mem"
  | "job"
  | "wdg"
  | "note"
  | "img"
  | "agt";

/** Letters of time, each five bits, and of chance. */
const TIME_LENGTH = 6;
const LENGTH = 26;
/** Random bytes are fetched for many ids at once, since the call costs more than they do; each is used for one id. */
const pool = new Uint8Array(64 * LENGTH);
let next = pool.length;
/** Ids of one such stretch begin alike. Milliseconds. */
const STRETCH_MS = 64;
let then = -1;
let time = "";

export function createId(prefix: IdPrefix): string {
  if (next === pool.length) {
    crypto.getRandomValues(pool);
    next = 0;
  }
  const now = Math.floor(Date.now() / STRETCH_MS);
  if (now !== then) {
    then = now;
    time = toLetters(now);
  }
  let out = (prefix === "chatcmpl" ? "chatcmpl-" : `${prefix}_`) + time;
  for (const end = next + LENGTH; next < end; next++) out += ALPHABET[(pool[next] as number) & 31];
  return out;
}

/** The lowest bits, highest first. */
function toLetters(value: number): string {
  let out = "";
  for (let rest = value; out.length < TIME_LENGTH; rest = Math.floor(rest / 32))
    out = ALPHABET[rest % 32] + out;
  return out;
}
