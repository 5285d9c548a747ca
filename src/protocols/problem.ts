/** What a schema found wrong -> one sentence that names the field and says what is wanted there. Pure. */
import type * as z from "zod";
import { AppError } from "../errors.ts";

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Characters of a refused value that a message repeats. */
const QUOTE_LIMIT = 60;

/** The body as its schema gives it. Throws AppError `invalid_request` with `param` for the first thing that is wrong. */
export function parseWire<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  throw toProblem(result.error, body);
}

/** `body` is what was parsed: an issue does not say what it met, only where. */
export function toProblem(error: z.ZodError, body: unknown): AppError {
  const first = error.issues[0];
  if (!first) return invalid("", "The request body does not have the form that is wanted.");
  const { path, wants, rule } = innermost(first, []);
  const message = rule ? `${subject(path)} has to ${wants}.` : sentence(path, wants, at(body, path));
  return new AppError("invalid_request", message, {
    param: fieldName(path) || undefined,
    cause: error,
  });
}

/** For rules that no schema states. `param` is the field's name as {@link fieldName} writes it. */
export function invalid(param: string, message: string): AppError {
  return new AppError("invalid_request", message, { param: param || undefined });
}

/** `messages[2].content[0].image_url.url` */
export function fieldName(path: Path): string {
  let name = "";
  for (const key of path) {
    if (typeof key === "number") name += `[${key}]`;
    else if (!/^[\w$-]+$/.test(String(key))) name += `[${JSON.stringify(String(key))}]`;
    else name += name === "" ? String(key) : `.${String(key)}`;
  }
  return name;
}

interface Finding {
  path: Path;
  /** Completes "<field> has to …". */
  wants: string;
  /** It is a rule of the field's own, which says all there is to say. */
  rule?: boolean;
}

/** Follows the alternative that the value comes closest to, down to the issue that decides. */
function innermost(issue: Issue, above: Path): Finding {
  const path = [...above, ...issue.path];
  const rule = ruleOf(issue);
  if (rule !== undefined) return { path, wants: rule, rule: true };
  if (issue.code !== "invalid_union") return { path, wants: wanted(issue) };
  const choices = "options" in issue ? (issue.options as unknown[] | undefined) : undefined;
  if (choices) return { path, wants: `be ${oneOf(choices.map(quote))}` };
  const nearest = issue.errors
    .filter((issues) => issues.length > 0 && !issues.some(isOfAnotherKind))
    .reduce<Issue[] | null>((best, issues) => (best && depth(best) >= depth(issues) ? best : issues), null);
  if (nearest?.[0]) return innermost(nearest[0], path);
  const each = issue.errors.flatMap((issues) => issues.slice(0, 1).map((one) => innermost(one, path).wants));
  const kinds = [...new Set(each)].map((wants) => (wants.startsWith("be ") ? wants.slice(3) : wants));
  return { path, wants: kinds.length > 0 ? `be ${oneOf(kinds)}` : "have another form" };
}

/** What a schema says in words of its own: `params.wants`, or a message that begins with "has to". */
function ruleOf(issue: Issue): string | undefined {
  if (issue.code === "invalid_key") return issue.issues[0] && ruleOf(issue.issues[0] as Issue);
  const wants = issue.code === "custom" ? issue.params?.wants : undefined;
  return typeof wants === "string" ? wants : /^has to (.+)$/.exec(issue.message)?.[1];
}

/** The alternative is not what was meant: the value is not even of its kind (a string where it wants an array). */
function isOfAnotherKind(issue: Issue): boolean {
  return issue.path.length === 0 && (issue.code === "invalid_type" || issue.code === "invalid_value");
}

function depth(issues: Issue[]): number {
  return Math.max(...issues.map((issue) => issue.path.length + (issue.code === "invalid_union" ? 1 : 0)));
}

const KINDS: Record<string, string> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
  null: "null",
};

function wanted(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return `be ${KINDS[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `be ${oneOf(issue.values.map(quote))}`;
    case "too_small":
      return bound(issue.origin, issue.inclusive === false ? "more than" : "at least", Number(issue.minimum));
    case "too_big":
      return bound(issue.origin, issue.inclusive === false ? "less than" : "at most", Number(issue.maximum));
    case "not_multiple_of":
      return `be a multiple of ${issue.divisor}`;
    case "invalid_format":
      return issue.format === "regex" ? "have another form" : `be a valid ${issue.format}`;
    case "unrecognized_keys":
      return `be without ${issue.keys.map(quote).join(", ")}`;
    default:
      return "have another form";
  }
}

function bound(origin: string, relation: string, limit: number): string {
  if (origin === "array" || origin === "set")
    return `hold ${relation} ${limit} ${limit === 1 ? "entry" : "entries"}`;
  if (origin === "string") return `have ${relation} ${limit} ${limit === 1 ? "character" : "characters"}`;
  return `be ${relation} ${limit}`;
}

function sentence(path: Path, wants: string, met: unknown): string {
  const field = subject(path);
  if (met === undefined) return `${field} is missing; it has to ${wants}.`;
  return `${field} has to ${wants}, but it is ${describe(met, wants)}.`;
}

function subject(path: Path): string {
  return fieldName(path) || "The request body";
}

/** The value itself where that helps and is short, otherwise what kind of thing it is. */
function describe(value: unknown, wants: string): string {
  if (value === null) return "null";
  const sized = wants.startsWith("hold ") || wants.startsWith("have ");
  if (sized && (value === "" || (Array.isArray(value) && value.length === 0))) return "empty";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  if (typeof value === "string" && !wants.includes('"')) return "a string";
  return quote(value);
}

function quote(value: unknown): string {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > QUOTE_LIMIT ? `${text.slice(0, QUOTE_LIMIT)}…` : text;
}

function oneOf(words: string[]): string {
  if (words.length <= 1) return words[0] ?? "something else";
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

function at(body: unknown, path: Path): unknown {
  let value = body;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}
