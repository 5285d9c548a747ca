/** Text in the charsets of the web, wherever they are named. */
import { describe, expect, test } from "vitest";
import { decodeText } from "../../../src/tools/web/charset.ts";

const hex = (text: string) => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
const ascii = (text: string) => new TextEncoder().encode(text);
const join = (...parts: Uint8Array[]) => Uint8Array.from(parts.flatMap((part) => [...part]));

/** Label, bytes, text. */
const SAMPLES: [string, Uint8Array, string][] = [
  ["utf-8", hex("47c3bcc3a7"), "Güç"],
  ["windows-1252", hex("47fc80"), "Gü€"],
  ["iso-8859-1", hex("e9e8"), "éè"],
  ["iso-8859-2", hex("b3f3bf"), "łóż"],
  ["iso-8859-9", hex("fdfede"), "ışŞ"],
  ["iso-8859-15", hex("a4"), "€"],
  ["windows-1251", hex("cfe5f0e0"), "Пера"],
  ["shift_jis", hex("93fa967b8cea"), "日本語"],
  ["euc-jp", hex("c6fccbdc"), "日本"],
  ["gb18030", hex("c4e3bac3"), "你好"],
  ["big5", hex("a741a66e"), "你好"],
  ["euc-kr", hex("bec8b3e7"), "안녕"],
  ["utf-16le", hex("47002d4e"), "G中"],
];

describe.each(SAMPLES)("%s", (label, bytes, text) => {
  test("named in the header", () => {
    expect(decodeText(bytes, `text/plain; charset=${label}`)).toBe(text);
    expect(decodeText(bytes, `text/html;Charset="${label.toUpperCase()}"`)).toBe(text);
  });
});

test.each(SAMPLES.filter(([label]) => !label.startsWith("utf-16")))(
  "%s named in the page",
  (label, bytes, text) => {
    for (const head of [
      `<meta charset=${label}>`,
      `<META http-equiv=content-type content='text/html; charset=${label}'>`,
      `<?xml version="1.0" encoding="${label}"?>`,
    ])
      expect(decodeText(join(ascii(head), bytes), "text/html")).toBe(head + text);
  },
);

test("a byte order mark wins over what the header says", () => {
  expect(decodeText(hex("fffe47002d4e"), "text/html; charset=utf-8")).toBe("G中");
  expect(decodeText(hex("feff00474e2d"), "text/html; charset=iso-8859-1")).toBe("G中");
  expect(decodeText(hex("efbbbf47c3bc"), "text/html; charset=iso-8859-1")).toBe("Gü");
});

test("without a name it is UTF-8 where that fits, else western", () => {
  expect(decodeText(hex("47c3bc"), "text/html")).toBe("Gü");
  expect(decodeText(hex("47fc"), "text/html")).toBe("Gü");
  expect(decodeText(hex("47002d00"), "")).toBe("G-");
  expect(decodeText(hex("0047002d"), "")).toBe("G-");
});

test("a name that nobody knows, or that cannot be right, is passed over", () => {
  expect(decodeText(hex("47c3bc"), "text/html; charset=klingon")).toBe("Gü");
  expect(decodeText(join(ascii("<meta charset=utf-16>"), hex("c3bc")), "text/html")).toBe(
    "<meta charset=utf-16>ü",
  );
});

test("a character that the sniffed part cuts is no fault", () => {
  const bytes = new Uint8Array(256 * 1024 + 1).fill(0x61);
  bytes.set([0xc3, 0xbc], 256 * 1024 - 1);
  expect(decodeText(bytes, "text/plain").at(-1)).toBe("ü");
});
