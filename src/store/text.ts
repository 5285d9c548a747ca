/**
 * What may go into a TEXT column, and in pieces of which size.
 *
 * libSQL reads `a\0b` back as `a`, refuses lone surrogates over HTTP, and aborts the whole process when it reads text
 * that is not UTF-8. A server takes values of just under 5,000,000 bytes and answers with at most 10,000,000.
 */

/** UTF-16 units in one value: at most 2.25 MB of UTF-8. */
export const PIECE_LENGTH = 750_000;
/** Pieces that fit one answer of a server. */
export const PIECES_PER_READ = 4;

/** The text without NUL, each lone surrogate replaced by U+FFFD. */
export function toStorable(text: string): string {
  const withoutNul = text.includes("\0") ? text.replaceAll("\0", "") : text;
  return withoutNul.isWellFormed() ? withoutNul : withoutNul.toWellFormed();
}

/**
 * JSON whose strings are all storable, also for SQL functions that look into it. `JSON.stringify` escapes NUL and lone
 * surrogates, so that only a text with such an escape is gone through string by string.
 */
export function toStorableJson(value: unknown): string {
  const json = JSON.stringify(value);
  return json.includes("\\u0000") || json.includes("\\ud") ? JSON.stringify(cleaned(value)) : json;
}

function cleaned(value: unknown): unknown {
  if (typeof value === "string") return toStorable(value);
  if (Array.isArray(value)) return value.map(cleaned);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [toStorable(key), cleaned(item)]));
}

/** Whether a text can be stored as it is. */
export function isStorable(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}

/**
 * Cuts a text into values that a server takes, never inside a surrogate pair. At least one, possibly empty: the first is
 * empty when the text is longer than `inRow`, what a row that is often rewritten may carry along.
 */
export function toPieces(text: string, inRow = PIECE_LENGTH): [string, ...string[]] {
  if (text.length <= inRow) return [text];
  const pieces: string[] = inRow < PIECE_LENGTH ? [""] : [];
  for (let from = 0; from < text.length; ) {
    let end = Math.min(from + PIECE_LENGTH, text.length);
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last < 0xdc00) end -= 1;
    pieces.push(text.slice(from, end));
    from = end;
  }
  return pieces as [string, ...string[]];
}
