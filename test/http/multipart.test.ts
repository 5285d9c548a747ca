import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { boundaryOf, parseForm } from "../../src/http/multipart.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

async function written(form: FormData): Promise<{ boundary: string; body: Uint8Array }> {
  const response = new Response(form);
  const boundary = boundaryOf(response.headers.get("content-type"));
  return { boundary, body: new Uint8Array(await response.arrayBuffer()) };
}

test("what the platform writes comes back byte for byte", async () => {
  const name = fc.stringMatching(/^[\w -]{1,20}$/);
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 100 }),
    // What looks like the form itself.
    fc.constantFrom("\r\n--", "--", "\r\n\r\n", "-".repeat(40), "").map(bytes),
  );
  const field = fc.record({ name, content: piece, filename: fc.option(name) });
  await fc.assert(
    fc.asyncProperty(fc.array(field, { minLength: 1, maxLength: 6 }), async (fields) => {
      const form = new FormData();
      for (const { name, content, filename } of fields)
        if (filename === null) form.append(name, "text");
        else form.append(name, new Blob([content as Uint8Array<ArrayBuffer>]), filename);
      const { boundary, body } = await written(form);
      expect(parseForm(body, boundary)).toEqual(
        fields.map(({ name, content, filename }) =>
          filename === null
            ? { name, filename: undefined, bytes: bytes("text") }
            : { name, filename, bytes: content },
        ),
      );
    }),
  );
});

const part = (name: string, text: string) =>
  `--b\r\nContent-Disposition: form-data; name="${name}"; filename=x\r\n\r\n${text}\r\n`;

test("preamble, blanks behind boundaries and an epilogue do not matter", () => {
  const form = bytes(`hello\r\n${part("a", "1").replace("--b", "--b \t")}${part("b", "2")}--b--\r\nbye`);
  expect(parseForm(form, "b").map((each) => each.name)).toEqual(["a", "b"]);
});

test("a longer boundary inside is content", () => {
  const [only] = parseForm(bytes(`${part("a", "1\r\n--bc\r\n--b-\r\n2")}--b--`), "b");
  expect(new TextDecoder().decode(only?.bytes)).toBe("1\r\n--bc\r\n--b-\r\n2");
});

describe("no form", () => {
  test.each([
    ["nothing", "", "its boundary is not in it"],
    ["JSON", '{"file":1}', "its boundary is not in it"],
    ["cut in a part", part("a", "1"), "it ends before its last boundary"],
    ["a part without headers", "--b\r\n\r\nx\r\n--b--", "a part has no headers, or too many"],
    ["a part without a name", "--b\r\nContent-Type: x/y\r\n\r\nx\r\n--b--", "a part does not say its name"],
    ["headers without end", `--b\r\n${"x".repeat(9_000)}\r\n\r\n\r\n--b--`, "a part has no headers"],
    ["many parts", `${part("a", "1").repeat(21)}--b--`, "it has more than 20 parts"],
  ])("%s", (_, text, why) => {
    expect(() => parseForm(bytes(text), "b")).toThrow(why);
  });

  test("whatever comes, it is a form or a sentence", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("--b", "\r\n", "--", "-", "\r", "\n", ": ", "x", " ", 'name="a"'), {
          maxLength: 40,
        }),
        (pieces) => {
          try {
            parseForm(bytes(pieces.join("")), "b");
          } catch (error) {
            expect(error).toMatchObject({ code: "invalid_request" });
          }
        },
      ),
    );
  });

  test("ten mebibytes of anything are gone through at once", () => {
    for (const unit of ["-", "\r\n-", "\r\n--bound", "\r\n--boundary-", "x"]) {
      const body = bytes(unit.repeat(Math.ceil((10 * 1024 * 1024) / unit.length)));
      // What takes more than one look at each byte does not end within the test's time.
      expect(() => parseForm(body, "boundary-of-it")).toThrow("form");
    }
  });
});

test("the content type", () => {
  expect(boundaryOf('multipart/form-data; charset=utf-8; boundary="a b;c"')).toBe("a b;c");
  expect(boundaryOf("Multipart/Form-Data;boundary=abc ")).toBe("abc");
  for (const type of [null, "application/json", "multipart/mixed; boundary=a", "text/plain"])
    expect(() => boundaryOf(type)).toThrow("multipart/form-data");
  for (const type of ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; x=y"])
    expect(() => boundaryOf(type)).toThrow("names no boundary");
});
