/**
 * The schema of a server's tool -> one that every provider takes. A single schema that a provider refuses fails the whole
 * request, with the tools of everybody else in it.
 *
 * Anthropic validates against draft 2020-12 and takes property names of up to 64 `A-Za-z0-9_.-`; OpenAI and Anthropic want
 * an object at the top, without `anyOf`, `oneOf` or `allOf` there. What Gemini wants besides is its adapter's work.
 */
import { plainText } from "./plain-text.ts";

type Schema = Record<string, unknown>;

const DESCRIPTION_LIMIT = 2_000;
const PROPERTY = /^[A-Za-z0-9_.-]{1,64}$/;
const TYPES = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);
/** Keywords by what they have to be; one that is something else says nothing and is left out. */
const MAPS = new Set(["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"]);
const LISTS = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const SINGLE = new Set([
  ...["items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "not"],
  ...["propertyNames", "if", "then", "else"],
]);
const NUMBERS = new Set(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]);
const COUNTS = new Set([
  ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
  ...["minContains", "maxContains"],
]);
const TEXTS = new Set(["title", "description", "format", "contentEncoding", "contentMediaType"]);
const FREE = new Set(["default", "const", "examples"]);
const FLAGS = new Set(["uniqueItems", "readOnly", "writeOnly", "deprecated"]);

/** Throws an Error with a sentence for a schema that cannot be made fit. */
export function toParameters(schema: Schema): Schema {
  const { $schema: _, ...top } = clean(schema);
  const merged = mergeTop(top);
  const properties = isObject(merged.properties) ? merged.properties : {};
  const odd = Object.keys(properties).find((name) => !PROPERTY.test(name));
  if (odd !== undefined)
    throw new Error(`models cannot be given its argument ${JSON.stringify(odd.slice(0, 80))}`);
  const required = Array.isArray(merged.required)
    ? merged.required.filter((name) => Object.hasOwn(properties, name as string))
    : [];
  const { required: __, ...rest } = merged;
  return { ...rest, type: "object", properties, ...(required.length > 0 ? { required } : {}) };
}

/** Alternatives at the top become one object that has the members of all. What they share is required. */
function mergeTop(schema: Schema): Schema {
  const { anyOf, oneOf, allOf, not: _, if: __, then: ___, else: ____, $ref, ...rest } = schema;
  const target = typeof $ref === "string" ? resolve(schema, $ref) : undefined;
  const every = [...(isObject(target) ? [target] : []), ...listOf(allOf)];
  const some = [...listOf(anyOf), ...listOf(oneOf)];
  if (every.length === 0 && some.length === 0) return rest;
  const properties: Schema = {};
  for (const part of [...some, ...every, rest])
    if (isObject(part.properties)) Object.assign(properties, part.properties);
  const required = new Set([rest, ...every].flatMap(requiredOf));
  return { ...rest, properties, required: [...required] };
}

function listOf(value: unknown): Schema[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function requiredOf(schema: Schema): string[] {
  return Array.isArray(schema.required) ? (schema.required as string[]) : [];
}

function resolve(root: Schema, pointer: string): unknown {
  if (!pointer.startsWith("#/")) return undefined;
  let at: unknown = root;
  for (const step of pointer.slice(2).split("/")) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

/** Depth is bounded by what a definition may have. */
function clean(schema: Schema): Schema {
  const out: Schema = {};
  for (const [key, value] of Object.entries(schema)) {
    const kept = cleanMember(key, value);
    if (kept === undefined) continue;
    if (key === "items" && Array.isArray(value)) out.prefixItems ??= kept;
    else out[key] = kept;
  }
  return out;
}

/** undefined: says nothing that a provider understands, or says it wrongly. */
function cleanMember(key: string, value: unknown): unknown {
  if (TEXTS.has(key)) return typeof value === "string" ? plainText(value, DESCRIPTION_LIMIT) : undefined;
  if (key === "type") return cleanType(value);
  if (key === "enum") return Array.isArray(value) && value.length > 0 ? value.map(cleanValue) : undefined;
  if (key === "required")
    return Array.isArray(value) && value.every((name) => typeof name === "string")
      ? [...new Set(value)]
      : undefined;
  if (key === "pattern") return typeof value === "string" ? value : undefined;
  // A reference out of the schema leads nowhere, and providers refuse it.
  if (key === "$ref") return typeof value === "string" && value.startsWith("#") ? value : undefined;
  if (MAPS.has(key))
    return isObject(value)
      ? Object.fromEntries(
          Object.entries(value)
            .filter(([name]) => name !== "__proto__")
            .map(([name, item]) => [name, cleanSchema(item)]),
        )
      : undefined;
  if (LISTS.has(key) || (key === "items" && Array.isArray(value)))
    return Array.isArray(value) && value.length > 0 ? value.map(cleanSchema) : undefined;
  if (SINGLE.has(key)) return isObject(value) || typeof value === "boolean" ? cleanSchema(value) : undefined;
  if (NUMBERS.has(key)) return typeof value === "number" ? value : undefined;
  if (key === "multipleOf") return typeof value === "number" && value > 0 ? value : undefined;
  if (COUNTS.has(key)) return Number.isSafeInteger(value) && (value as number) >= 0 ? value : undefined;
  if (FLAGS.has(key)) return typeof value === "boolean" ? value : undefined;
  if (FREE.has(key)) return cleanValue(value);
  return undefined;
}

function cleanSchema(value: unknown): unknown {
  if (typeof value === "boolean") return value;
  return isObject(value) ? clean(value) : {};
}

function cleanType(type: unknown): unknown {
  if (typeof type === "string") return TYPES.has(type) ? type : undefined;
  if (!Array.isArray(type)) return undefined;
  const known = [...new Set(type.filter((name) => TYPES.has(name as string)))];
  return known.length > 0 ? known : undefined;
}

function cleanValue(value: unknown): unknown {
  if (typeof value === "string") return plainText(value, DESCRIPTION_LIMIT);
  if (Array.isArray(value)) return value.map(cleanValue);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cleanValue(item)]));
}

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
