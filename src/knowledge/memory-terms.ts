/**
 * Text -> the words that it is found and compared by: lower case, no accents, no endings, words of one meaning as one.
 * Endings and meanings are English; in other languages words count as they are. Pure.
 */

/** Words of one text that are looked at. */
const WORDS_LIMIT = 2_000;

/** Scripts without blanks between words: every character is a term. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/gu;

/** They say nothing about what a text is about. */
const STOP = new Set(
  (
    "a an the this that these those it its of to in on at by for from with as into onto and or but so if then than " +
    "is are was were be been being am do does did doing done has have had having will would shall should can could " +
    "may might must not no nor there here what which who whom whose when where why how i me my mine we us our you " +
    "your he him his she her they them their also just very really too about any some each such own other " +
    "need want wants make makes get gets give gives let help show find good new much many more most " +
    "user users tell know please s t d ll re ve m"
  ).split(" "),
);

/** Words of one meaning, as their stems. The first of each stands for all. */
const MEANINGS = new Map(
  [
    "live reside residence dwell",
    "work job employ employer occupation profession career",
    "like enjoy love fond adore",
    "hate dislike detest",
    "name call",
    "child kid",
    "wife husband spouse",
    "birthday born birth birthdate",
    "car vehicle automobile",
    "buy purchase bought",
    "start begin began",
    "doctor physician",
    "phone telephone mobile cellphone",
    "mail email e-mail",
    "movie film",
    "picture photo photograph image",
    "trip travel journey",
    "holiday vacation",
    "allergic allergy",
    "boss manager supervisor",
    "favorite favourite",
    "color colour",
    "city town hometown",
    "repo repository",
    "db database",
    "config configuration setting",
    "doc documentation",
    "prod production",
  ].flatMap((line) => {
    const [head, ...others] = line.split(" ").map(stem);
    return others.map((word) => [word as string, head as string] as const);
  }),
);

/** The words of a text in order, as they are written but for case and accents. `don't` is `do` and `not`. */
export function wordsOf(text: string): string[] {
  const plain = text
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase()
    .replace(/[’ʼ`]/g, "'")
    .replace(/\bi'm\b/g, "i am")
    .replace(/\b(can|won|shan)'t\b/g, (_, verb) => `${verb === "can" ? "can" : "will"} not`)
    .replace(/n't\b/g, " not")
    .replace(/\bcannot\b/g, "can not")
    .replace(UNSPACED, " $& ");
  const words = plain.match(/[\p{L}\p{N}\p{Co}]+/gu) ?? [];
  return words.length > WORDS_LIMIT ? words.slice(0, WORDS_LIMIT) : words;
}

/** A word without its ending, and as the word that stands for its meaning. */
export function termOf(word: string): string {
  const stemmed = stem(word);
  return MEANINGS.get(stemmed) ?? stemmed;
}

export function isStop(word: string): boolean {
  return STOP.has(word);
}

/** The terms that a text is about, in order, repeated as often as they are. */
export function termsOf(text: string): string[] {
  const terms: string[] = [];
  for (const word of wordsOf(text)) if (!STOP.has(word)) terms.push(termOf(word));
  return terms;
}

/** English endings, in the spirit of Porter's first steps: enough to bring the forms of one word together. */
export function stem(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  let out = word;
  if (out.endsWith("ies") && out.length > 4) out = `${out.slice(0, -3)}y`;
  else if (/(?:x|ch|sh|ss|z)es$/.test(out)) out = out.slice(0, -2);
  else if (out.endsWith("s") && !/(?:ss|us|is)$/.test(out)) out = out.slice(0, -1);
  if (out.length > 5 && out.endsWith("ing") && /[aeiouy]/.test(out.slice(0, -3)))
    out = undoubled(out.slice(0, -3));
  else if (out.length > 4 && out.endsWith("ed") && /[aeiouy]/.test(out.slice(0, -2)))
    out = undoubled(out.slice(0, -2));
  if (out.length > 5 && out.endsWith("ly")) out = out.slice(0, -2);
  if (out.length > 3 && out.endsWith("e")) out = out.slice(0, -1);
  return out;
}

function undoubled(word: string): string {
  const last = word.at(-1);
  return last === word.at(-2) && !"lsz".includes(last ?? "") && word.length > 3 ? word.slice(0, -1) : word;
}
