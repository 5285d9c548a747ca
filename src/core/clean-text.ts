/**
 * Text from outside as a person would see it: characters that show nothing, or turn their neighbours round, can carry words
 * that only a model reads. They are left out, but where a script needs them.
 */

/** Controls but tab and line end, bidi marks and overrides, blanks of no width, fillers, tags, spare variation selectors. */
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for.
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: each of them is looked for by itself.
  /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]+|\ufe0f{2,}/gu;

/** Joiners belong behind letters of scripts that join, and behind emoji; anywhere else they only split words. */
// biome-ignore lint/suspicious/noMisleadingCharacterClass: each of them is looked for by itself.
const STRAY_JOINER = /(?<![\u0590-\u1cff\u2190-\u2bff\u3030\u{1f000}-\u{1faff}\ufe0f])[\u200c\u200d]+/gu;

const CARRIAGE_RETURN = /\r\n?/g;

/** What is looked for at all: most texts have none of it. */
const SUSPECT =
  /[^\t\n\x20-\x7e\xa0-\xac\xae-\u02ff\u0370-\u058f\u2010-\u2027\u2030-\u205f\u20a0-\u2bff\u3000-\u3163\u4e00-\u9fff\uac00-\ud7a3]/;

export function cleanText(text: string): string {
  if (!SUSPECT.test(text)) return text;
  return text.replace(CARRIAGE_RETURN, "\n").replace(HIDDEN, "").replace(STRAY_JOINER, "");
}

/** On one line, without blanks at its ends. */
export function oneLine(text: string): string {
  return cleanText(text).replaceAll(/\s+/g, " ").trim();
}
