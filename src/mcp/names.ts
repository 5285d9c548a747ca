/** The names that the tools of servers have here: `server__tool`, as every provider takes them (E5). */

/** Characters that every provider takes in a name. */
export const NAME_LIMIT = 64;
const SEPARATOR = "__";
/** Hexadecimal digits of the hash that stands for what was cut. */
const HASH_LENGTH = 8;

/** At most {@link NAME_LIMIT} of `A-Za-z0-9_-`. Where it had to be cut, a hash of the whole tells it from its like. */
export async function toolName(serverId: string, name: string): Promise<string> {
  const whole = `${serverId}${SEPARATOR}${name.replaceAll(/[^A-Za-z0-9_-]/g, "_")}`;
  if (whole.length <= NAME_LIMIT) return whole;
  const hash = (await sha256(`${serverId}${SEPARATOR}${name}`)).slice(0, HASH_LENGTH);
  return `${whole.slice(0, NAME_LIMIT - HASH_LENGTH - 1)}_${hash}`;
}

/** In hexadecimal. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
