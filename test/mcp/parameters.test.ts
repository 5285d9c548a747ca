/** Schemas of strangers, as every provider takes them. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toParameters } from "../../src/mcp/parameters.ts";

describe("a schema for all providers", () => {
  test("keeps what it says", () => {
    const schema = {
      type: "object",
      properties: {
        path: { type: "string", description: "Where.", minLength: 1, pattern: "^/" },
        mode: { enum: ["a", "b"], default: "a" },
        list: { type: "array", items: { $ref: "#/$defs/item" } },
      },
      required: ["path"],
      additionalProperties: false,
      $defs: { item: { type: ["string", "null"] } },
    };
    expect(toParameters({ $schema: "http://json-schema.org/draft-07/schema#", ...schema })).toEqual(schema);
  });

  test("is an object at the top, whatever it was", () => {
    expect(toParameters({})).toEqual({ type: "object", properties: {} });
    expect(toParameters({ type: "string", required: ["gone"] })).toEqual({ type: "object", properties: {} });
    const either = {
      anyOf: [
        { properties: { a: { type: "string" } }, required: ["a"] },
        { properties: { b: { type: "number" } }, required: ["b"] },
      ],
    };
    expect(toParameters(either)).toEqual({
      type: "object",
      properties: { a: { type: "string" }, b: { type: "number" } },
    });
    const all = {
      allOf: [{ properties: { a: {} }, required: ["a"] }],
      properties: { b: {} },
      required: ["b"],
    };
    expect(toParameters(all)).toEqual({ type: "object", properties: { a: {}, b: {} }, required: ["b", "a"] });
    const named = {
      $ref: "#/definitions/Args",
      definitions: { Args: { properties: { a: {} }, required: ["a"] } },
    };
    expect(toParameters(named)).toMatchObject({ properties: { a: {} }, required: ["a"] });
  });

  test("loses what draft 2020-12 does not know, or knows otherwise", () => {
    const old = {
      properties: {
        n: { type: "number", minimum: 0, exclusiveMinimum: true, required: true },
        t: { type: "any", format: 7, items: [{ type: "string" }, { type: "number" }] },
        r: { $ref: "https://elsewhere.example/schema.json", description: "far" },
      },
    };
    expect(toParameters(old).properties).toEqual({
      n: { type: "number", minimum: 0 },
      t: { prefixItems: [{ type: "string" }, { type: "number" }] },
      r: { description: "far" },
    });
  });

  test("shows nothing that is not seen", () => {
    const hidden = {
      properties: { a: { description: "do\u200b it\u202e now\u{e0041}", enum: ["x\u2066y"] } },
    };
    expect(toParameters(hidden).properties).toEqual({ a: { description: "do it now", enum: ["xy"] } });
  });

  test("a name of an argument that providers refuse is a sentence", () => {
    expect(() => toParameters({ properties: { "a b": {} } })).toThrow(
      'models cannot be given its argument "a b"',
    );
  });

  test("any JSON becomes one, or is refused with a sentence", () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.oneof(
            fc.constantFrom("properties", "anyOf", "items", "type", "required", "$ref", "__proto__"),
            fc.string(),
          ),
          fc.jsonValue(),
        ),
        (schema) => {
          try {
            const out = toParameters(schema as Record<string, unknown>);
            expect(out.type).toBe("object");
            expect(Object.getPrototypeOf(out.properties)).toBe(Object.prototype);
            for (const word of ["anyOf", "oneOf", "allOf", "$ref"]) expect(out).not.toHaveProperty([word]);
          } catch (error) {
            expect((error as Error).message).toContain("models cannot be given its argument");
          }
        },
      ),
    );
  });
});
