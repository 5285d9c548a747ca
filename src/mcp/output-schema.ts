/** Checks what a tool answered against what it said that it would. */
import { Validator } from "@cfworker/json-schema";

type Schema = Record<string, unknown>;

/** Characters of an answer, and places of a schema with its references followed, that are still checked. */
const ANSWER_LIMIT = 1_000_000;
const PLACES_LIMIT = 2_000;
/** Expressions of a stranger could run for ever (E6). */
const UNCHECKED = new Set([
  "pattern",
  "patternProperties",
  "format",
  "$id",
  "id",
  "$anchor",
  "$dynamicRef",
  "$recursiveRef",
]);

/** A sentence about the first thing that is wrong, or null: nothing is, or it would take too long to tell. */
export function outputProblem(schema: Schema, answer: unknown): string | null {
  const plain = withoutExpressions(schema) as Schema;
  if (places(plain, plain, PLACES_LIMIT) <= 0 || JSON.stringify(answer).length > ANSWER_LIMIT) return null;
  try {
    const draft = String(schema.$schema ?? "").includes("draft-07") ? "7" : "2020-12";
    const { valid, errors } = new Validator(plain, draft).validate(answer);
    if (valid) return null;
    const last = errors.at(-1);
    return `${last?.instanceLocation ?? "#"}: ${last?.error ?? "it is something else"}`.slice(0, 300);
  } catch {
    // A schema that cannot be read says nothing about the answer.
    return null;
  }
}

function withoutExpressions(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutExpressions);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !UNCHECKED.has(key))
      .map(([key, item]) => [key, withoutExpressions(item)]),
  );
}

/** What is left of `room` after every place of a schema; a schema that refers to itself has no end. */
function places(root: Schema, value: unknown, room: number): number {
  let left = room - 1;
  if (left <= 0 || typeof value !== "object" || value === null) return left;
  const { $ref } = value as Schema;
  if (typeof $ref === "string") left = places(root, resolve(root, $ref), left);
  for (const item of Object.values(value)) {
    if (left <= 0) return 0;
    if (typeof item === "object" && item !== null) left = places(root, item, left);
  }
  return left;
}

function resolve(root: Schema, pointer: string): unknown {
  let at: unknown = root;
  for (const step of pointer.split("/").slice(1))
    at = (at as Schema | undefined)?.[step.replaceAll("~1", "/").replaceAll("~0", "~")];
  return at;
}
