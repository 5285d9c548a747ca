/**
 * What a memory is about, and what it says about that: two memories about the same that say different things contradict
 * each other, and the newer one takes the other's place. Without a model, so it is careful: it knows the forms of English in
 * which a thing has one value (`lives in`, `name is`, `favourite colour is`, `prefers a over b`), changed numbers, and
 * `not`. What it does not know stands side by side, and the model may say what replaces what.
 */
import { isStop, termOf, termsOf, wordsOf } from "./memory-terms.ts";

export interface Fact {
  /** Equal for memories about the same. */
  slot: string;
  /** Terms with blanks between them. */
  value: string;
  /** What it says is not, or no longer, so. */
  denies?: { slot: string; value: string } | undefined;
}

/** Longer texts are compared as a whole. Words. */
const SENTENCE_WORDS = 30;
/** Words beside the numbers that it takes to know what the numbers are of. */
const NUMBERED_WORDS = 2;
/** Words that may name a thing. */
const NAME_WORDS = 6;

const NEGATION = new Set(["not", "never", "no", "longer", "anymore", "stopped", "quit"]);
const NOW =
  /\b(?:now|currently|today|nowadays|recently|just|still|already|actually|these days|at the moment)\b/g;
const MONTH =
  /^(?:jan|january|feb|february|mar|march|apr|april|may|jun|june|jul|july|aug|august|sep|sept|september|oct|october|nov|november|dec|december)$/;
const NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split(" ");
const ORDINAL = /^(\d+)(?:st|nd|rd|th)$/;
const NUMBER = /^\d+(?:km|kg|g|m|cm|mm|h|min|s|gb|mb|tb|kb|am|pm|k|eur|usd|px|c|f)?$/;
/** Behind one of these, or behind a verb's ending, a number is said of something; before that it names the thing. */
const SAYING =
  /^(?:is|am|are|was|were|has|have|had|in|on|at|by|for|to|of|with|from|until|since|within|about|around|cost|take)$/;
/** What begins like a name with one of these in it is a clause. */
const CLAUSE =
  /\b(?:to|who|that|which|when|if|because|and|but|wants?|likes?|prefers?|hopes?|plans?|says?|thinks?)\b/;

/** What a thing has one of. */
const ATTRIBUTE = new RegExp(
  `^(?:${[
    "name surname nickname birthday birthdate anniversary address city town country hometown residence email mail phone",
    "number age color colour deadline version url host port timezone zone language framework database editor",
    "shell browser os laptop branch manager boss owner lead leader ceo wife husband spouse partner job title employer",
    "occupation profession salary budget status location office date size limit model region currency unit format",
    "theme diet height weight major school university team role plan provider registry license password",
    "username handle nationality religion breed capital price cost",
  ]
    .join(" ")
    .replaceAll(" ", "|")})$`,
);
const SINGLE = /^(?:favorite|favourite|default|preferred|primary|main|current|preference)$/;

const LIVES =
  /^(.+?) (?:lives?|lived|living|is living|resides?|is residing|is based|are based|is located|moved|has moved|relocated|has relocated)(?: (?:over|back|out|away))? (?:in|to|at|near) (.+)$/;
const WORKS =
  /^(.+?) (?:works?|is working|is employed|started working|has started working) (at|for|as)(?: an?| the)? (.+)$/;
const CALLED = /^(.+?) (?:is|are|was) (?:called|named) (.+)$/;
const BORN = /^(.+?) (?:is|was) born (?:on|in|at) (.+)$/;
const MARRIED = /^(.+?) (?:is|are|got) married to (.+)$/;
const HOSTED =
  /^(.+?) (?:runs|is running|is hosted|are hosted|is deployed|are deployed|is stored) (?:on|at|by|in|to) (.+)$/;
const PREFERS =
  /^(.+?) (?:prefers? (?!to )(.+?) (?:over|rather than|instead of|more than|to)|likes? (.+?) (?:rather than|more than)) (.+)$/;
const USES_AS = /^(.+?) (?:uses?|is using|chose|has chosen) (.+?) as (.+)$/;
const IS =
  /^(.+?)(?: (?:is|are|has changed to|have changed to|changed to|has become|became|is set to|was changed to|has moved to) | ?[:=] ?)(.+)$/;

export function factOf(document: string): Fact {
  const words = wordsOf(document);
  const oneSentence = !/[.!?。！？][)"']?\s+\S/.test(document.trim()) && !document.trim().includes("\n");
  const whole = { slot: `= ${words.map(meaning).filter(Boolean).join(" ")}`, value: "" };
  if (!oneSentence || words.length === 0 || words.length > SENTENCE_WORDS) return whole;
  const plain = plainOf(document);
  const { negative, text } = withoutNegation(plain);
  const single = singleValued(text);
  const content = contentOf(words);
  if (!single) return content ?? whole;
  if (!negative) return single;
  return { ...(content ?? whole), denies: single };
}

const LIVE = termOf("live");
/** Most texts need no closer look. */
const LIVES_ELSEWISE = /\b(?:moved|relocated|based|located)\b/i;

/** The terms that a memory is found by: its own, and what it is about where it does not say so. `Moved to Lyon` is where one lives. */
export function searchedTerms(document: string): string[] {
  const terms = termsOf(document);
  if (!terms.includes(LIVE) && LIVES_ELSEWISE.test(document) && factOf(document).slot.startsWith("live|"))
    terms.push(LIVE);
  return terms;
}

/** Whether a value says no more than another one does. */
export function isWithin(value: string, other: string): boolean {
  const said = value.split(" ");
  const there = other.split(" ");
  if (said.toSorted().join(" ") === there.toSorted().join(" ")) return true;
  if (/[!\d]/.test(value + other)) return false;
  return value !== "" && said.every((term) => there.includes(term));
}

/** As the patterns take it: the user in the third person, no opening phrase, no end mark, no words of time. */
function plainOf(document: string): string {
  return document
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[’ʼ`]/g, "'")
    .replace(/^(?:please )?(?:remember|note|keep in mind)(?: that)?[:,]?\s+/, "")
    .replace(/[.!?\s]+$/, "")
    .replace(NOW, " ")
    .replace(/\b(?:i|he|she|they|it)'(?:m|s|re) /g, (all) => (all.startsWith("i'm") ? "user is " : all))
    .replace(/\bi am\b/g, "user is")
    .replace(/\bi\b|\bme\b/g, "user")
    .replace(/\b(?:my|mine|our)\b/g, "user's")
    .replace(/\bthe user\b/g, "user")
    .replace(/\b(e-?mail|post) address\b/g, "$1")
    .replace(/\btime zone\b/g, "timezone")
    .replace(/\bphone number\b/g, "phone")
    .replace(/\s+/g, " ")
    .trim();
}

function withoutNegation(text: string): { negative: boolean; text: string } {
  const positive = text
    .replace(/\b(?:does|do|did|has|have|will)(?:n't| not|n't ever| never) /g, "")
    .replace(/\b(is|are|was|were)(?:n't| not) /g, "$1 ")
    .replace(/\b(?:no longer|never|not) /g, "")
    .replace(/ (?:anymore|any more|any longer)\b/g, "");
  return { negative: positive !== text, text: positive.replace(/\s+/g, " ").trim() };
}

/** The forms in which a thing has one value. null: none of them. */
function singleValued(text: string): Fact | null {
  const lives = LIVES.exec(text);
  if (lives) return slotOf("live", lives[1], lives[2]);
  const works = WORKS.exec(text);
  if (works) return slotOf(works[2] === "as" ? "work as" : "work at", works[1], works[3]);
  const called = CALLED.exec(text);
  if (called) return slotOf("is", `${called[1]} name`, called[2]);
  const born = BORN.exec(text);
  if (born)
    return slotOf("is", `${born[1]} ${/\d/.test(born[2] ?? "") ? "birthday" : "birthplace"}`, born[2]);
  const married = MARRIED.exec(text);
  if (married) return slotOf("is", `${married[1]} wife`, married[2]);
  const prefers = PREFERS.exec(text);
  if (prefers) {
    const pair = [terms(prefers[2] ?? prefers[3]), terms(prefers[4])];
    if (pair.every((side) => side !== "") && pair[0] !== pair[1])
      return { slot: `prefer|${subject(prefers[1])}|${pair.toSorted().join("|")}`, value: pair[0] as string };
  }
  const uses = USES_AS.exec(text);
  if (uses) return slotOf("as", `${uses[1]} ${uses[3]}`, uses[2]);
  const hosted = HOSTED.exec(text);
  if (hosted) return slotOf("host", hosted[1], hosted[2]);
  const is = IS.exec(text);
  return is && hasOneValue(is[1] ?? "") ? slotOf("is", is[1], is[2]) : null;
}

/** `the user's birthday`, `birthday of Anna`, `default branch`: but not `Anna`, nor `the cat`. */
function hasOneValue(subjectText: string): boolean {
  const words = wordsOf(subjectText).filter((word) => word === "user" || !isStop(word));
  if (words.length === 0) return false;
  if (words.some((word) => SINGLE.test(word))) return words.length > 1;
  const ofWhat = /^(?:the )?(\S+) of /.exec(subjectText)?.[1];
  const attribute = ofWhat ?? words.at(-1) ?? "";
  return ATTRIBUTE.test(attribute) && words.length > 1;
}

function slotOf(kind: string, about: string | undefined, value: string | undefined): Fact | null {
  const name = subject(about);
  const said = terms(value);
  if (CLAUSE.test(about ?? "") || wordsOf(about ?? "").length > NAME_WORDS) return null;
  return name === "" || said === "" ? null : { slot: `${kind}|${name}`, value: said };
}

/** In any order: `Anna's birthday` is the `birthday of Anna`. */
function subject(text = ""): string {
  const words = wordsOf(text).filter((word) => word === "user" || (!isStop(word) && !SINGLE_NOISE.has(word)));
  const names = [...new Set(words.map(termOf))];
  // Whose it is goes without saying when it is the user's.
  return names
    .filter((name) => name !== "user" || names.length === 1)
    .toSorted()
    .join(" ");
}

/** `current` says no more than the present tense does. */
const SINGLE_NOISE = new Set(["current", "currently"]);

function terms(text = ""): string {
  return wordsOf(text)
    .filter((word, at, all) => !isStop(word) || (MONTH.test(word) && isDate(all, at)))
    .map((word) => termOf(digits(word)))
    .join(" ");
}

/** The sentence without its numbers and without `not`: what it is about. Those are what it says about that. */
function contentOf(words: readonly string[]): Fact | null {
  const about: string[] = [];
  const numbers: string[] = [];
  let negative = false;
  let plain = 0;
  let saying = false;
  for (let at = 0; at < words.length; at++) {
    const word = digits(words[at] as string);
    if (NEGATION.has(word)) {
      negative = negative || word !== "longer";
    } else if (saying && (NUMBER.test(word) || (MONTH.test(word) && isDate(words, at)))) {
      if (about.at(-1) !== "#") about.push("#");
      numbers.push(word);
    } else {
      const said = meaning(word);
      saying ||= SAYING.test(word) || (at > 0 && /(?:[^s]s|ed)$/.test(word));
      if (said === "") continue;
      about.push(said);
      if (said !== "user") plain++;
    }
  }
  if (numbers.length > 0 && plain < NUMBERED_WORDS) return null;
  const hates = about.indexOf(termOf("hate"));
  if (hates !== -1) {
    about[hates] = termOf("like");
    negative = !negative;
  }
  return { slot: `~ ${about.join(" ")}`, value: [...(negative ? ["!"] : []), ...numbers].join(" ") };
}

/** `may` is a month beside a number. */
function isDate(words: readonly string[], at: number): boolean {
  return /\d/.test(words[at - 1] ?? "") || /\d/.test(words[at + 1] ?? "");
}

/** Without articles and helping verbs; who speaks is the user. */
function meaning(word: string): string {
  if (/^(?:i|me|my|mine|user|users)$/.test(word)) return "user";
  if (NEGATION.has(word)) return word;
  return LIGHT.has(word) ? "" : termOf(word);
}

const LIGHT = new Set(
  "a an the is are was were be been am do does did has have had that s very really now currently".split(" "),
);

function digits(word: string): string {
  const ordinal = ORDINAL.exec(word);
  if (ordinal) return ordinal[1] as string;
  const at = NUMBER_WORDS.indexOf(word);
  return at > 0 ? String(at) : word;
}
