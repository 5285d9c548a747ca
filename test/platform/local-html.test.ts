/** Web pages read in a thread: kept for the next, ended with the time or the caller, never the end of the service. */
import { describe, expect, test } from "vitest";
import { createReadHtml } from "../../src/platform/local-html.ts";

const url = "https://site.example/";
const never = () => new AbortController().signal;
/** Takes seconds: boxes in boxes, each with little in it. */
const SLOW = `${"<div>".repeat(95)}x${"</div>".repeat(95)}`.repeat(600);

const read = createReadHtml();

test("a page is its text, and what it says about itself", async () => {
  const html = `<title>T</title><meta name="author" content="Ann"><p>Words of <b>it</b> <a href="/x">there</a>.`;
  expect(await read(html, { url, signal: never() })).toEqual({
    title: "T",
    byline: "Ann",
    site: "",
    date: "",
    text: "Words of **it** [there](https://site.example/x).",
    cut: false,
  });
});

test("many at once, each its own", async () => {
  const numbers = Array.from({ length: 20 }, (_, i) => i);
  const pages = await Promise.all(
    numbers.map((number) => read(`<p>number ${number}`, { url, signal: never() })),
  );
  expect(pages.map(({ text }) => text)).toEqual(numbers.map((number) => `number ${number}`));
});

test("others have their turn while a page is read", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 5);
  await read(`<p>${"lorem ipsum dolor sit amet <b>x</b> ".repeat(20_000)}`, { url, signal: never() });
  clearInterval(timer);
  expect(turns).toBeGreaterThan(20);
});

describe("a page that takes too long", () => {
  test("ends in a sentence, and the next one is read", async () => {
    const hasty = createReadHtml({ timeoutMs: 400 });
    await expect(hasty(SLOW, { url, signal: never() })).rejects.toThrow(
      "https://site.example/ took too long to take apart. Look for another source of it.",
    );
    const patient = createReadHtml();
    expect((await patient("<p>x", { url, signal: never() })).text).toBe("x");
  });

  test("ends with its caller, whether it is read or waits", async () => {
    const controller = new AbortController();
    const readings = [1, 2, 3].map(() => read(SLOW, { url, signal: controller.signal }));
    const after = read("<p>x", { url, signal: never() });
    controller.abort(new Error("stopped"));
    for (const reading of readings) await expect(reading).rejects.toThrow("stopped");
    expect((await after).text).toBe("x");
    await expect(read("<p>x", { url, signal: controller.signal })).rejects.toThrow("stopped");
  });
});
