/** Bytes of a page as text: by its byte order mark, its header, what it says inside, or what it looks like. */

/** Bytes in which a page may name its charset, and those that are looked at where it does not. */
const HEAD_BYTES = 4_096;
const SNIFFED_BYTES = 256 * 1024;

export function decodeText(bytes: Uint8Array, contentType: string): string {
  const marked = byteOrderMark(bytes);
  if (marked !== null) return new TextDecoder(marked).decode(bytes);
  const decoder =
    decoderOf(charsetOf(contentType)) ?? decoderOf(declaredIn(bytes)) ?? new TextDecoder(guess(bytes));
  return decoder.decode(bytes);
}

export function charsetOf(contentType: string): string | undefined {
  return /;\s*charset\s*=\s*["']?([^\s;"']+)/i.exec(contentType)?.[1];
}

function byteOrderMark(bytes: Uint8Array): string | null {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  return null;
}

/** A `meta` element or an XML declaration. Since it could be read, it is no UTF-16, whatever it says. */
function declaredIn(bytes: Uint8Array): string | undefined {
  const head = new TextDecoder("windows-1252").decode(bytes.subarray(0, HEAD_BYTES));
  const label =
    /<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w:.-]+)/i.exec(head)?.[1] ??
    /^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w:.-]+)/i.exec(head)?.[1];
  return label && /^utf-?16/i.test(label) ? "utf-8" : label;
}

/** undefined for no label, and for one that nobody knows. */
function decoderOf(label: string | undefined): TextDecoder | undefined {
  if (label === undefined) return undefined;
  try {
    return new TextDecoder(label);
  } catch {
    return undefined;
  }
}

/** UTF-16 of western text has zeros at every other byte; what is not UTF-8 is old and western most often. */
function guess(bytes: Uint8Array): string {
  const start = bytes.subarray(0, SNIFFED_BYTES);
  if (start.length >= 4 && start[0] !== 0 && start[1] === 0 && start[3] === 0) return "utf-16le";
  if (start.length >= 4 && start[0] === 0 && start[1] !== 0 && start[2] === 0) return "utf-16be";
  try {
    // More may follow: a character that is cut at the end is no fault.
    new TextDecoder("utf-8", { fatal: true }).decode(start, { stream: true });
    return "utf-8";
  } catch {
    return "windows-1252";
  }
}
