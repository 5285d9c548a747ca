/**
 * Patterns from outside on a linear-time engine (E6): RE2 expressions held against text, and globs held against paths
 * (`*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}` within a name, `**` across directories).
 */
import { RE2JS, RE2JSException } from "re2js";
import { AppError } from "../errors.ts";

const MAX_GLOB_CHARS = 500;
const MAX_PATTERN_CHARS = 1_000;
/** Threads for which the engine takes about one step when it remembers. */
const REMEMBERED = 100;

export interface TextPattern {
  /** Whether one line, without its end, holds a match. */
  line(text: string): boolean;
  /** false only when no line of these can hold a match: one look at many lines. */
  block(text: string): boolean;
  /** About how many steps the engine takes for each character at most. */
  size: number;
}

/** @throws AppError `invalid_request` for what RE2 does not take, look-around and back-references among it. */
export function compileText(
  pattern: string,
  options: { literal: boolean; ignoreCase: boolean },
): TextPattern {
  if (pattern.length > MAX_PATTERN_CHARS) {
    throw new AppError("invalid_request", `The pattern is longer than ${MAX_PATTERN_CHARS} characters.`);
  }
  const source = options.literal ? RE2JS.quote(pattern) : pattern;
  const flags = options.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0;
  try {
    const line = RE2JS.compile(source, flags);
    const block = RE2JS.compile(source, flags | RE2JS.MULTILINE);
    // These stand for the ends of the text, which a line has and a line in a block has not.
    const lineOnly = !options.literal && /\\[AzZ]/.test(pattern);
    return {
      line: (text) => line.test(text),
      block: (text) => lineOnly || block.test(text),
      size: stepsOf(line.programSize(), options.literal ? "" : pattern),
    };
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    throw new AppError(
      "invalid_request",
      `The pattern is no RE2 expression (${error.message}). Look-around and back-references do not exist; ` +
        "to search for the text as it is, set literal.",
    );
  }
}

/** With a word boundary or an end of a line the engine follows all of its threads; without, it remembers where they lead. */
function stepsOf(threads: number, pattern: string): number {
  const bare = pattern.replaceAll(/\[\^?\]?(?:\\[\s\S]|[^\]\\])*\]|\\[^bBAzZ]/g, "");
  return /[\^$]|\\[bBAzZ]/.test(bare) ? threads : Math.ceil(threads / REMEMBERED);
}

/**
 * Tells whether a path matches. A glob without a slash is held against the name alone, any other against the path.
 * @throws AppError `invalid_request` for a glob that is none.
 */
export function compileGlob(glob: string): (path: string) => boolean {
  if (glob.length > MAX_GLOB_CHARS) throw badGlob(`it is longer than ${MAX_GLOB_CHARS} characters`);
  const relative = glob.replace(/^(?:\.?\/)+/, "");
  const nameOnly = !relative.includes("/");
  const engine = compile(toPattern(relative));
  return (path) => engine.testExact(nameOnly ? path.slice(path.lastIndexOf("/") + 1) : path);
}

function compile(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern, RE2JS.DOTALL);
  } catch (error) {
    if (error instanceof RE2JSException) throw badGlob("check its brackets and braces");
    throw error;
  }
}

function badGlob(why: string): AppError {
  return new AppError("invalid_request", `The glob cannot be used: ${why}. An example: src/**/*.{ts,tsx}`);
}

function toPattern(glob: string): string {
  let out = "";
  let depth = 0;
  for (let i = 0; i < glob.length; i++) {
    const c = glob[i]!;
    if (c === "*" && glob[i + 1] === "*") {
      // `**/` also stands for no directory at all.
      const slash = glob[i + 2] === "/";
      out += slash ? "(?:.*/)?" : ".*";
      i += slash ? 2 : 1;
    } else if (c === "*") out += "[^/]*";
    else if (c === "?") out += "[^/]";
    else if (c === "{") {
      out += "(?:";
      depth++;
    } else if (c === "}" && depth > 0) {
      out += ")";
      depth--;
    } else if (c === "," && depth > 0) out += "|";
    else if (c === "[") {
      const end = glob.indexOf("]", i + 2);
      if (end === -1) throw badGlob("a [ has no ]");
      out += toClass(glob.slice(i + 1, end));
      i = end;
    } else if (c === "\\" && i + 1 < glob.length) out += RE2JS.quote(glob[++i]!);
    else out += RE2JS.quote(c);
  }
  return out + ")".repeat(depth);
}

function toClass(inner: string): string {
  const negated = inner.startsWith("!") || inner.startsWith("^");
  const body = (negated ? inner.slice(1) : inner).replaceAll(/[\\[\]^&]/g, "\\$&");
  return negated ? `[^/${body}]` : `[${body}]`;
}
