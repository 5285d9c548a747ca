/** PDFs in a thread of their own: text by pages, and an end to every document. */
import { describe, expect, test } from "vitest";
import type { PdfLimits } from "../../src/core/platform.ts";
import { createReadPdf } from "../../src/platform/local-pdf.ts";
import { makePdf } from "./pdf.ts";

const read = createReadPdf();
const limits = (over: Partial<PdfLimits> = {}): PdfLimits => ({
  ...{ maxPages: 100, maxChars: 100_000, signal: new AbortController().signal },
  ...over,
});

describe("a document", () => {
  test("has its pages and its title", async () => {
    expect(await read(makePdf(["First page.", "Second (2)."], "A title"), limits())).toEqual({
      pages: 2,
      texts: ["First page.", "Second (2)."],
      title: "A title",
    });
  });

  test("is read as far as the limits go", async () => {
    const pdf = makePdf(Array.from({ length: 9 }, (_, i) => `Page ${i}`));
    expect(await read(pdf, limits({ maxPages: 2 }))).toMatchObject({ pages: 9, texts: ["Page 0", "Page 1"] });
    expect((await read(pdf, limits({ maxChars: 7 }))).texts).toHaveLength(2);
  });

  test("whose bytes stay the caller's", async () => {
    const pdf = makePdf(["x"]);
    await read(pdf, limits());
    expect(pdf.length).toBeGreaterThan(100);
  });

  test.each([
    ["no PDF", new TextEncoder().encode("%PDF-1.4\nnothing more")],
    ["a part of one", makePdf(["x"]).subarray(0, 60)],
    ["nothing", new Uint8Array()],
  ])("that is damaged is told as such: %s", async (_, bytes) => {
    await expect(read(bytes, limits())).rejects.toMatchObject({
      code: "invalid_request",
      message: /damaged/,
    });
  });

  test("that takes too long is given up", async () => {
    const impatient = createReadPdf(1);
    await expect(impatient(makePdf(["x"]), limits())).rejects.toThrow("took too long");
  });

  test("is left when the run is stopped", async () => {
    const controller = new AbortController();
    const reading = read(makePdf(["x"]), limits({ signal: controller.signal }));
    controller.abort(new Error("stopped"));
    await expect(reading).rejects.toThrow("stopped");
    await expect(read(makePdf(["x"]), limits({ signal: controller.signal }))).rejects.toThrow("stopped");
  });
});
