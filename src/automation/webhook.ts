/** Signed posts as Standard Webhooks has them (standardwebhooks.com): who gets one can tell that it is ours, and not an old one. */
import { AppError } from "../errors.ts";

const PREFIX = "whsec_";
/** Bytes of a secret. */
const LEAST = 24;
const MOST = 64;
const MADE = 32;

export function createWebhookSecret(): string {
  return PREFIX + toBase64(crypto.getRandomValues(new Uint8Array(MADE)));
}

/** Throws AppError `invalid_request` for what is no secret of the standard's. */
export function checkWebhookSecret(secret: string): void {
  const bytes = bytesOf(secret);
  if (bytes && bytes.length >= LEAST && bytes.length <= MOST) return;
  const message = `webhook_secret: it has to be ${PREFIX} and the base64 of ${LEAST} to ${MOST} random bytes. Leave it out, and one is made.`;
  throw new AppError("invalid_request", message, {
    param: "webhook_secret",
    details: { errors: [{ path: "webhook_secret", message }] },
  });
}

/** The three headers of a post. `id` stays the same from attempt to attempt. */
export async function webhookHeaders(
  secret: string,
  { id, at, body }: { id: string; at: Date; body: string },
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  const bytes = bytesOf(secret) ?? new Uint8Array();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["sign"]);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, signed));
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${toBase64(signature)}`,
  };
}

function bytesOf(secret: string): Uint8Array<ArrayBuffer> | null {
  if (!secret.startsWith(PREFIX)) return null;
  try {
    return Uint8Array.from(atob(secret.slice(PREFIX.length)), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}

function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
