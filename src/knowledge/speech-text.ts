/** A text made fit to be spoken, and split where a speaker would pause. Pure. */
import type { PieceLimit } from "../core/speech.ts";

/** Code points, which is what people count as characters. */
export function lengthOf(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** Control characters and halves of surrogate pairs are no sounds; line breaks and tabs are pauses. */
export function speakable(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]|\p{Cs}/gu, " ");
}

/** Where to split, best first: behind a line, a sentence, a part of a sentence. What follows a break belongs to it. */
const PAUSES = [
  /\n\s*/g,
  /[.!?…]+["'”’»)\]]*\s+|[。！？｡]+["”’」』）]*\s*/g,
  /[,;:–—]["'”’»)\]]*\s+|[、，；：]\s*/g,
];
/** A piece that is much shorter than it could be costs more than the better place to split is worth. */
const LEAST_SHARE = 1 / 4;

/**
 * Pieces within the limit, none of them empty, that together are the text. A word, and always a surrogate pair, is split only where it is
 * longer than the limit by itself.
 */
export function splitText(text: string, limit: PieceLimit): string[] {
  const pieces: string[] = [];
  let from = 0;
  while (from < text.length) {
    const reach = reachOf(text, from, limit);
    const end = reach === text.length ? reach : lastBreak(text, from, reach);
    pieces.push(text.slice(from, end));
    from = end;
  }
  return pieces;
}

/** How far a piece may go at most: always at least one character, and never into the middle of one. */
function reachOf(text: string, from: number, { most, unit }: PieceLimit): number {
  let size = 0;
  let at = from;
  for (const character of text.slice(from, from + most + 1)) {
    size += unit === "chars" ? character.length : bytesOf(character);
    if (size > most && at > from) return at;
    at += character.length;
  }
  return at;
}

function bytesOf(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

function lastBreak(text: string, from: number, reach: number): number {
  const window = text.slice(from, reach);
  for (const pause of PAUSES) {
    const end = lastEnd(window, pause);
    if (end >= window.length * LEAST_SHARE) return from + end;
  }
  if (/\s/.test(text.charAt(reach))) return reach;
  const space = lastEnd(window, /\s+/g);
  return space > 0 ? from + space : reach;
}

function lastEnd(window: string, pattern: RegExp): number {
  let end = 0;
  for (const match of window.matchAll(pattern)) end = match.index + match[0].length;
  return end;
}
