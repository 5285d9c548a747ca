/** What a person or a model typed, as an expression of the index of notes; and where its words stand in a note. */
import { toStorable } from "./text.ts";

const WORDS_LIMIT = 16;
/** The beginnings of words with fewer letters are those of too many words. */
const SHORTEST_BEGINNING = 2;
/** Characters before the word that was found, and of the whole. */
const LEAD = 60;
const SNIPPET_LENGTH = 240;
/** Characters of a note that are searched; the triggers of the index say the same. */
const SEARCHED_LENGTH = 128 * 1024;

/** As the tokenizer sees them. */
const WORD = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;

export interface NoteMatch {
  expression: string;
  /** Folded; the last one may be the beginning of a word. */
  words: string[];
}

/** Only letters, digits and marks get through, in quotes: nothing in it is the index's own syntax. null without words. */
export function toNoteMatch(query: string, anyWord: boolean): NoteMatch | null {
  const words = toStorable(query).match(WORD)?.slice(0, WORDS_LIMIT);
  if (!words) return null;
  const last = words.at(-1) as string;
  const open = !anyWord && [...last].length >= SHORTEST_BEGINNING;
  const wanted = words.map((word) => `"${word}"`).join(anyWord ? " OR " : " AND ");
  return {
    expression: `{title content} : (${wanted}${open ? " *" : ""})`,
    words: words.map(fold),
  };
}

/** Owners and categories are tokens of their own, so that a search only ever walks through what it may see. */
export function ownerToken(owner: string, category: string | undefined): string {
  const of = `owner : "o${toHex(owner)}"`;
  return category === undefined ? of : `${of} AND category : "c${toHex(toStorable(category))}"`;
}

function toHex(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The text around the first of the words; undefined where none is in it. */
export function snippetOf(content: string, words: readonly string[]): string | undefined {
  const text = content.slice(0, SEARCHED_LENGTH);
  const beginning = words.at(-1) ?? "";
  for (const found of text.matchAll(WORD)) {
    const word = fold(found[0]);
    if (words.includes(word) || word.startsWith(beginning)) return around(text, found.index);
  }
  return undefined;
}

function around(text: string, at: number): string {
  const start = at <= LEAD ? 0 : wordStart(text, at - LEAD, at);
  const end = Math.min(text.length, start + SNIPPET_LENGTH);
  const piece = text.slice(start, end).toWellFormed().replaceAll(/\s+/g, " ").trim();
  return `${start > 0 ? "…" : ""}${piece}${end < text.length ? "…" : ""}`;
}

function wordStart(text: string, from: number, to: number): number {
  const gap = text.slice(from, to).search(/\s/);
  return gap === -1 ? from : from + gap + 1;
}

function fold(word: string): string {
  return word.normalize("NFD").replaceAll(/\p{M}/gu, "").toLowerCase();
}
