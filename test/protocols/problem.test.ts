import { expect, test } from "vitest";
import * as z from "zod";
import { AppError } from "../../src/errors.ts";
import { fieldName, parseWire } from "../../src/protocols/problem.ts";

const schema = z.looseObject({
  name: z.string().min(1),
  items: z.array(z.union([z.string(), z.looseObject({ id: z.int(), tags: z.array(z.string()).min(1) })])),
  mode: z.enum(["fast", "slow"]).nullish(),
  shape: z
    .discriminatedUnion("type", [
      z.looseObject({ type: z.literal("circle"), radius: z.number().max(9) }),
      z.looseObject({ type: z.literal("text"), value: z.union([z.string(), z.null()]) }),
    ])
    .nullish(),
  weights: z.record(z.string(), z.number()).nullish(),
});

const good = { name: "n", items: ["a", { id: 1, tags: ["x"] }] };

function failure(body: unknown): AppError {
  try {
    parseWire(schema, body);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

test("a good body comes back whole, unknown fields included", () => {
  expect(parseWire(schema, { ...good, other: [1] })).toEqual({ ...good, other: [1] });
});

test.each<[string, unknown, string | undefined, string]>([
  ["no object", null, undefined, "The request body has to be an object, but it is null."],
  ["an array", [], undefined, "The request body has to be an object, but it is an array."],
  ["a missing field", { items: [] }, "name", "name is missing; it has to be a string."],
  ["a wrong type", { ...good, name: 3 }, "name", "name has to be a string, but it is 3."],
  [
    "an empty string",
    { ...good, name: "" },
    "name",
    "name has to have at least 1 character, but it is empty.",
  ],
  [
    "a value that fits no alternative",
    { ...good, items: ["a", 4] },
    "items[1]",
    "items[1] has to be a string or an object, but it is 4.",
  ],
  [
    "a fault deep in the alternative that was meant",
    { ...good, items: [{ id: 1, tags: [7] }] },
    "items[0].tags[0]",
    "items[0].tags[0] has to be a string, but it is 7.",
  ],
  [
    "an empty list in an alternative",
    { ...good, items: [{ id: 1, tags: [] }] },
    "items[0].tags",
    "items[0].tags has to hold at least 1 entry, but it is empty.",
  ],
  [
    "a fraction",
    { ...good, items: [{ id: 1.5, tags: ["x"] }] },
    "items[0].id",
    "items[0].id has to be a whole number, but it is 1.5.",
  ],
  [
    "a word that is none of those",
    { ...good, mode: "warp" },
    "mode",
    'mode has to be "fast" or "slow", but it is "warp".',
  ],
  [
    "an unknown kind",
    { ...good, shape: { type: "cube" } },
    "shape.type",
    'shape.type has to be "circle" or "text", but it is "cube".',
  ],
  [
    "no kind",
    { ...good, shape: {} },
    "shape.type",
    'shape.type is missing; it has to be "circle" or "text".',
  ],
  [
    "too large",
    { ...good, shape: { type: "circle", radius: 10 } },
    "shape.radius",
    "shape.radius has to be at most 9, but it is 10.",
  ],
  [
    "null as an alternative",
    { ...good, shape: { type: "text", value: true } },
    "shape.value",
    "shape.value has to be a string or null, but it is true.",
  ],
  [
    "a key that is no name",
    { ...good, weights: { "a b": "x" } },
    'weights["a b"]',
    'weights["a b"] has to be a number, but it is a string.',
  ],
])("%s", (_, body, param, message) => {
  const error = failure(body);
  expect({ code: error.code, status: error.status, param: error.param, message: error.message }).toEqual({
    code: "invalid_request",
    status: 400,
    param,
    message,
  });
});

test("a long value is not repeated whole", () => {
  expect(failure({ ...good, mode: "x".repeat(5000) }).message.length).toBeLessThan(200);
});

test("fields are written as a program would reach them", () => {
  expect(fieldName(["messages", 2, "content", 0, "image_url", "url"])).toBe(
    "messages[2].content[0].image_url.url",
  );
});
