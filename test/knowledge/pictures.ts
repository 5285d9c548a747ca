/** Real pictures of seven by five pixels, as encoders write them, and what can be done to them. */
import type { ImageType } from "../../src/core/notes.ts";

export interface Picture {
  name: string;
  type: ImageType;
  bytes: Uint8Array<ArrayBuffer>;
}

const fromBase64 = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

export const PICTURES: Picture[] = (
  [
    [
      "png",
      "image/png",
      "iVBORw0KGgoAAAANSUhEUgAAAAcAAAAFCAIAAAAG+GGPAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAeUlEQVQImQFuAJH/AAAlSm+Uud4DKE1yl7zhBitQdZq/5AAJLlN4ncLnDDFWe6DF6g80WX6jyO0AEjdcgabL8BU6X4SpzvMYPWKHrNH2ABtAZYqv1PkeQ2iNstf8IUZrkLXa/wAkSW6TuN0CJ0xxlrvgBSpPdJm+4wil4jMlS03ZTwAAAABJRU5ErkJggg==",
    ],
    [
      "jpeg",
      "image/jpeg",
      "/9j/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAARCAAFAAcDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAH/xAAfEAABBAAHAAAAAAAAAAAAAAAAAQIDEQQFEjJRodL/xAAVAQEBAAAAAAAAAAAAAAAAAAACBf/EAB0RAAIBBAMAAAAAAAAAAAAAAAEDAAIEERIFQVH/2gAMAwEAAhEDEQA/ALk72NxEMOi9q3fESe+gATOQunIdqs4BGeodRVSCfJ//2Q==",
    ],
    [
      "progressive jpeg",
      "image/jpeg",
      "/9j/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wgARCAAFAAcDASIAAhEBAxEB/8QAFAABAAAAAAAAAAAAAAAAAAAAAP/EABUBAQEAAAAAAAAAAAAAAAAAAAEE/9oADAMBAAIQAxAAAAEJT//EABUQAQEAAAAAAAAAAAAAAAAAAAMy/9oACAEBAAEFAhr/xAAWEQEBAQAAAAAAAAAAAAAAAAARAAH/2gAIAQMBAT8BHL//xAAYEQEAAwEAAAAAAAAAAAAAAAACAAMEEf/aAAgBAgEBPwHRaw+Gf//EABcQAQADAAAAAAAAAAAAAAAAAAEAMfD/2gAIAQEABj8CDVP/xAAZEAABBQAAAAAAAAAAAAAAAAABABFRkfD/2gAIAQEAAT8hIBnGWv/aAAwDAQACAAMAAAAQ+//EABcRAQADAAAAAAAAAAAAAAAAAAEAEVH/2gAIAQMBAT8QoC5P/8QAFxEAAwEAAAAAAAAAAAAAAAAAAAERQf/aAAgBAgEBPxCiImrh/8QAGxAAAQQDAAAAAAAAAAAAAAAAEQABITFRcfD/2gAIAQEAAT8QlhsThvdL/9k=",
    ],
    [
      "webp",
      "image/webp",
      "UklGRmYAAABXRUJQVlA4IFoAAABQAgCdASoHAAUAAsBMJbACdDKjP1mBXJFZTgAA/q0xjk/W/huEu2Pz/atCrSmfQ0bAhv4yyAxsmL/l9pL+czSS9/4O79/aXu8oG+yaAkKZ9GKcem/59AAAAAA=",
    ],
    [
      "lossless webp",
      "image/webp",
      "UklGRiwAAABXRUJQVlA4TCAAAAAvBgABAM1lRP8Dato2guYCKb7y3787BrM9JTEBXFjwAg==",
    ],
    [
      "gif",
      "image/gif",
      "R0lGODlhBwAFAIUAAExpcQInTM7zGE90mbXa/9f8IV+EqWiNsj1ih+AFKvkeQ77jCHGWu8XqD0ZrkJO43Yqv1FZ7oCRJbvAVOrzhBjRZfqzR9pq/5G+UuecMMU1ylxtAZRI3XAAlSqPI7Xidwt4DKIGmyytQdQkuUwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACH5BAUAAAAALAAAAAAHAAUAAAYhwA4GpKGILqNPJtKoeDihiUGAsGwgikPBQZA8AozEYBEEADs=",
    ],
    [
      "animated gif",
      "image/gif",
      "R0lGODlhBwAFAIUAAExpcQInTM7zGE90mbXa/9f8IV+EqWiNsj1ih+AFKvkeQ77jCHGWu8XqD0ZrkJO43Yqv1FZ7oCRJbvAVOrzhBjRZfqzR9pq/5G+UuecMMU1ylxtAZRI3XAAlSqPI7Xidwt4DKIGmyytQdQkuUwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACH/C05FVFNDQVBFMi4wAwEAAAAh+QQFCgAAACwAAAAABwAFAAAGIcAOBqShiC6jTybSqHg4oYlBgLBsIIpDwUGQPAKMxGARBAAh+QQFCgAAACwAAAAABwAFAIVMaXGyjWiHYj3/2rUI474P6sXduJO7lnGQa0ZDHvmphF8qBeBMJwIh/NeZdE8Y8846FfDUr4qge1ZuSSQG4bx+WTT20azCnXiXck3kv5rtyKNlQBtcNxJ1UCsoA95KJQC5lG8xDOfLpoFTLgkAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAGIUCCY3FgGCYDRCOQiGwsgocCIuJoKgVJ6DLKdCgYD+gTBAA7",
    ],
    [
      "animated webp",
      "image/webp",
      "UklGRuoAAABXRUJQVlA4WAoAAAACAAAABgAABAAAQU5JTQYAAAD/////AABBTk1GXgAAAAAAAAAAAAYAAAQAAGQAAAJWUDggRgAAANABAJ0BKgcABQACwEwlsAJ0APR6qrIAAP6tMY5P1v4bhLtj8/2rQq0pn0NGwAX7fKBUeWnLtef+zELtYz1Uz1pDbWH4AABBTk1GWAAAAAAAAAAAAAYAAAQAAGQAAABWUDggQAAAABQCAJ0BKgcABQAAAEwliAJ0NcABQ7TqGAAA/OI7fyrTfxeOtlct5j/RBEp3QNBocmHVnJGP9PhCZhYnYNQgAAA=",
    ],
  ] as [string, ImageType, string][]
).map(([name, type, text]) => ({ name, type, bytes: fromBase64(text) }));

export const pictureNamed = (name: string): Uint8Array<ArrayBuffer> => {
  const found = PICTURES.find((picture) => picture.name === name);
  if (!found) throw new Error(`no picture ${name}`);
  return found.bytes;
};
export const PNG: Uint8Array<ArrayBuffer> = pictureNamed("png");

export function join(...pieces: (Uint8Array | string)[]): Uint8Array<ArrayBuffer> {
  const parts = pieces.map((piece) => (typeof piece === "string" ? new TextEncoder().encode(piece) : piece));
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** A PNG with these numbers in its header. */
export function pngOf(width: number, height: number): Uint8Array<ArrayBuffer> {
  const out = PNG.slice();
  const view = new DataView(out.buffer);
  view.setUint32(16, width);
  view.setUint32(20, height);
  return out;
}

/** A whole PNG of about so many bytes, most of them in a chunk that decoders skip. */
export function pngOfBytes(size: number): Uint8Array<ArrayBuffer> {
  const filling = new Uint8Array(size - PNG.length);
  const view = new DataView(filling.buffer);
  view.setUint32(0, filling.length - 12);
  filling.set(new TextEncoder().encode("fiLl"), 4);
  for (let i = 8; i < filling.length - 4; i += 1) filling[i] = (i * 31) % 251;
  // Behind the signature and IHDR.
  return join(PNG.subarray(0, 33), filling, PNG.subarray(33));
}
