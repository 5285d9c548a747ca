/**
 * JSON Schema of any draft -> the part of it that Gemini's `parametersJsonSchema` and `responseJsonSchema` read.
 *
 * Gemini knows `$defs` but not `definitions`, `prefixItems` but not the older tuple form of `items`, `enum` but not
 * `const`, schemas but not bare `true`; and a schema with `$ref` may hold nothing else. Keywords that it does not know
 * and ignores stay. Source: the API reference of `GenerationConfig.responseJsonSchema`.
 */
import type { JsonSchema } from "../core/model.ts";

/** Keywords whose value is a map from names to schemas. */
const MAPS = new Set(["properties", "patternProperties", "dependentSchemas"]);
/** Keywords whose value is a list of schemas. */
const LISTS = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
/** Keywords whose value is one schema. */
const SINGLE = new Set([
  "items",
  "additionalProperties",
  "additionalItems",
  "contains",
  "not",
  "propertyNames",
]);

type Definitions = Record<string, unknown>;

/** Schemas that live as long as the process (the agent's own tools) are rewritten once. */
const done = new WeakMap<JsonSchema, JsonSchema>();

/** Does not change its argument. */
export function toGeminiSchema(schema: JsonSchema): JsonSchema {
  let out = done.get(schema);
  if (!out) {
    out = new Rewrite(schema).run();
    done.set(schema, out);
  }
  return out;
}

/** Function parameters have to be an object at the top. */
export function toGeminiParameters(schema: JsonSchema): JsonSchema {
  const out = toGeminiSchema(schema);
  return out.type === undefined &&
    out.$ref === undefined &&
    out.anyOf === undefined &&
    out.oneOf === undefined
    ? { ...out, type: "object", properties: out.properties ?? {} }
    : out;
}

class Rewrite {
  readonly #root: JsonSchema;
  readonly #definitions: Definitions = {};
  /** JSON pointer of a `$ref` -> its name among the definitions. */
  readonly #names = new Map<string, string>();

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  run(): JsonSchema {
    const out = this.#schema(this.#top());
    return Object.keys(this.#definitions).length > 0 ? { ...out, $defs: this.#definitions } : out;
  }

  /** Generators name the whole schema and refer to it; Gemini wants to see at the top what it is. */
  #top(): JsonSchema {
    const { $ref: pointer, ...beside } = this.#root;
    const target = typeof pointer === "string" && pointer !== "#" ? this.#resolve(pointer) : undefined;
    return isObject(target) ? { ...target, ...beside } : this.#root;
  }

  #any(value: unknown): unknown {
    if (value === true) return {};
    return isObject(value) ? this.#schema(value) : value;
  }

  #schema(schema: JsonSchema): JsonSchema {
    if (typeof schema.$ref === "string") return this.#reference(schema, schema.$ref);
    const out: JsonSchema = {};
    for (const [key, value] of Object.entries(schema)) {
      // Definitions come along when something refers to them.
      if (key === "$schema" || key === "$defs" || key === "definitions") continue;
      if (key === "const") out.enum ??= [value];
      else if (key === "items" && Array.isArray(value))
        out.prefixItems = value.map((item) => this.#any(item));
      else if (MAPS.has(key) && isObject(value)) out[key] = this.#map(value);
      else if (LISTS.has(key) && Array.isArray(value)) out[key] = value.map((item) => this.#any(item));
      else if (key === "additionalProperties" && typeof value === "boolean") out[key] = value;
      else if (SINGLE.has(key)) out[key] = this.#any(value);
      else out[key] = value;
    }
    return out;
  }

  #map(schemas: JsonSchema): JsonSchema {
    const out: JsonSchema = {};
    for (const [name, value] of Object.entries(schemas)) out[name] = this.#any(value);
    return out;
  }

  /** What stands beside a `$ref` (a description, mostly) moves to a schema around it; an `anyOf` there gives way. */
  #reference(schema: JsonSchema, pointer: string): JsonSchema {
    const { $ref: _, ...beside } = schema;
    const name = this.#name(pointer);
    if (name === undefined) return this.#schema(beside);
    delete beside.anyOf;
    const around = this.#schema(beside);
    const reference = { $ref: `#/$defs/${name}` };
    return Object.keys(around).length > 0 ? { ...around, anyOf: [reference] } : reference;
  }

  /** The definition that a pointer means, rewritten on first use; undefined when it leads nowhere in this document. */
  #name(pointer: string): string | undefined {
    const known = this.#names.get(pointer);
    if (known !== undefined) return known;
    const target = this.#resolve(pointer);
    if (!isObject(target)) return undefined;
    const last = pointer.slice(pointer.lastIndexOf("/") + 1);
    const wanted = pointer === "#" ? "root" : last.replace(/[^A-Za-z0-9_.-]/g, "_");
    let name = wanted;
    for (let n = 2; name in this.#definitions; n++) name = `${wanted}_${n}`;
    // Named before it is read, since it may refer to itself.
    this.#names.set(pointer, name);
    this.#definitions[name] = {};
    this.#definitions[name] = this.#schema(target);
    return name;
  }

  #resolve(pointer: string): unknown {
    if (!pointer.startsWith("#")) return undefined;
    let at: unknown = this.#root;
    for (const step of pointer.split("/").slice(1)) {
      if (typeof at !== "object" || at === null) return undefined;
      at = (at as Record<string, unknown>)[pointerStep(step)];
    }
    return at;
  }
}

/** One step of a JSON pointer in a URI fragment. */
function pointerStep(step: string): string {
  let text = step;
  try {
    text = decodeURIComponent(step);
  } catch {
    // Not percent-encoded, then.
  }
  return text.replaceAll("~1", "/").replaceAll("~0", "~");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
