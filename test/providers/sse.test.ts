import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type SseEvent, SseParser } from "../../src/providers/sse.ts";

const encoder = new TextEncoder();

function parse(...pieces: (string | Uint8Array)[]): SseEvent[] {
  const parser = new SseParser();
  const out: SseEvent[] = [];
  for (const piece of pieces) parser.push(typeof piece === "string" ? encoder.encode(piece) : piece, out);
  return out;
}

/** The specification's algorithm, line by line, over a whole text. */
function reference(stream: string): SseEvent[] {
  const out: SseEvent[] = [];
  let data = "";
  let event = "";
  const lines = stream.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/);
  lines.pop();
  for (const line of lines) {
    if (line === "") {
      if (data !== "") out.push({ event, data: data.slice(0, -1) });
      data = "";
      event = "";
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data += `${value}\n`;
    else if (field === "event") event = value;
  }
  return out;
}

describe("lines", () => {
  test.each([
    ["data: a\n\n", [{ event: "", data: "a" }]],
    ["event: ping\ndata: {}\n\n", [{ event: "ping", data: "{}" }]],
    ["data:a\ndata:  b\n\n", [{ event: "", data: "a\n b" }]],
    [": comment\nid: 1\nretry: 5\n\ndata: a\r\n\r\n", [{ event: "", data: "a" }]],
    [
      "data: a\r\rdata: b\r\r",
      [
        { event: "", data: "a" },
        { event: "", data: "b" },
      ],
    ],
    ["data\n\n", [{ event: "", data: "" }]],
    ["dataset: x\n\n", []],
    ["event: lost\n\ndata: a\n\n", [{ event: "", data: "a" }]],
    ["data: never ended\n", []],
    ["\uFEFFdata: a\n\n", [{ event: "", data: "a" }]],
  ])("%j", (stream, events) => {
    expect(parse(stream)).toEqual(events);
    expect(reference(stream)).toEqual(events);
  });
});

test("property: any stream, split anywhere, reads as the specification says", () => {
  const line = fc.oneof(
    fc.constantFrom(
      "data",
      "data:",
      "data: x",
      "data:y",
      "event: e",
      "event:",
      "id: 3",
      ": c",
      "",
      "dat",
      "data : z",
    ),
    fc.string({ unit: "binary", maxLength: 12 }).map((value) => `data: ${value.replace(/[\r\n]/g, "")}`),
  );
  const stream = fc
    .array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r")), { maxLength: 30 })
    .map((lines) => lines.map(([text, end]) => text + end).join(""));
  fc.assert(
    fc.property(stream, fc.array(fc.nat(), { maxLength: 20 }), (value, cuts) => {
      const bytes = encoder.encode(value);
      const edges = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
        (a, b) => a - b,
      );
      const pieces = edges.slice(1).map((end, i) => bytes.subarray(edges[i], end));
      // What a decoder makes of lone surrogates is what stands in the bytes.
      expect(parse(...pieces)).toEqual(
        reference(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)),
      );
    }),
    { numRuns: 2_000 },
  );
});

test("an event without end is given up at its limit", () => {
  const parser = new SseParser();
  const piece = encoder.encode("x".repeat(8 * 1024 * 1024));
  parser.push(encoder.encode("data: "), []);
  const push = () => {
    for (let i = 0; i < 5; i++) parser.push(piece, []);
  };
  expect(push).toThrow(expect.objectContaining({ code: "upstream_unreachable" }));
});
