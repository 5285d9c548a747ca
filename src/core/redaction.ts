/** Cuts the keys in use out of texts that leave: log lines and error bodies (K2). Pure; one for each platform. */

export interface Redaction {
  /**
   * Knows a caller's key from now on, until {@link KEPT} others have been used since. Short ones, and texts with blanks,
   * are nobody's secret and would blank out words.
   */
  hold(key: string): void;
  /** The value with `[key]` wherever a text in it, names of members included, holds a key; itself where none does. */
  clean<T>(value: T): T;
}

/** Keys known at most, the least recently used goes first. */
const KEPT = 1_000;
/** Characters of the shortest key, and of the beginning by which all are looked for. */
const WINDOW = 12;
/** A key that was cut off, as in a quotation, counts from this many characters. */
const CUT_LEAST = 20;
/** Objects inside one another that are looked into. */
const DEPTH = 16;

const SLOTS = 4_096;
const BASE = 31;
/** BASE to the power of WINDOW: what the character that leaves the window has become. */
const LEAVING = power(BASE, WINDOW);

export function createRedaction(): Redaction {
  /** In order of use; the value is the hash of the key's beginning. */
  const held = new Map<string, number>();
  const byHash = new Map<number, string[]>();
  /** How many keys fall into a slot: a window whose slot is empty is no key's. */
  const slots = new Uint16Array(SLOTS);
  let latest = "";

  function drop(key: string, hash: number): void {
    held.delete(key);
    const rest = byHash.get(hash)?.filter((other) => other !== key) ?? [];
    if (rest.length > 0) byHash.set(hash, rest);
    else byHash.delete(hash);
    slots[hash & (SLOTS - 1)]!--;
  }

  function hold(key: string): void {
    if (key === latest || key.length < WINDOW || /\s/.test(key)) return;
    latest = key;
    const known = held.get(key);
    if (known !== undefined) {
      held.delete(key);
      held.set(key, known);
      return;
    }
    const [oldest] = held.size >= KEPT ? held : [];
    if (oldest) drop(...oldest);
    let hash = 0;
    for (let i = 0; i < WINDOW; i++) hash = next(hash, key.charCodeAt(i));
    held.set(key, hash);
    byHash.set(hash, [...(byHash.get(hash) ?? []), key]);
    slots[hash & (SLOTS - 1)]!++;
  }

  /** Characters of a key that stand at `start`, 0 for none. */
  function keyAt(text: string, start: number, hash: number): number {
    let longest = 0;
    for (const key of byHash.get(hash) ?? []) {
      const end = Math.min(key.length, text.length - start);
      let same = 0;
      while (same < end && text.charCodeAt(start + same) === key.charCodeAt(same)) same++;
      if (same > longest && (same === key.length || same >= CUT_LEAST)) longest = same;
    }
    return longest;
  }

  /** One look at each character, however many keys there are. */
  function cleanText(text: string): string {
    if (text.length < WINDOW) return text;
    let out = "";
    let copied = 0;
    let hash = 0;
    let filled = 0;
    for (let i = 0; i < text.length; i++) {
      hash = next(hash, text.charCodeAt(i));
      if (filled < WINDOW) filled++;
      else hash = (hash - Math.imul(text.charCodeAt(i - WINDOW), LEAVING)) | 0;
      if (filled < WINDOW || slots[hash & (SLOTS - 1)] === 0) continue;
      const start = i - WINDOW + 1;
      const length = keyAt(text, start, hash);
      if (length === 0) continue;
      out += `${text.slice(copied, start)}[key]`;
      copied = start + length;
      i = copied - 1;
      hash = 0;
      filled = 0;
    }
    return copied === 0 ? text : out + text.slice(copied);
  }

  function clean(value: unknown, depth: number): unknown {
    if (typeof value === "string") return cleanText(value);
    if (typeof value !== "object" || value === null || depth > DEPTH) return value;
    if (Array.isArray(value)) {
      const items = value.map((item) => clean(item, depth + 1));
      return items.some((item, i) => item !== value[i]) ? items : value;
    }
    let copy: Record<string, unknown> | null = null;
    for (const name in value) {
      const before = (value as Record<string, unknown>)[name];
      const after = clean(before, depth + 1);
      const label = cleanText(name);
      if (after === before && label === name) continue;
      copy ??= { ...value };
      if (label !== name) delete copy[name];
      copy[label] = after;
    }
    return copy ?? value;
  }

  return {
    hold,
    clean: <T>(value: T): T => (held.size === 0 ? value : (clean(value, 0) as T)),
  };
}

function next(hash: number, character: number): number {
  return (Math.imul(hash, BASE) + character) | 0;
}

function power(base: number, exponent: number): number {
  let out = 1;
  for (let i = 0; i < exponent; i++) out = Math.imul(out, base);
  return out;
}
