/** Between the strings that the virtual shell hands over and the bytes of a file. */

/** What just-bash passes for an encoding: its name, or options that may name one. */
export type Encoding = string | { encoding?: string | null } | undefined;

const encoder = new TextEncoder();

/** Buffers made below: nobody else has a part of them. */
const growable = new WeakSet<ArrayBufferLike>();

/** Grows in steps of double size, so that a loop of appends does not copy the file each time. */
export function appended(before: Uint8Array, added: Uint8Array): Uint8Array {
  const length = before.length + added.length;
  const room = growable.has(before.buffer) ? before.buffer.byteLength : 0;
  const buffer = room >= length ? before.buffer : new ArrayBuffer(length * 2);
  const bytes = new Uint8Array(buffer, 0, length);
  if (buffer !== before.buffer) {
    growable.add(buffer);
    bytes.set(before);
  }
  bytes.set(added, before.length);
  return bytes;
}

export function isBinary(options: Encoding): boolean {
  const encoding = typeof options === "string" ? options : options?.encoding;
  return encoding === "binary" || encoding === "latin1" || encoding === "ascii";
}

export function toBytes(content: string | Uint8Array, options: Encoding): Uint8Array {
  if (typeof content !== "string") return content.slice();
  if (!isBinary(options)) return encoder.encode(content);
  const bytes = new Uint8Array(content.length);
  for (let i = 0; i < content.length; i++) bytes[i] = content.charCodeAt(i);
  return bytes;
}

export function latin1(bytes: Uint8Array): string {
  let out = "";
  for (let i = 0; i < bytes.length; i += 8_192) {
    out += String.fromCharCode(...bytes.subarray(i, i + 8_192));
  }
  return out;
}
