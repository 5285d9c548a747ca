/** From HTML to what a model reads: what is kept, what is left out, and that no page takes long. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readPage } from "../../src/platform/html-page.ts";
import { ARTICLE, ARTICLE_MARKDOWN, DOCUMENTATION, INDEX } from "../tools/web/pages.ts";

const MAX_CHARS = 5 * 1024 * 1024;

function page(html: string, url = "https://site.example/world/dragoman", maxChars = MAX_CHARS) {
  return readPage(html, { url, maxChars });
}

function read(html: string, url?: string): string {
  return page(html, url).text;
}

describe("whole pages", () => {
  test("an article, without what stands around it and what nobody sees (E4)", () => {
    expect(read(ARTICLE)).toBe(ARTICLE_MARKDOWN);
  });

  test("what it says about itself", () => {
    expect(page(ARTICLE)).toMatchObject({
      title: "The last dragoman",
      byline: "Ann Lee, Bo",
      site: "",
      date: "2026-05-04",
    });
  });

  test("documentation keeps its listings as they are", () => {
    const text = read(DOCUMENTATION, "https://docs.example/api/retry");
    expect(text).toContain('```ts\nconst value = await retry(\n  () => load("a"),   // two  blanks\n);\n```');
    expect(text).toContain("````sh\necho ```\n````");
    expect(text).toContain("**times**\n\n  How often. Default 3.");
    expect(text).toContain("[backoff](https://docs.example/api/backoff)");
    expect(text).toMatch(/^Calls `fn` until/);
    expect(text).not.toContain("function7");
  });

  test("where there is nothing but links, they are the content", () => {
    const text = read(INDEX);
    expect(text).toContain("[Item number 0](https://news.example/item0)");
    expect(text).toContain("[Item number 29](https://news.example/item29)");
  });
});

describe("parts", () => {
  const cases: [string, string, string][] = [
    [
      "an address against the base of the page",
      '<base href="/deep/er/"><p><a href="x?y=(1)">t</a>',
      "[t](https://site.example/deep/er/x?y=%281%29)",
    ],
    [
      "no scripts and no data as addresses",
      '<p><a href="javascript:x()">a</a> <a href="data:,x">b</a> <a href="#c">c</a>',
      "a b c",
    ],
    [
      "an image that is loaded late",
      '<p><img src="data:image/gif;base64,R0" data-src="/i.png" alt="An i">',
      "![An i](https://site.example/i.png)",
    ],
    [
      "no picture that shows nothing",
      '<p>a<img src="/p.gif" width="1" height="1" alt="x"><img src="/q.gif" alt=""></p>',
      "a",
    ],
    [
      "formulas as TeX",
      '<p>So <math alttext="e=mc^2"><mi>e</mi></math> and <math><semantics><mi>x</mi><annotation encoding="application/x-tex">x_1</annotation></semantics></math>',
      "So $e=mc^2$ and $x_1$",
    ],
    [
      "a table that lays out the page",
      "<table><tr><td><table><tr><td>a</td></tr></table></td><td><p>b</p></td></tr></table>",
      "a\n\nb",
    ],
    ["blanks around marks", "<p>one<b> two </b>three <i></i>four", "one **two** three four"],
    ["entities", "<p>&lt;script&gt; &amp;amp; &#x1F600; &nbsp;x", "<script> &amp; 😀 x"],
    [
      "characters of scripts that need joiners",
      "<p>می\u200cخواهم 👩\u200d💻 a\u200db",
      "می\u200cخواهم 👩\u200d💻 ab",
    ],
    ["code with backticks", "<p><code>a`b</code>", "`` a`b ``"],
    ["an item that is empty", "<ul><li></li><li>b</li></ul><p>c", "- b\n\nc"],
  ];
  test.each(cases)("%s", (_, html, markdown) => {
    expect(read(html)).toBe(markdown);
  });

  const hidden = [
    ...[
      "visibility:hidden",
      "opacity: 0",
      "font-size:0px",
      "text-indent:-9999px",
      "clip:rect(0 0 0 0)",
      "color:transparent",
    ],
    ...["height:0;overflow:hidden", "DISPLAY : NONE", "transform:scale(0)", "color:rgba(0,0,0,0)"],
  ];
  test.each(hidden)("E4 nothing hides behind %s", (style) => {
    expect(read(`<p>seen</p><p style="${style}">unseen <b>too</b></p><p>end</p>`)).toBe("seen\n\nend");
  });

  const shown = [
    "opacity:0.9",
    "font-size:0.8em",
    "margin-left:-10px",
    "color:#333",
    "height:0",
    "display:block",
  ];
  test.each(shown)("what is seen with %s stays", (style) => {
    expect(read(`<p style="${style}">seen</p>`)).toBe("seen");
  });

  test("E4 rules of the page's own sheets hide by class and id, not those for some screens only", () => {
    const css =
      "/* .a{} */ .x, #y { display:none } @media (max-width:9px) { .z { display:none } } @import 'q'; .w{color:red}";
    const html = `<style>${css}</style><p class="k x">1</p><p id="y">2</p><p class="z">3</p><p class="w">4</p>`;
    expect(read(html)).toBe("3\n\n4");
  });
});

describe("any page", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "<p>",
      "</p>",
      "<div>",
      "</div>",
      "<table>",
      "<tr>",
      "<td>",
      "</table>",
      "<ul>",
      "<li>",
      "<pre>",
      "</pre>",
      "<b>",
      "</b>",
    ),
    fc.constantFrom(
      "<a href='/x'>",
      "</a>",
      "<blockquote>",
      "<script>",
      "</script>",
      "<!--",
      "-->",
      "<style>",
      "</style>",
      "<h1>",
      "<nav>",
      "<svg>",
    ),
    fc.constantFrom(
      "<",
      ">",
      "&",
      "&#0;",
      "&amp",
      "\u0000",
      "\u202e",
      "\ud800",
      "\n\n",
      "```",
      "|",
      "<math>",
      "<title>",
      "<main>",
      "<br>",
    ),
    fc.string(),
  );
  test("ends in text without hidden characters, and never in an error", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const text = read(pieces.join(""));
        // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for.
        expect(text).not.toMatch(/[\0-\x08\x0b-\x1f\x7f\u202a-\u202e\u200b]/);
      }),
      { numRuns: 300 },
    );
  });

  test("words of paragraphs come out in their order", () => {
    const word = fc.stringMatching(/^[a-z]{3,9}$/);
    fc.assert(
      fc.property(
        fc.array(fc.array(word, { minLength: 1, maxLength: 30 }), { minLength: 1, maxLength: 20 }),
        (paragraphs) => {
          const html = `<body>${paragraphs.map((words) => `<p>${words.join(" ")}</p>`).join("\n")}</body>`;
          expect(read(html)).toBe(paragraphs.map((words) => words.join(" ")).join("\n\n"));
        },
      ),
      { numRuns: 100 },
    );
  });

  /** Each made to cost much more than it has characters. */
  const hostile: Record<string, string> = {
    "elements inside one another": "<div>".repeat(300_000),
    "tables inside one another": "<table><tr><td>a".repeat(100_000),
    "lists inside one another": `${"<ul><li>".repeat(90)}${"<li>x".repeat(200_000)}`,
    "quotations inside one another": `${"<blockquote>".repeat(150)}${"<br>x".repeat(300_000)}`,
    "headers inside one another": `${"<header>".repeat(190)}${"<p>x</p>".repeat(50_000)}`,
    "a tag that does not end": `<p>x<a href="${"y".repeat(4_000_000)}`,
    blanks: `<p>${" \n".repeat(2_000_000)}x`,
    "angle brackets": "<".repeat(3_000_000),
    "style sheets": `<style>${"a{".repeat(200_000)}</style>${"<style>x{}</style>".repeat(50_000)}`,
    "style tags that do not end": "<style".repeat(500_000),
    "a sheet without rules": `<style>${"a ".repeat(240_000)}</style>`,
    "blanks in a listing": `<pre>a${" ".repeat(3_000_000)}b`,
    "inline elements around much": `${"<b><i><span>".repeat(60)}${"x ".repeat(1_000_000)}`,
    "inline elements around many": `${"<b>".repeat(190)}${"<i>x</i>".repeat(120_000)}<div>y`,
    entities: "&amp;".repeat(500_000),
  };
  // What grows with the square of the page does not end within the test's time.
  test.each(Object.keys(hostile))(
    "%s are read to their end",
    (name) => {
      expect(read(hostile[name]!)).toBeDefined();
    },
    15_000,
  );

  test("what is longer than is read says so", () => {
    expect(page("<p>xxxx", undefined, 5).cut).toBe(true);
    expect(page("<p>xxxx").cut).toBe(false);
    expect(page("<i></i>".repeat(200_000)).cut).toBe(true);
  });
});
