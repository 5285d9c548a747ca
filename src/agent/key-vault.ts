/** Provider keys that must outlive a process: AES-256-GCM under a key derived from the server's secret (K1). */

const IV_BYTES = 12;
/** Sealed keys remembered, so that a caller's key is encrypted once and not for every run. */
const REMEMBERED = 256;
/** What is longer is no key. Characters. */
const LONGEST_REMEMBERED = 1_024;

export interface KeyVault {
  /** Base64url of a random IV and the ciphertext. */
  seal(key: string): Promise<string>;
  /** null when it was sealed under another secret, or is damaged. */
  open(sealed: string): Promise<string | null>;
}

/** `purpose` keeps keys that are derived from one secret apart. */
export function createKeyVault(secret: string, purpose = "provider keys"): KeyVault {
  const derived = derive(secret, purpose);
  // A failure is met again, and reported, by whoever waits for it.
  derived.catch(() => {});
  const sealedOf = new Map<string, string>();
  return {
    async seal(key) {
      const known = sealedOf.get(key);
      if (known !== undefined) return known;
      const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
      const body = await crypto.subtle.encrypt(
        { name: "AES-GCM", iv },
        await derived,
        new TextEncoder().encode(key),
      );
      const sealed = toBase64Url(new Uint8Array([...iv, ...new Uint8Array(body)]));
      if (key.length > LONGEST_REMEMBERED) return sealed;
      if (sealedOf.size >= REMEMBERED) sealedOf.delete(sealedOf.keys().next().value as string);
      sealedOf.set(key, sealed);
      return sealed;
    },
    async open(sealed) {
      try {
        const bytes = fromBase64Url(sealed);
        const iv = bytes.slice(0, IV_BYTES);
        const body = await crypto.subtle.decrypt(
          { name: "AES-GCM", iv },
          await derived,
          bytes.slice(IV_BYTES),
        );
        return new TextDecoder().decode(body);
      } catch {
        return null;
      }
    },
  };
}

async function derive(secret: string, purpose: string): Promise<CryptoKey> {
  const encoder = new TextEncoder();
  const base = await crypto.subtle.importKey("raw", encoder.encode(secret), "HKDF", false, ["deriveKey"]);
  return crypto.subtle.deriveKey(
    { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: encoder.encode(`dragoman ${purpose}`) },
    base,
    { name: "AES-GCM", length: 256 },
    false,
    ["encrypt", "decrypt"],
  );
}

function toBase64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}
