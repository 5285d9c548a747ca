/** Checks an answer against the JSON schema that it was to have: a tool's, or a task's. The schema is a stranger's too. */
import { Validator } from "@cfworker/json-schema";
import { DEPTH_LIMIT, isTooDeep } from "../core/args.ts";

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
/** Of these the keys are names and no keywords. */
const BY_NAME = new Set(["properties", "$defs", "definitions", "dependentSchemas", "dependencies"]);
/** Of these the values are no schemas. */
const DATA = new Set(["const", "enum", "default", "examples", "required", "dependentRequired"]);

/** A sentence about the first thing that is wrong, or null: nothing is, or it would take too long to tell. */
export function outputProblem(schema: Schema, answer: unknown): string | null {
  if (!isCheckable(schema)) return null;
  try {
    if (JSON.stringify(answer).length > ANSWER_LIMIT) return null;
    const draft = String(schema.$schema ?? "").includes("draft-07") ? "7" : "2020-12";
    const { valid, errors } = new Validator(withoutExpressions(schema) as Schema, draft).validate(answer);
    if (valid) return null;
    const last = errors.at(-1);
    return `${last?.instanceLocation ?? "#"}: ${last?.error ?? "it is something else"}`.slice(0, 300);
  } catch {
    // A schema that cannot be read says nothing about the answer.
    return null;
  }
}

/** Whether answers are held against it; not where it is endless, since it refers to itself, or too large. */
export function isCheckable(schema: Schema): boolean {
  if (isTooDeep(schema)) return false;
  const plain = withoutExpressions(schema) as Schema;
  return places(plain, plain, PLACES_LIMIT) > 0;
}

/** A sentence about what makes a schema useless, for whoever has written it; null: nothing does. */
export function schemaProblem(schema: Schema): string | null {
  if (isTooDeep(schema)) return `It is nested deeper than ${DEPTH_LIMIT} levels.`;
  for (const ref of references(schema)) {
    const shown = JSON.stringify(ref.slice(0, 100));
    if (!ref.startsWith("#"))
      return `Its $ref ${shown} leads out of it, and nothing is fetched. Put what it means into $defs.`;
    if (ref.startsWith("#/") && resolve(schema, ref) === undefined) return `Its $ref ${shown} leads nowhere.`;
  }
  return null;
}

function* references(value: unknown): Generator<string, void, void> {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const each of value) yield* references(each);
    return;
  }
  for (const [key, item] of Object.entries(value)) {
    if (key === "$ref" && typeof item === "string") yield item;
    else if (BY_NAME.has(key)) yield* references(Object.values(item ?? {}));
    else if (!DATA.has(key)) yield* references(item);
  }
}

function withoutExpressions(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutExpressions);
  if (typeof value !== "object" || value === null) return value;
  // What matches a pattern is not among the others, and which that is nobody knows here.
  const open = Object.hasOwn(value, "patternProperties");
  return Object.fromEntries(
    Object.entries(value)
      .filter(
        ([key]) =>
          !UNCHECKED.has(key) &&
          !(open && (key === "additionalProperties" || key === "unevaluatedProperties")),
      )
      .map(([key, item]) => {
        if (DATA.has(key)) return [key, item];
        return [key, BY_NAME.has(key) ? eachByName(item) : withoutExpressions(item)];
      }),
  );
}

function eachByName(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withoutExpressions(item)]));
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
