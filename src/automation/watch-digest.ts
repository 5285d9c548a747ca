/** A short name for a text: the same for the same, on every runtime. */
import type { Platform } from "../core/platform.ts";

/** Bytes of the SHA-256 that the name is made of. */
const KEPT = 16;
/** Characters; the digest of a longer text is made beside the event loop. */
const SHORT = 64 * 1024;

/** `atOnce`: the platform's own, where it has one. */
export async function digestOf(text: string, atOnce?: Platform["digest"]): Promise<string> {
  if (atOnce && text.length <= SHORT) return atOnce(text).slice(0, KEPT * 2);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return Array.from(digest.subarray(0, KEPT), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
