/**
 * How the seals of reasoning travel through a Messages client, which replays the `signature` of a thinking block and
 * the `data` of a redacted one byte for byte.
 *
 * Anthropic's own are written as they are. Those of another provider get a tag in front, `dragoman.<provider>.`, so
 * that the next request tells whose they are. Seals of calls and texts have no place in this protocol: the server
 * keeps those (see `HandedBackTurn`).
 */
import { PROVIDERS, type ProviderName } from "../core/message.ts";

const TAG = "dragoman.";

export function writeSeal(provider: ProviderName, seal: string): string {
  return provider === "anthropic" ? seal : `${TAG}${provider}.${seal}`;
}

/** What a signature or the data of redacted thinking says. Anything without our tag is Anthropic's. */
export function readSeal(value: string): { provider: ProviderName; seal: string } {
  if (value.startsWith(TAG)) {
    const end = value.indexOf(".", TAG.length);
    const provider = PROVIDERS.find((name) => name === value.slice(TAG.length, end));
    if (end !== -1 && provider !== undefined) return { provider, seal: value.slice(end + 1) };
  }
  return { provider: "anthropic", seal: value };
}
