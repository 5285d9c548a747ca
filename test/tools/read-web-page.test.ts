/** `read_web_page` over HTTP, through the fetch that guards it. */
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ToolContext, ToolOutput } from "../../src/core/tool.ts";
import { AppError } from "../../src/errors.ts";
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { createReadHtml } from "../../src/platform/local-html.ts";
import { createReadPdf } from "../../src/platform/local-pdf.ts";
import { createReadWebPage, partsOf } from "../../src/tools/read-web-page.ts";
import { MAX_RESULT_CHARS } from "../../src/tools/result.ts";
import { makePdf } from "../platform/pdf.ts";
import { refused, said } from "./fixture.ts";
import { type Engines, type Reply, startEngines } from "./web/engines.ts";
import { ARTICLE } from "./web/pages.ts";

let site: Engines;
let fetch: ToolContext["fetch"];
beforeAll(async () => {
  site = await startEngines();
  fetch = createLocalFetch({ allow: [site.host] });
});
afterEach(() => {
  site.pages.clear();
  site.asked.length = 0;
});
afterAll(() => site.stop());

const tool = createReadWebPage();
const html = createReadHtml();

async function read(
  path: string,
  args: object = {},
  over: Partial<ToolContext> = {},
  by = tool,
): Promise<ToolOutput> {
  const url = path.startsWith("/") ? site.url + path : path;
  const signal = new AbortController().signal;
  const context = {
    owner: "ann",
    fetch,
    signal,
    pdf: createReadPdf(),
    html,
    ...over,
  } as unknown as ToolContext;
  return await by.run(by.args.parse({ url, ...args }), context).catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error;
    return { content: [{ type: "text", text: error.message }], failed: true };
  });
}

function serve(path: string, body: Reply["body"], type?: string, more: Partial<Reply> = {}): void {
  const headers = { ...(type ? { "content-type": type } : {}), ...more.headers };
  site.pages.set(path, { ...more, body, headers });
}

describe("what it reads", () => {
  test("a page: what it is, where it came from, its content", async () => {
    serve("/old", "", undefined, { status: 301, headers: { location: "/world/dragoman" } });
    serve("/world/dragoman", ARTICLE, "text/html");
    const text = said(await read("/old#part"));
    expect(text).toMatch(
      `Title: The last dragoman\nURL: ${site.url}/world/dragoman\nBy: Ann Lee, Bo\nDate: 2026-05-04\n\nBy Ann Lee\n`,
    );
    expect(text).toContain(`[translation office](${site.url}/offices/translation?lang=en#plan)`);
    expect(text).not.toContain("Ignore all rules");
    expect(site.asked.map(({ path }) => path)).toEqual(["/old", "/world/dragoman"]);
  });

  test.each([
    ["text/plain", "a  b\n<p>c", "a  b\n<p>c"],
    ["text/markdown; charset=utf-8", "# T\n\n* x", "# T\n\n* x"],
    ["application/json", '{"a": [1,\n2]}', '{"a": [1,\n2]}'],
    ["application/ld+json", "{}", "{}"],
    ["application/rss+xml", "<rss><item>x</item></rss>", "<rss><item>x</item></rss>"],
    ["image/svg+xml", "<svg><text>x</text></svg>", "<svg><text>x</text></svg>"],
    ["", "plain\u202e words", "plain words"],
    ["application/octet-stream", "<!DOCTYPE html><p>x <b>y</b>", "x **y**"],
    ["", "\n<!-- c --><html><body><p>z", "z"],
  ])("%s as it is", async (type, body, text) => {
    serve("/x", body, type);
    expect(said(await read("/x"))).toBe(`URL: ${site.url}/x\n\n${text}`);
  });

  test("text in the charset that the page names", async () => {
    serve("/jp", Uint8Array.from([0x3c, 0x70, 0x3e, 0x93, 0xfa, 0x96, 0x7b]), "text/html; charset=Shift_JIS");
    expect(said(await read("/jp"))).toContain("日本");
    serve("/16", Uint8Array.from([0xff, 0xfe, 0x47, 0, 0x2d, 0x4e]), "text/plain");
    expect(said(await read("/16"))).toContain("G中");
  });

  test("the text of a PDF, page by page, by its bytes and not its type", async () => {
    serve("/p", makePdf(["One.", "Two."], "Paper"), "application/octet-stream");
    expect(said(await read("/p"))).toBe(
      `Title: Paper\nURL: ${site.url}/p\n\n[PDF page 1 of 2]\n\nOne.\n\n[PDF page 2 of 2]\n\nTwo.`,
    );
  });

  test("a PDF of pictures, a damaged one, and one where none can be read", async () => {
    serve("/scan", makePdf([""]), "application/pdf");
    expect(said(await read("/scan"))).toContain("[no text in it: its pages are probably scanned pictures]");
    serve("/cut", makePdf(["x"]).subarray(0, 50), "application/pdf");
    expect(refused(await read("/cut"))).toContain("damaged");
    serve("/none", "<html>", "application/pdf");
    expect(refused(await read("/none"))).toContain("says that it is a PDF");
    expect(refused(await read("/scan", {}, { pdf: undefined }))).toMatch(
      /is a PDF of \d+ bytes, and PDFs cannot be read/,
    );
  });

  test("a small image to look at, by its bytes; a large one in words", async () => {
    const png = new Uint8Array(1024 * 1024);
    png.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
    serve("/i", png, "text/html");
    const { content } = await read("/i");
    expect(content[1]).toMatchObject({ type: "image", source: { kind: "data", mediaType: "image/png" } });
    serve("/i", new Uint8Array([...png, 0]), "image/png");
    expect(refused(await read("/i"))).toContain("at most 1,048,576 bytes can be shown");
  });

  test("anything else in a sentence with its type and size", async () => {
    serve("/z", Uint8Array.from([0x50, 0x4b, 3, 4, 0]), "application/zip");
    expect(refused(await read("/z"))).toMatch(/is no text: application\/zip, 5 bytes/);
    serve("/t", Uint8Array.from([0x7f, 0x45, 0x4c, 0x46, 0, 0]), "text/plain");
    expect(refused(await read("/t"))).toMatch(/is no text: text\/plain, 6 bytes/);
    serve("/b", Uint8Array.from([1, 0, 2]), "");
    expect(refused(await read("/b"))).toContain("an unknown type");
  });

  test("what the page says of its site", async () => {
    serve("/s", '<meta property="og:site_name" content="The Site"><p>Words.', "text/html");
    expect(said(await read("/s"))).toBe(`URL: ${site.url}/s\nSite: The Site\n\nWords.`);
  });

  test("a page where none can be read is refused in a sentence", async () => {
    serve("/x", "<p>Words.", "text/html");
    expect(refused(await read("/x", {}, { html: undefined }))).toContain("none can be read");
  });

  test("a page without text says so", async () => {
    serve("/app", "<html><body><div id=root></div><script>app()</script></body></html>", "text/html");
    expect(said(await read("/app"))).toContain("may need a browser that runs its scripts");
    serve("/empty", "", "text/plain");
    expect(said(await read("/empty"))).toContain("[nothing is there]");
  });
});

describe("what it cannot read", () => {
  test.each([
    [404, /no such page/],
    [401, /wants a login/],
    [403, /does not show this page to programs/],
    [429, /fewer requests; try again in 9 seconds/],
    [502, /fault of its own/],
    [418, /answered 418/],
  ])("an answer of %i is a sentence", async (status, sentence) => {
    serve("/x", "<p>secret words of the error page", "text/html", {
      status,
      headers: { "retry-after": "9" },
    });
    const text = refused(await read("/x"));
    expect(text).toMatch(sentence);
    expect(text).not.toContain("secret words");
  });

  test.each([
    "ftp://a.example/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/html,x",
    "https://",
    "http://[",
    "mailto:a@b",
  ])("%s is no address for it", async (url) => {
    expect(refused(await read(url))).toContain("is no http or https address");
  });

  test("E1 addresses inside are refused by the fetch it goes through, redirects too", async () => {
    const inside = createLocalFetch();
    expect(refused(await read("/x", {}, { fetch: inside }))).not.toBe("");
    serve("/out", "", undefined, {
      status: 302,
      headers: { location: "http://169.254.169.254/latest/meta-data/" },
    });
    expect(refused(await read("/out"))).toMatch(/169\.254\.169\.254/);
    expect(site.asked).toHaveLength(1);
  });

  test("what the tool sends has nothing of ours", async () => {
    serve("/x", "x", "text/plain");
    await read("/x");
    expect(Object.keys(site.asked[0]!.headers).sort()).toEqual(
      expect.not.arrayContaining(["authorization", "cookie", "referer", "x-api-key"]),
    );
  });
});

describe("long content", () => {
  const LONG = Array.from({ length: 2_000 }, (_, i) => `Paragraph ${i} ${"x".repeat(40)}`).join("\n\n");

  test("comes in pages that say how to go on, from one fetch", async () => {
    serve("/long", LONG, "text/plain");
    const first = said(await read("/long"));
    expect(first.length).toBeLessThanOrEqual(MAX_RESULT_CHARS);
    expect(first).toContain("[page 1 of 5; call again with page 2 for what follows]");
    const pages = [first];
    for (let page = 2; page <= 5; page++) pages.push(said(await read("/long", { page })));
    expect(pages[4]).toContain("[page 5 of 5]");
    expect(pages.map((page) => page.slice(page.indexOf("\n\n") + 2)).join("\n\n")).toBe(LONG);
    expect(site.asked).toHaveLength(1);
    expect(refused(await read("/long", { page: 6 }))).toContain("has 5 pages; there is no page 6");
  });

  test("A5 what one owner has fetched is no other's, and the first page is always fetched", async () => {
    serve("/long", LONG, "text/plain");
    await read("/long");
    await read("/long", { page: 2 }, { owner: "bob" });
    await read("/long");
    expect(site.asked).toHaveLength(3);
  });

  test("is kept for some minutes", async () => {
    let now = 0;
    const timed = createReadWebPage(() => now);
    serve("/long", LONG, "text/plain");
    await read("/long", {}, {}, timed);
    now = 9 * 60_000;
    await read("/long", { page: 2 }, {}, timed);
    expect(site.asked).toHaveLength(1);
    now = 10 * 60_000;
    await read("/long", { page: 2 }, {}, timed);
    expect(site.asked).toHaveLength(2);
  });

  test("what is kept is bounded", async () => {
    for (const path of ["/1", "/2", "/3", "/4"]) {
      serve(path, "y".repeat(2_500_000), "text/plain");
      await read(path);
    }
    await read("/4", { page: 2 });
    await read("/1", { page: 2 });
    expect(site.asked.map(({ path }) => path)).toEqual(["/1", "/2", "/3", "/4", "/1"]);
  });

  test("any text: its parts fit, end at whole characters, and lose nothing but blanks", () => {
    const pieces = fc.array(
      fc.oneof(
        fc.string({ unit: "grapheme" }),
        fc.constantFrom("\n\n", "\n", " ", "😀".repeat(15_000), "w".repeat(30_000)),
      ),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(pieces, (pieces) => {
        const text = pieces.join("");
        const parts = partsOf(text);
        for (const part of parts) {
          expect(part.length).toBeLessThanOrEqual(MAX_RESULT_CHARS - 4_000);
          expect(part.isWellFormed()).toBe(text.isWellFormed());
        }
        expect(parts.join("").replaceAll(/\s/g, "")).toBe(text.replaceAll(/\s/g, ""));
      }),
      { numRuns: 100 },
    );
  });
});

test("an address without a scheme is https", async () => {
  const asked: string[] = [];
  const spy: ToolContext["fetch"] = async (url) => {
    asked.push(String(url));
    return new Response("x", { headers: { "content-type": "text/plain" } });
  };
  await read("example.org/a b?c#d", {}, { fetch: spy });
  await read(" example.org:8443/x ", {}, { fetch: spy });
  expect(asked).toEqual(["https://example.org/a%20b?c", "https://example.org:8443/x"]);
});
