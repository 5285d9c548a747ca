/** Results as models read them, and the check of structured ones. */
import { describe, expect, test } from "vitest";
import { isCheckable, outputProblem, schemaProblem } from "../../src/mcp/output-schema.ts";
import { toOutput } from "../../src/mcp/result.ts";

const PNG = "iVBORw0KGgo=";

describe("a result", () => {
  test("text, pictures, resources and links, each as what a model can read", () => {
    const output = toOutput({
      content: [
        { type: "text", text: "a\0b" },
        { type: "image", mimeType: "image/png", data: PNG },
        { type: "image", mimeType: "image/tiff", data: PNG },
        { type: "audio", mimeType: "audio/wav", data: PNG },
        {
          type: "resource_link",
          uri: "file:///x",
          name: "x",
          mimeType: "text/plain",
          description: "an\u202e x",
        },
        { type: "resource", resource: { uri: "file:///t", text: "inside" } },
        { type: "resource", resource: { uri: "file:///p", mimeType: "image/png", blob: PNG } },
        { type: "resource", resource: { uri: "file:///z", mimeType: "application/zip", blob: PNG } },
      ],
    });
    expect(output.failed).toBeUndefined();
    const image = { type: "image", source: { kind: "data", mediaType: "image/png", data: PNG } };
    expect(output.content).toEqual([
      { type: "text", text: "a\ufffdb" },
      image,
      { type: "text", text: "[image, image/tiff, 1 KiB: it cannot be shown here]" },
      { type: "text", text: "[audio, audio/wav, 1 KiB: it cannot be shown here]" },
      { type: "text", text: "[link to x: file:///x, text/plain, an x]" },
      { type: "text", text: "[file:///t]\ninside" },
      image,
      { type: "text", text: "[file:///z, application/zip, 1 KiB: it cannot be shown here]" },
    ]);
  });

  test("structured content is shown where it is all there is, and an error is one", () => {
    expect(toOutput({ content: [], structuredContent: { n: 1 } }).content).toEqual([
      { type: "text", text: '{"n":1}' },
    ]);
    expect(toOutput({ content: [], isError: true })).toEqual({
      content: [{ type: "text", text: "[the tool answered with nothing]" }],
      failed: true,
    });
  });

  test("is cut where it is too much, and says so", () => {
    const long = toOutput({
      content: [{ type: "text", text: `${"x".repeat(99_999)}\u{1f600}${"y".repeat(500)}` }],
    });
    expect(long.content).toEqual([
      { type: "text", text: "x".repeat(99_999) },
      { type: "text", text: "[502 more characters are left out]" },
    ]);
    const image = { type: "image" as const, mimeType: "image/png", data: PNG };
    const many = toOutput({ content: Array.from({ length: 21 }, () => image) });
    expect(many.content.filter(({ type }) => type === "image")).toHaveLength(20);
    expect(many.content.at(-1)).toEqual({ type: "text", text: "[one picture too many is left out]" });
    const broken = toOutput({ content: [{ ...image, data: "no base64!" }] });
    expect(broken.content[0]).toMatchObject({ type: "text" });
  });
});

describe("the check of a structured result", () => {
  const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };

  test("says what is wrong", () => {
    expect(outputProblem(schema, { n: 1 })).toBeNull();
    expect(outputProblem(schema, { n: "1" })).toContain("n");
    expect(outputProblem(schema, {})).toContain("required");
  });

  test.each(["id", "pattern", "format", "$ref", "$id", "const"])("a property may be called %s", (name) => {
    const strict = {
      type: "object",
      properties: { [name]: { type: "integer" } },
      required: [name],
      additionalProperties: false,
    };
    expect(outputProblem(strict, { [name]: 1 })).toBeNull();
    expect(outputProblem(strict, { [name]: "one" })).toContain("integer");
    expect(outputProblem(strict, { [name]: 1, other: 2 })).toContain("other");
  });

  test("data is no schema, and what matches a pattern is none of the others", () => {
    expect(outputProblem({ const: { id: 1 } }, { id: 1 })).toBeNull();
    expect(outputProblem({ enum: [{ format: "x" }] }, {})).not.toBeNull();
    const patterns = { patternProperties: { "^x": { type: "integer" } }, additionalProperties: false };
    expect(outputProblem(patterns, { x1: 1 })).toBeNull();
  });

  test("what makes a schema useless is said; one that refers to itself is fine, and not held against answers", () => {
    const deep = JSON.parse(`${'{"items":'.repeat(100_000)}{}${"}".repeat(100_000)}`);
    expect(schemaProblem(deep)).toContain("64");
    expect(outputProblem(deep, [])).toBeNull();
    expect(schemaProblem({ properties: { a: { $ref: "https://example.com/a.json" } } })).toContain(
      "example.com",
    );
    expect(schemaProblem({ $ref: "#/$defs/a" })).toContain("nowhere");
    expect(schemaProblem({ properties: { $ref: { type: "string" } } })).toBeNull();
    expect(schemaProblem({ $ref: "#/$defs/a", $defs: { a: { type: "string" } } })).toBeNull();
    const tree = { properties: { children: { items: { $ref: "#" } } } };
    expect([schemaProblem(tree), isCheckable(tree), isCheckable(schema)]).toEqual([null, false, true]);
  });

  test("E6: ends, whatever the schema: expressions are not run, and what has no end is not begun", () => {
    const slow = {
      type: "object",
      properties: { t: { type: "string", pattern: "^(a+)+$", format: "email" } },
    };
    const began = performance.now();
    expect(outputProblem(slow, { t: `${"a".repeat(50_000)}!` })).toBeNull();
    const doubling = Object.fromEntries(
      Array.from({ length: 40 }, (_, n) => [
        `d${n}`,
        { allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
      ]),
    );
    expect(outputProblem({ $ref: "#/$defs/d0", $defs: doubling }, {})).toBeNull();
    expect(outputProblem({ $ref: "#" }, {})).toBeNull();
    expect(performance.now() - began).toBeLessThan(500);
  });
});
