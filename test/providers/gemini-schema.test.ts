import fc from "fast-check";
import { expect, test } from "vitest";
import { toGeminiParameters, toGeminiSchema } from "../../src/providers/gemini-schema.ts";

test("what Gemini knows stays as it is", () => {
  const schema = {
    type: "object",
    title: "T",
    properties: {
      const: { type: "string", enum: ["a", "b"], default: { const: 1 } },
      definitions: { type: ["string", "null"], format: "date-time" },
      list: { type: "array", items: { anyOf: [{ type: "number", minimum: 1 }, { type: "null" }] } },
    },
    required: ["const"],
    additionalProperties: false,
    propertyOrdering: ["const", "list"],
  };
  expect(toGeminiSchema(schema)).toEqual(schema);
});

test("draft 07: $schema, definitions, tuples, const and true", () => {
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: {
      at: { $ref: "#/definitions/Point" },
      kind: { const: "point" },
      pair: { type: "array", items: [{ type: "number" }, true] },
      any: true,
    },
    definitions: { Point: { type: "object", properties: { x: { type: "number" } } }, Unused: {} },
  };
  const before = structuredClone(schema);
  expect(toGeminiSchema(schema)).toEqual({
    type: "object",
    properties: {
      at: { $ref: "#/$defs/Point" },
      kind: { enum: ["point"] },
      pair: { type: "array", prefixItems: [{ type: "number" }, {}] },
      any: {},
    },
    $defs: { Point: { type: "object", properties: { x: { type: "number" } } } },
  });
  expect(schema).toEqual(before);
});

test("a reference stands alone: what was beside it goes around it", () => {
  const schema = {
    type: "object",
    properties: { at: { $ref: "#/$defs/Point", description: "Where." } },
    $defs: { Point: { type: "object" } },
  };
  expect(toGeminiSchema(schema)).toEqual({
    type: "object",
    properties: { at: { description: "Where.", anyOf: [{ $ref: "#/$defs/Point" }] } },
    $defs: { Point: { type: "object" } },
  });
});

test("references into the middle of the schema, to its root, to themselves and to nowhere", () => {
  const schema = {
    type: "object",
    properties: {
      headers: { type: "object" },
      more: { $ref: "#/properties/headers" },
      child: { $ref: "#" },
      node: { $ref: "#/$defs/a~1b%20c" },
      lost: { $ref: "#/$defs/Gone", description: "Lost." },
      far: { $ref: "https://example.org/schema.json" },
    },
    $defs: { "a/b c": { type: "object", properties: { next: { $ref: "#/$defs/a~1b%20c" } } } },
  };
  const out = toGeminiSchema(schema);
  expect(out.properties).toEqual({
    headers: { type: "object" },
    more: { $ref: "#/$defs/headers" },
    child: { $ref: "#/$defs/root" },
    node: { $ref: "#/$defs/a_1b_20c" },
    lost: { description: "Lost." },
    far: {},
  });
  const definitions = out.$defs as Record<string, { properties?: unknown }>;
  expect(Object.keys(definitions).sort()).toEqual(["a_1b_20c", "headers", "root"]);
  expect(definitions.a_1b_20c?.properties).toEqual({ next: { $ref: "#/$defs/a_1b_20c" } });
});

test("a schema that is all reference shows at the top what it is", () => {
  const tree = { type: "object", properties: { left: { $ref: "#/definitions/Tree" } } };
  expect(toGeminiSchema({ $ref: "#/definitions/Tree", definitions: { Tree: tree } })).toEqual({
    type: "object",
    properties: { left: { $ref: "#/$defs/Tree" } },
    $defs: { Tree: { type: "object", properties: { left: { $ref: "#/$defs/Tree" } } } },
  });
});

test("two definitions of one name keep apart", () => {
  const out = toGeminiSchema({
    properties: { a: { $ref: "#/$defs/x/$defs/T" }, b: { $ref: "#/$defs/y/$defs/T" } },
    $defs: { x: { $defs: { T: { type: "string" } } }, y: { $defs: { T: { type: "number" } } } },
  });
  expect(out).toEqual({
    properties: { a: { $ref: "#/$defs/T" }, b: { $ref: "#/$defs/T_2" } },
    $defs: { T: { type: "string" }, T_2: { type: "number" } },
  });
});

test("parameters are an object", () => {
  expect(toGeminiParameters({})).toEqual({ type: "object", properties: {} });
  expect(toGeminiParameters({ properties: { a: true } })).toEqual({ type: "object", properties: { a: {} } });
});

test("any schema-like value: references resolve, and rewriting again changes nothing", () => {
  const leaf = fc.record({ type: fc.constantFrom("object", "string") });
  const schema = fc.memo<Record<string, unknown>>((depth) => {
    const inner: fc.Arbitrary<Record<string, unknown>> = depth > 1 ? schema() : leaf;
    return fc.record(
      {
        type: fc.constantFrom("object", "string", "array"),
        description: fc.string(),
        properties: fc.dictionary(fc.constantFrom("a", "b", "const", "$ref2", "items"), inner, {
          maxKeys: 3,
        }),
        items: fc.oneof(inner, fc.array(inner, { maxLength: 2 }), fc.boolean()),
        anyOf: fc.array(inner, { maxLength: 2 }),
        const: fc.constantFrom(1, "x", null, { $ref: "x" }),
        $ref: fc.constantFrom("#/definitions/d", "#/$defs/e", "#", "#/nowhere"),
      },
      { requiredKeys: [], noNullPrototype: true },
    );
  });
  const whole = fc.tuple(schema(3), schema(3), schema(3)).map(([root, d, e]) => {
    const { $ref: _, ...top } = root;
    return { ...top, definitions: { d }, $defs: { e } };
  });
  fc.assert(
    fc.property(whole, (value) => {
      const out = toGeminiSchema(value);
      for (const [, name] of JSON.stringify(out).matchAll(/"\$ref":"#\/\$defs\/([^"]*)"/g))
        expect(out.$defs).toHaveProperty(String(name));
      expect(toGeminiSchema(out)).toEqual(out);
    }),
  );
});
