import * as fc from "fast-check";
import { expect, test } from "vitest";
import { AppError } from "../../src/errors.ts";
import { readJson } from "../../src/http/body.ts";

const LIMITS = { limit: 1024, timeoutMs: 30_000 };
const encoder = new TextEncoder();

type Body = string | Uint8Array | Uint8Array[];

/** `announced`: with a content-length, as SDKs send; otherwise in pieces, as chunked requests come. */
function request(body: Body, headers: Record<string, string> = {}, announced = true): Request {
  const pieces =
    typeof body === "string" ? [encoder.encode(body)] : body instanceof Uint8Array ? [body] : body;
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = pieces.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
  });
  const init: RequestInit & { duplex: "half" } = {
    method: "POST",
    body: stream,
    duplex: "half",
    headers: {
      "content-type": "application/json",
      ...(announced ? { "content-length": String(length) } : {}),
      ...headers,
    },
  };
  return new Request("http://localhost/", init);
}

async function refusal(promise: Promise<unknown>): Promise<{ status: number; message: string }> {
  const error = await promise.then(
    () => expect.fail("was accepted"),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(AppError);
  const { status, message } = error as AppError;
  return { status, message };
}

/** Cut at arbitrary places, also inside characters and escapes. */
function cut(bytes: Uint8Array, places: number[]): Uint8Array[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at]
    .map((start, i) => bytes.slice(start, at[i] ?? bytes.length))
    .filter((piece) => piece.length > 0);
}

test("any JSON value arrives as it was sent, in one piece or many", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.jsonValue({ maxDepth: 8 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      async (value, places) => {
        const text = JSON.stringify(value);
        // The one key that is never passed on; a test of its own says so.
        const expected = JSON.parse(text, (key, entry) => (key === "__proto__" ? undefined : entry));
        const limits = { ...LIMITS, limit: 1024 * 1024 };
        expect(await readJson(request(text), limits)).toEqual(expected);
        expect(await readJson(request(cut(encoder.encode(text), places), {}, false), limits)).toEqual(
          expected,
        );
      },
    ),
  );
});

test("415: any content type but JSON in UTF-8, and any content encoding", async () => {
  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/jsonp",
    "text/json",
    "application/json; charset=latin1",
    "",
  ])
    expect(await refusal(readJson(request("{}", { "content-type": type }), LIMITS))).toMatchObject({
      status: 415,
    });
  const bare = request("{}");
  bare.headers.delete("content-type");
  expect((await refusal(readJson(bare, LIMITS))).message).toContain("has none");
  expect((await refusal(readJson(request("{}", { "content-encoding": "gzip" }), LIMITS))).status).toBe(415);
  for (const type of [
    "application/json",
    "Application/JSON; charset=UTF-8",
    "application/vnd.api+json",
    'application/json;charset="utf-8"',
  ])
    expect(await readJson(request("{}", { "content-type": type }), LIMITS)).toEqual({});
});

test("413: by what is announced, and by what arrives", async () => {
  const big = `"${"x".repeat(2000)}"`;
  expect((await refusal(readJson(request(big), LIMITS))).status).toBe(413);
  expect((await refusal(readJson(request(big, {}, false), LIMITS))).status).toBe(413);
  expect((await refusal(readJson(request(big, { "content-length": "10" }), LIMITS))).status).toBe(413);
  expect(await readJson(request(`"${"x".repeat(1022)}"`, {}, false), LIMITS)).toHaveLength(1022);
});

test("413: what is over the limit is not read on", async () => {
  let pulled = 0;
  let cancelled = false;
  const endless = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        pulled += 1;
        controller.enqueue(new Uint8Array(512).fill(32));
      },
      cancel() {
        cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  const init = {
    method: "POST",
    body: endless,
    duplex: "half",
    headers: { "content-type": "application/json" },
  };
  expect((await refusal(readJson(new Request("http://localhost/", init), LIMITS))).status).toBe(413);
  expect(cancelled).toBe(true);
  expect(pulled).toBeLessThan(5);
});

test("408: a body that does not come, announced or not", async () => {
  for (const headers of [{ "content-length": "10" }, {}] as Record<string, string>[]) {
    const silent = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) });
    const init = {
      method: "POST",
      body: silent,
      duplex: "half",
      headers: { "content-type": "application/json", ...headers },
    };
    const { status } = await refusal(
      readJson(new Request("http://localhost/", init), { limit: 1024, timeoutMs: 5 }),
    );
    expect(status).toBe(408);
  }
});

test("400: nesting over 64, counted outside of strings only", async () => {
  const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
  for (const announced of [true, false]) {
    expect((await refusal(readJson(request(nested(65), {}, announced), LIMITS))).message).toContain("64");
    expect(await readJson(request(nested(64), {}, announced), LIMITS)).toEqual(JSON.parse(nested(64)));
    const text = JSON.stringify({ a: "[".repeat(100), 'b"\\': '{\\"['.repeat(80), c: [] });
    expect(await readJson(request(text, {}, announced), LIMITS)).toEqual(JSON.parse(text));
  }
  const deep = request("[".repeat(500_000), {}, false);
  expect((await refusal(readJson(deep, { ...LIMITS, limit: 1024 * 1024 }))).status).toBe(400);
});

test("nesting is counted the same however the bytes are cut", async () => {
  const piece = fc.constantFrom('"', "\\", '\\"', "[", "{", "]", "a", "é", '":', ",");
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 60 }),
      fc.array(fc.nat(), { maxLength: 10 }),
      async (noise, places) => {
        const text = JSON.stringify({ text: noise.join(""), list: [noise] });
        const pieces = cut(encoder.encode(text), places);
        expect(await readJson(request(pieces, {}, false), { ...LIMITS, limit: 10_000 })).toEqual(
          JSON.parse(text),
        );
        const deep = `${text.slice(0, -1)},"deep":${"[".repeat(64)}${"]".repeat(64)}}`;
        const refused = readJson(request(cut(encoder.encode(deep), places), {}, false), {
          ...LIMITS,
          limit: 10_000,
        });
        expect((await refusal(refused)).message).toContain("nested");
      },
    ),
  );
});

test("400: invalid UTF-8, nothing, and what is not JSON, with its place", async () => {
  const broken = new Uint8Array([0x22, 0xc3, 0x28, 0x22]);
  expect(await refusal(readJson(request(broken), LIMITS))).toEqual({
    status: 400,
    message: "The body is not valid UTF-8.",
  });
  for (const announced of [true, false])
    expect((await refusal(readJson(request("", {}, announced), LIMITS))).message).toContain("empty");
  const cases: [string, string][] = [
    ["nope", "unexpected 'o' at position 1 (line 1, column 2)"],
    ['{"a": 1,\n "b": x}', "unexpected 'x' at position 15 (line 2, column 7)"],
    ['{"a": 1', "it ends before it is complete"],
    ['{"a" 1}', "unexpected '1' at position 5"],
    ["[1,]", "unexpected ']' at position 3"],
    ["{} {}", "unexpected '{' at position 3"],
    ["01", "unexpected '1' at position 1"],
    ['"\t"', "control character 9"],
    ['"\\x"', "unexpected 'x' at position 2"],
    ["{'a':1}", 'unexpected "\'" at position 1'],
  ];
  for (const [text, words] of cases) {
    const { status, message } = await refusal(readJson(request(text), LIMITS));
    expect(status).toBe(400);
    expect(message).toContain(words);
  }
});

test("whatever JSON.parse refuses is refused with a place, and nothing of the body but one character", async () => {
  const bite = fc.constantFrom(
    '"',
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "1",
    "-",
    ".",
    "e",
    "true",
    " ",
    "\u0000",
    "😀",
  );
  await fc.assert(
    fc.asyncProperty(fc.array(bite, { minLength: 1, maxLength: 12 }), async (bites) => {
      const text = bites.join("");
      let valid = true;
      try {
        JSON.parse(text);
      } catch {
        valid = false;
      }
      if (valid) return;
      const { status, message } = await refusal(readJson(request(text), LIMITS));
      expect(status).toBe(400);
      expect(message).toMatch(/unexpected .* at position \d+|it ends before/su);
    }),
    { numRuns: 500 },
  );
});

test("__proto__ is dropped at every depth, however it is spelled", async () => {
  const text =
    '{"a":{"__proto__":{"admin":true},"b":[{"\\u005f_proto__":1,"c":2}]},"__proto__":{"x":1},"constructor":3}';
  const value = (await readJson(request(text), LIMITS)) as Record<string, unknown>;
  expect(value).toEqual({ a: { b: [{ c: 2 }] }, constructor: 3 });
  expect(Object.getOwnPropertyNames(value.a as object)).toEqual(["b"]);
  expect((value as { x?: unknown }).x).toBeUndefined();
});

test("a body that breaks off is the client's going away", async () => {
  const cutOff = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.error(new Error("aborted")),
  });
  const init = {
    method: "POST",
    body: cutOff,
    duplex: "half",
    headers: { "content-type": "application/json" },
  };
  expect((await refusal(readJson(new Request("http://localhost/", init), LIMITS))).status).toBe(499);
});
