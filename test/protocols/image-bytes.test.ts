import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkBase64, checkImage, sniff } from "../../src/protocols/image-bytes.ts";

const base64 = (bytes: readonly number[]) => btoa(String.fromCharCode(...bytes));
const ascii = (text: string) => [...text].map((char) => char.charCodeAt(0));

const HEADS: [string, number[]][] = [
  ["image/png", [0x89, ...ascii("PNG\r\n\x1a\n")]],
  ["image/jpeg", [0xff, 0xd8, 0xff, 0xe0]],
  ["image/gif", ascii("GIF89a")],
  ["image/gif", ascii("GIF87a")],
  ["image/webp", [...ascii("RIFF"), 1, 2, 3, 4, ...ascii("WEBP")]],
];

describe("the bytes tell the format", () => {
  test.each(HEADS)("%s", (type, head) => {
    fc.assert(
      fc.property(fc.array(fc.nat(255), { maxLength: 40 }), (rest) => {
        const data = base64([...head, ...rest]);
        expect(sniff(data)).toBe(type);
        expect(checkImage(type, data)).toBeNull();
        for (const [other] of HEADS)
          if (other !== type)
            expect(checkImage(other, data)).toBe(`The data is ${type}, but the media type says ${other}.`);
      }),
    );
  });

  test("image/jpg is image/jpeg, in any case", () => {
    const data = base64([0xff, 0xd8, 0xff, 0xdb]);
    expect(checkImage("image/jpg", data)).toBeNull();
    expect(checkImage("IMAGE/JPEG", data)).toBeNull();
  });

  test("base64url and lines of 76 characters count as base64", () => {
    const data = base64([0xff, 0xd8, 0xff, ...Array.from({ length: 30_000 }, (_, i) => i % 256)]);
    const lines = data.match(/.{1,76}/g)?.join("\r\n") as string;
    const url = data.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    for (const form of [data, lines, url]) expect(checkImage("image/jpeg", form)).toBeNull();
    expect(checkImage("image/jpeg", `${url.slice(0, -8)}!${url.slice(-8)}`)).toBe(
      "The data is not valid base64.",
    );
  });
});

test("what is no base64 is said to be none, and what is decodes", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.base64String(), fc.stringMatching(/^[\w+/=-]{0,30}$/)), (text) => {
      const problem = checkBase64(text);
      if (text === "") expect(problem).toBe("The data is empty.");
      else if (problem === null)
        expect(() => atob(text.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, ""))).not.toThrow();
      else expect(problem).toBe("The data is not valid base64.");
    }),
  );
  fc.assert(fc.property(fc.base64String({ minLength: 4 }), (text) => checkBase64(text) === null));
});

test("what is no picture, and formats that no provider takes", () => {
  expect(checkImage("image/png", base64(ascii("<html>")))).toBe(
    "The data is not a PNG, JPEG, GIF or WebP image.",
  );
  expect(checkImage("image/svg+xml", base64(ascii("<svg/>")))).toBe(
    'The media type "image/svg+xml" is not supported. Send image/png, image/jpeg, image/gif, image/webp.',
  );
});
