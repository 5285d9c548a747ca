/** Who is calling: access tokens, provider keys, owners, and the count of wrong guesses (A4, A5). */
import type { AccessConfig } from "../config.ts";
import { AppError } from "../errors.ts";

export interface Identity {
  owner: string;
  providerKey: string | undefined;
}

export interface AccessOptions {
  /** Needed with AUTH=key: what owners are derived from. */
  secret?: string | undefined;
  /** Milliseconds since the epoch. */
  now?(): number;
}

/** What a request shows. `v1`: its headers carry the provider key, so the access token travels beside or before it. */
export interface Shown {
  headers: Headers;
  v1: boolean;
  address(): string;
}

/** Finds out who a request comes from. Throws AppError `unauthorized` or `rate_limited`. */
export type Access = (shown: Shown) => Identity | Promise<Identity>;

/** Wrong tokens that one address may send within a window before it has to wait for the window's end. */
const GUESSES = 10;
const GUESS_WINDOW_MS = 60_000;
/** Addresses remembered at most. */
const ADDRESS_LIMIT = 10_000;

const encoder = new TextEncoder();

export function createAccess(config: AccessConfig, options: AccessOptions = {}): Access {
  if (config.mode === "tokens") return tokenAccess(config, options.now ?? Date.now);
  if (config.mode === "key") return keyAccess(options.secret ?? config.secretKey ?? "");
  return ({ headers, v1 }) => ({ owner: "local", providerKey: v1 ? shownKey(headers) : undefined });
}

/** The credential in the headers that SDKs use for provider keys. */
export function shownKey(headers: Headers): string | undefined {
  const key = bearer(headers) ?? headers.get("x-api-key")?.trim() ?? headers.get("x-goog-api-key")?.trim();
  return key || undefined;
}

function bearer(headers: Headers): string | undefined {
  const value = headers.get("authorization");
  if (value === null || value.length < 8 || value.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  return value.slice(7).trim() || undefined;
}

function tokenAccess(config: AccessConfig, now: () => number): Access {
  const guesses = createGuessCount(now);
  const ring = createTokenRing(config);
  return async (shown) => {
    const credential = shown.v1 ? splitCredential(shown.headers) : { token: bearer(shown.headers) };
    const wait = guesses.wait(shown.address());
    if (wait > 0)
      throw new AppError("rate_limited", `Too many wrong access tokens from your address: wait ${wait} s.`, {
        retryAfter: wait,
      });
    const where = shown.v1
      ? "in x-access-token, or in front of the provider key as <token>:<key>, or in place of the key"
      : "as Authorization: Bearer <token>";
    if (credential.token === undefined)
      throw new AppError("unauthorized", `This service wants an access token: send it ${where}.`);
    const owner = await ring(credential.token);
    if (owner === null) {
      guesses.add(shown.address());
      throw new AppError("unauthorized", `The access token is not one of this service: send yours ${where}.`);
    }
    return { owner, providerKey: credential.key };
  };
}

function splitCredential(headers: Headers): { token?: string | undefined; key?: string | undefined } {
  const key = shownKey(headers);
  const token = headers.get("x-access-token")?.trim();
  if (token) return { token, key };
  const colon = key?.indexOf(":") ?? -1;
  if (key === undefined || colon === -1) return { token: key };
  return { token: key.slice(0, colon), key: key.slice(colon + 1).trim() || undefined };
}

/**
 * Compares a token with all there are, in the same time wherever they differ: both sides are hashed under a key that
 * this process made up, and every hash is read to its end.
 */
function createTokenRing(config: AccessConfig): (token: string) => Promise<string | null> {
  const key = hmacKey(crypto.getRandomValues(new Uint8Array(32)));
  const known = key.then((k) =>
    Promise.all(config.tokens.map(async ({ owner, token }) => ({ owner, hash: await hmac(k, token) }))),
  );
  // A failure is met again, and reported, by the request that waits for it.
  known.catch(() => {});
  return async (token) => {
    const shown = await hmac(await key, token);
    let found: string | null = null;
    for (const { owner, hash } of await known) {
      let difference = 0;
      for (let i = 0; i < hash.length; i++) difference |= (hash[i] as number) ^ (shown[i] as number);
      if (difference === 0) found = owner;
    }
    return found;
  };
}

function keyAccess(secret: string): Access {
  if (secret === "") throw new Error("AUTH=key needs a server secret.");
  const key = hmacKey(encoder.encode(secret));
  key.catch(() => {});
  return async ({ headers }) => {
    const providerKey = shownKey(headers);
    if (providerKey === undefined)
      throw new AppError(
        "unauthorized",
        "This service knows its users by their provider key: send yours as Authorization: Bearer <key> or x-api-key.",
      );
    return { owner: `key_${toHex(await hmac(await key, providerKey))}`, providerKey };
  };
}

function hmacKey(secret: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

async function hmac(key: CryptoKey, text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(text)));
}

function toHex(bytes: Uint8Array): string {
  let out = "";
  for (const byte of bytes) out += byte.toString(16).padStart(2, "0");
  return out;
}

/** Counts wrong tokens per address in fixed windows. While a window is full, right tokens wait too: else guessing goes on. */
function createGuessCount(now: () => number) {
  const windows = new Map<string, { count: number; until: number }>();
  return {
    /** Seconds until the address may try again, 0 for at once. */
    wait(address: string): number {
      if (windows.size === 0) return 0;
      const window = windows.get(network(address));
      if (!window || window.count < GUESSES) return 0;
      return Math.max(0, Math.ceil((window.until - now()) / 1000));
    },
    add(address: string): void {
      const name = network(address);
      const window = windows.get(name);
      if (window && window.until > now()) {
        window.count += 1;
        return;
      }
      windows.delete(name);
      if (windows.size >= ADDRESS_LIMIT) {
        const oldest = windows.keys().next();
        if (!oldest.done) windows.delete(oldest.value);
      }
      windows.set(name, { count: 1, until: now() + GUESS_WINDOW_MS });
    },
  };
}

/** One client of IPv6 has a whole /64 to come from, so that is what is counted. */
export function network(address: string): string {
  if (!address.includes(":")) return address;
  if (address.includes(".")) return address.slice(address.lastIndexOf(":") + 1);
  const groups = address.split(":").slice(0, 4);
  const gap = groups.indexOf("", 1);
  return (gap === -1 ? groups : groups.slice(0, gap)).join(":");
}
