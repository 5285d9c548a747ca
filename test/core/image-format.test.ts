import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { imageType, readImage } from "../../src/core/image-format.ts";
import { join, PICTURES, PNG, pictureNamed, pngOf } from "../knowledge/pictures.ts";

const why = (bytes: Uint8Array) => (readImage(bytes) as { why?: string }).why;

describe.each(PICTURES)("E3: a real $name", ({ type, bytes }) => {
  test("is what it is", () => {
    expect(readImage(bytes)).toEqual({ type, width: 7, height: 5 });
    expect(imageType(bytes.subarray(0, 12))).toBe(type);
  });

  test("cut anywhere, it is no image any more", () => {
    for (let length = 0; length < bytes.length; length++)
      expect([length, "problem" in readImage(bytes.subarray(0, length))]).toEqual([length, true]);
  });

  test.each([
    ["a page", "<html><script>alert(1)</script></html>"],
    ["an archive", "PK\x03\x04"],
    ["one byte", "x"],
  ])("with %s behind its end it is not whole", (_, tail) => {
    expect(why(join(bytes, tail))).toMatch(/follow behind its end|complete|longer than itself/);
  });

  test("read as a view of something larger it is the same", () => {
    const inside = join("abc", bytes, "def").subarray(3, 3 + bytes.length);
    expect(readImage(inside)).toEqual({ type, width: 7, height: 5 });
  });

  test("with any byte changed it is read or refused, and never breaks the reader", () => {
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), (at, byte) => {
        const changed = bytes.slice();
        changed[at] = byte;
        const read = readImage(changed);
        if (!("problem" in read)) expect(read.width * read.height).toBeGreaterThan(0);
      }),
    );
  });
});

test("the header says how large it is, whatever follows", () => {
  expect(readImage(pngOf(30_000, 30_000))).toMatchObject({ width: 30_000, height: 30_000 });
  expect(why(pngOf(0, 5))).toBe("its header gives it no size");
});

test("a GIF is as large as its largest frame", () => {
  const gif = pictureNamed("gif").slice();
  const frame = gif.findLastIndex((byte, at) => byte === 0x2c && gif[at + 5] === 7 && gif[at + 7] === 5);
  new DataView(gif.buffer).setUint16(frame + 5, 40_000, true);
  expect(readImage(gif)).toMatchObject({ width: 40_000, height: 5 });
});

test("what cameras put behind a JPEG is taken: zeros, and more pictures", () => {
  const jpeg = pictureNamed("jpeg");
  const twice = join(jpeg, jpeg, new Uint8Array(16));
  expect(readImage(twice)).toMatchObject({ type: "image/jpeg" });
  expect(why(join(jpeg, jpeg.subarray(0, 100)))).toBe("it ends before it is complete");
});

test("headers without a picture are no image", () => {
  const end = PNG.subarray(PNG.length - 12);
  expect(why(join(PNG.subarray(0, 33), end))).toBe("it has no picture in it");
  expect(why(join("\x89PNG\r\n\x1a\n"))).toBeUndefined();
  expect(why(join(new Uint8Array([0xff, 0xd8, 0xff, 0xd9])))).toBe("it has no picture in it");
  expect(why(join("GIF89a/*", new Uint8Array(20), "*/=1;alert(1)"))).toBeDefined();
});

test("what is none of the four is none", () => {
  for (const text of ["", "#!/bin/sh\n", "<svg xmlns='http://www.w3.org/2000/svg'/>", "%PDF-1.7", "BM6"])
    expect(readImage(join(text))).toEqual({ problem: "none" });
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void readImage(bytes)));
});

describe("E3: a size that another header hides counts", () => {
  const large = { width: 30_000, height: 30_000 };
  const big = (bytes: number[]) => Uint8Array.from(bytes);
  /** 30,000, and 29,999 in three bytes, little-endian. */
  const WIDE = [0x75, 0x30];
  const LESS_ONE = [0x2f, 0x75, 0];

  test("a frame of an animated PNG", () => {
    const size = [0, 0, ...WIDE];
    const frame = join(big([0, 0, 0, 26]), "fcTL", big([0, 0, 0, 1, ...size, ...size]), new Uint8Array(18));
    expect(readImage(join(PNG.subarray(0, 33), frame, PNG.subarray(33)))).toMatchObject(large);
  });

  test("a second header of a PNG is none", () => {
    const twice = join(PNG.subarray(0, 33), pngOf(30_000, 30_000).subarray(8));
    expect(why(twice)).toBe("it has a second header");
  });

  test("the number of lines that a JPEG says behind its picture", () => {
    const jpeg = pictureNamed("jpeg");
    const lines = big([0xff, 0xdc, 0, 4, ...WIDE]);
    const whole = join(jpeg.subarray(0, -2), lines, jpeg.subarray(-2));
    expect(readImage(whole)).toMatchObject({ width: 7, height: 30_000 });
  });

  test("a picture behind the first of a JPEG", () => {
    const jpeg = pictureNamed("jpeg");
    const second = jpeg.slice();
    const frame = second.findIndex(
      (byte, at) => byte === 0xff && (second[at + 1] === 0xc0 || second[at + 1] === 0xc2),
    );
    second.set([...WIDE, ...WIDE], frame + 5);
    expect(readImage(join(jpeg, second))).toMatchObject(large);
  });

  test("a frame of an animated WebP, and a picture before the canvas", () => {
    const riff = (...chunks: Uint8Array[]) => {
      const body = join("WEBP", ...chunks);
      const length = new Uint8Array(4);
      new DataView(length.buffer).setUint32(0, body.length, true);
      return join("RIFF", length, body);
    };
    const canvas = join("VP8X", big([10, 0, 0, 0, 2, 0, 0, 0, 6, 0, 0, 4, 0, 0]));
    const frame = join("ANMF", big([16, 0, 0, 0, ...Array(6).fill(0), ...LESS_ONE, ...LESS_ONE, 0, 0, 0, 0]));
    expect(readImage(riff(canvas, frame))).toMatchObject(large);
    const picture = join("VP8 ", big([10, 0, 0, 0, 0x30, 1, 0, 0x9d, 1, 0x2a, 0xff, 0x3f, 0xff, 0x3f]));
    expect(readImage(riff(picture, canvas))).toMatchObject({ width: 16_383, height: 16_383 });
  });
});
