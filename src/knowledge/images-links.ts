/**
 * Addresses of images that a browser can show. An `<img>` sends no access token, so where tokens are wanted the address
 * carries a signature of its path: whoever has it may see that image, and nothing else.
 */
export interface ImageLinks {
  /** Path and query for an image. `signed`: those who have it may see the image without saying who they are. */
  pathOf(id: string, signed: boolean): Promise<string>;
  /** The id in a path of ours with a valid signature; null for all else. Looks nothing up. */
  verify(path: string, signature: string | null): Promise<string | null>;
}

/** Where images are. */
export const IMAGES_PATH = "/api/notes/images/";
/** 144 bits, so that no padding is needed. */
const SIGNATURE_BYTES = 18;
const SIGNATURE = /^[\w-]{24}$/;

/** `secret` absent: links are bare, and work for those whom the service knows. */
export function createImageLinks(secret: string | undefined): ImageLinks {
  const encoder = new TextEncoder();
  let key: Promise<CryptoKey> | undefined;

  async function sign(secret: string, id: string): Promise<Uint8Array> {
    key ??= crypto.subtle.importKey("raw", encoder.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, [
      "sign",
    ]);
    // The words keep this apart from whatever else is made of the secret.
    const mac = await crypto.subtle.sign("HMAC", await key, encoder.encode(`image link\n${id}`));
    return new Uint8Array(mac, 0, SIGNATURE_BYTES);
  }

  return {
    async pathOf(id, signed) {
      if (!signed || secret === undefined) return IMAGES_PATH + id;
      return `${IMAGES_PATH}${id}?signature=${toBase64Url(await sign(secret, id))}`;
    },

    async verify(path, signature) {
      if (secret === undefined || signature === null || !path.startsWith(IMAGES_PATH)) return null;
      if (!SIGNATURE.test(signature)) return null;
      const id = path.slice(IMAGES_PATH.length);
      const shown = fromBase64Url(signature);
      let difference = 0;
      for (const [at, byte] of (await sign(secret, id)).entries()) difference |= byte ^ (shown[at] as number);
      return difference === 0 ? id : null;
    },
  };
}

function toBase64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_");
}

function fromBase64Url(text: string): Uint8Array {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}
