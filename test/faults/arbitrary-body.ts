/** Bodies made from the schemas that validate them: most are right, some are wrong in one place, some are no JSON. */
import fc from "fast-check";
import * as z from "zod";

// biome-ignore lint/suspicious/noExplicitAny: JSON Schema and JSON, met as they come.
type Json = any;

/** JSON that the schema accepts, as far as its keywords say it. */
export function fromSchema(schema: z.ZodType): fc.Arbitrary<Json> {
  const root = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Json;
  return build(root, root, 0);
}

const LEAVES_AT = 5;

function build(schema: Json, root: Json, depth: number): fc.Arbitrary<Json> {
  if (schema.$ref) {
    const path = schema.$ref === "#" ? [] : schema.$ref.slice(2).split("/");
    const found = path.reduce((at: Json, key: string) => at?.[key], root);
    return build(found ?? {}, root, depth + 1);
  }
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) {
    const simple = choices.filter(({ type }: Json) => type !== "object" && type !== "array");
    const usable = depth > LEAVES_AT && simple.length > 0 ? simple : choices;
    return fc.oneof(...usable.map((each: Json) => build(each, root, depth + 1)));
  }
  if (schema.allOf)
    return fc
      .tuple(...schema.allOf.map((each: Json) => build(each, root, depth + 1)))
      .map((parts: Json[]) => Object.assign({}, ...parts));
  switch (schema.type) {
    case "object":
      return buildObject(schema, root, depth);
    case "array": {
      const most = depth > LEAVES_AT ? (schema.minItems ?? 0) : Math.min(schema.maxItems ?? 3, 3);
      const minLength = Math.min(schema.minItems ?? 0, most);
      return fc.array(build(schema.items ?? {}, root, depth + 1), { minLength, maxLength: most });
    }
    case "string":
      return buildString(schema);
    case "integer":
      return fc.oneof(
        fc.integer({ min: schema.minimum ?? -5, max: Math.min(schema.maximum ?? 1_000, 1_000_000) }),
        fc.constantFrom(schema.minimum ?? 0, schema.minimum ?? 1),
      );
    case "number":
      return fc.double({ min: schema.minimum ?? -2, max: schema.maximum ?? 2, noNaN: true });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function buildObject(schema: Json, root: Json, depth: number): fc.Arbitrary<Json> {
  const required: string[] = schema.required ?? [];
  const fields: Record<string, fc.Arbitrary<Json>> = {};
  for (const [name, field] of Object.entries<Json>(schema.properties ?? {}))
    if (required.includes(name) || depth <= LEAVES_AT) fields[name] = build(field, root, depth + 1);
  const own = fc.record(fields, { requiredKeys: required.filter((name) => name in fields) });
  const extra = schema.additionalProperties;
  if (extra === false || extra === undefined || depth > LEAVES_AT) return own;
  const more = fc.dictionary(
    fc.string({ maxLength: 8 }),
    build(extra === true ? {} : extra, root, depth + 1),
    {
      maxKeys: 2,
    },
  );
  return fc.tuple(more, own).map(([others, known]) => ({ ...others, ...known }));
}

function buildString({ minLength = 0, maxLength = 40, format, pattern }: Json): fc.Arbitrary<string> {
  if (format === "uri") return fc.webUrl();
  if (pattern !== undefined && /A-Za-z0-9/.test(pattern))
    return fc.base64String({ minLength: 4, maxLength: 24 });
  return fc.string({ unit: "grapheme", minLength, maxLength: Math.max(minLength, Math.min(maxLength, 40)) });
}

/** What clients that are wrong, old or ill-meaning put where something else belongs. */
const junk: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom(null, true, 0, -1, 1e308, 2 ** 53, "", " ", [], {}, [[]], [null], { "": null }),
  fc.constantFrom("\u0000", "\ud800", "\u202e", "../../etc/passwd", "ses_x", "run_x", "data:;base64,%%%"),
  fc.constantFrom("x".repeat(70_000), Array(1_500).fill("x"), {
    __proto__: null,
    constructor: { prototype: 1 },
  }),
  fc.constant(nested(60)),
  fc.jsonValue({ maxDepth: 3 }),
);

function nested(depth: number): Json {
  let out: Json = "deep";
  for (let i = 0; i < depth; i++) out = i % 2 ? [out] : { a: out };
  return out;
}

/** Replaces, removes or adds something somewhere. */
export function mutated(body: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  const change = fc.record({
    at: fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }),
    how: fc.constantFrom("replace", "remove", "add", "double"),
    junk,
    name: fc.oneof(
      fc.constantFrom("__proto__", "constructor", "type", "role", "id"),
      fc.string({ maxLength: 10 }),
    ),
  });
  return fc.tuple(body, fc.array(change, { minLength: 1, maxLength: 3 })).map(([value, changes]) => {
    let out = structuredClone(value);
    for (const each of changes) out = changed(out, each.at, each);
    return out;
  });
}

function changed(value: Json, at: number[], how: { how: string; junk: Json; name: string }): Json {
  const [here = 0, ...further] = at;
  if (typeof value !== "object" || value === null) return structuredClone(how.junk);
  const keys = Object.keys(value);
  const key = keys[here % Math.max(1, keys.length)];
  if (further.length > 0 && key !== undefined) {
    value[key] = changed(value[key], further, how);
    return value;
  }
  if (Array.isArray(value)) {
    if (how.how === "remove") value.splice(here % Math.max(1, value.length), 1);
    else if (how.how === "double" && value.length > 0)
      value.push(structuredClone(value[here % value.length]));
    else value.push(structuredClone(how.junk));
    return value;
  }
  if (how.how === "add" || key === undefined)
    Object.defineProperty(value, how.name, {
      value: structuredClone(how.junk),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  else if (how.how === "remove") delete value[key];
  else value[key] = structuredClone(how.junk);
  return value;
}

/** As bytes: JSON, or what was to become JSON. */
export function asBytes(body: fc.Arbitrary<Json>): fc.Arbitrary<Uint8Array<ArrayBuffer>> {
  const encode = (text: string) => new TextEncoder().encode(text);
  const whole = body.map((value) => encode(JSON.stringify(value) ?? ""));
  const broken = fc.tuple(whole, fc.nat(), fc.integer({ min: 0, max: 255 })).map(([bytes, at, byte]) => {
    if (byte < 128) return bytes.slice(0, at % (bytes.length + 1));
    const out = bytes.slice();
    if (out.length > 0) out[at % out.length] = byte;
    return out;
  });
  return fc.oneof(
    { arbitrary: whole, weight: 12 },
    { arbitrary: broken, weight: 2 },
    { arbitrary: fc.uint8Array({ maxLength: 50 }).map((bytes) => new Uint8Array(bytes)), weight: 1 },
  );
}
