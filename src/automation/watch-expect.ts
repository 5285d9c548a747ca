/** Whether an answer or an output is as it should be. */
import type { Expectation } from "../core/watch.ts";
import { AppError } from "../errors.ts";
import { wrong } from "./cron-change.ts";

/**
 * Whether a text holds a match; a linear-time engine is behind it (E6). `size`: its steps for each character at most. Throws
 * AppError for what is no pattern.
 */
export type CompileRegex = (pattern: string) => { line(text: string): boolean; size: number };

/** Steps of one look, in which nothing else gets its turn: about two seconds of a slow machine. */
const REGEX_STEPS = 10_000_000;

export interface Seen {
  /** Of a url; null for others. */
  status: number | null;
  exitCode: number | null;
  text: string;
}

const WORDS = ["status", "exit_code", "body", "regex", "json_path"] as const;

/** Throws AppError `invalid_request` for an expectation that could never be looked at. */
export function checkExpectation(expect: Expectation, of: "url" | "command", compile: CompileRegex): void {
  const given = WORDS.filter((word) => expect[word] !== undefined);
  if (given.length === 0)
    throw wrong("expect", "it has to have one of status, exit_code, body, regex and json_path.");
  if (of === "url" && expect.exit_code !== undefined)
    throw wrong("expect.exit_code", "only a command has an exit code. Use status.");
  if (of === "command" && expect.status !== undefined)
    throw wrong("expect.status", "only a url has a status. Use exit_code.");
  if (expect.equals !== undefined && expect.json_path === undefined)
    throw wrong("expect.equals", "it says what json_path is to lead to, and there is no json_path.");
  if (expect.json_path !== undefined && !stepsOf(expect.json_path))
    throw wrong("expect.json_path", "it has to be a path such as $.items[0].name or $['a name'].");
  if (expect.regex !== undefined) {
    try {
      compile(expect.regex);
    } catch (error) {
      throw wrong("expect.regex", (error as Error).message);
    }
  }
}

export function isMet(expect: Expectation, seen: Seen, compile: CompileRegex): boolean {
  if (expect.status !== undefined && seen.status !== expect.status) return false;
  if (expect.exit_code !== undefined && seen.exitCode !== expect.exit_code) return false;
  if (expect.body !== undefined && !seen.text.includes(expect.body)) return false;
  if (expect.regex !== undefined && !matches(compile(expect.regex), seen.text)) return false;
  if (expect.json_path === undefined) return true;
  const found = valueAt(seen.text, expect.json_path);
  if (expect.equals === undefined) return found !== undefined;
  return found !== undefined && isSame(found, expect.equals);
}

function matches({ line, size }: ReturnType<CompileRegex>, text: string): boolean {
  if (size * text.length > REGEX_STEPS)
    throw new AppError(
      "invalid_request",
      `expect.regex takes too long for a text of ${text.length} characters. Use a shorter one without counts such as {1,100}, or body or json_path.`,
    );
  // Nearly all outputs end a line; `$` is meant to stand before that.
  return line(/\r?\n$/.test(text.slice(-2)) ? text.slice(0, text.endsWith("\r\n") ? -2 : -1) : text);
}

function isSame(found: unknown, wanted: unknown): boolean {
  try {
    return sorted(found) === sorted(wanted);
  } catch (error) {
    // It goes deeper than the stack, and so than anything that was expected.
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** undefined: it leads nowhere, or the text is no JSON. */
function valueAt(text: string, path: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  for (const step of stepsOf(path) ?? []) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

const STEP = /^(?:\.([^.[\]'"\s]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\])/;

/** null: it is no path. */
function stepsOf(path: string): string[] | null {
  const steps: string[] = [];
  let rest = path.startsWith("$") ? path.slice(1) : `.${path}`;
  while (rest !== "") {
    const match = STEP.exec(rest);
    if (!match) return null;
    steps.push((match[1] ?? match[2] ?? match[3] ?? match[4]) as string);
    rest = rest.slice(match[0].length);
  }
  return steps;
}

/** The same text for the same value, however its fields are ordered. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
