/**
 * What a page says: its main content as Markdown, and its title, author, site and date. Synchronous, and on a page that is
 * made for it slow: where there are threads it runs in one of its own (local-html.ts).
 */
import { Readability } from "@mozilla/readability";
import { oneLine } from "../core/clean-text.ts";
import type { HtmlText } from "../core/platform.ts";
import { type HtmlOrder, parseDocument } from "./html-document.ts";
import { toMarkdown } from "./html-markdown.ts";

/** Above so many nodes the main content is not looked for: its finder would take seconds. */
const MAX_FINDER_NODES = 60_000;
/** The part of all prose that main content has to hold; with less the finder has plainly missed it. */
const LEAST_SHARE = 0.5;
const MAX_FACT_CHARS = 300;
const MAIN = "main, [role=main], article";
/** What the page itself says is around its content. */
const AROUND =
  "nav, footer, menu, aside, dialog, [role=navigation], [role=banner], [role=contentinfo], [role=complementary], [role=search]";

export function readPage(html: string, order: HtmlOrder): HtmlText {
  const { document, cut, nodes } = parseDocument(html, order);
  const { title } = document;
  const all = proseOf(document.body);
  const article = nodes <= MAX_FINDER_NODES ? findArticle(document) : null;
  const isMain = article?.content && proseOf(article.content) >= LEAST_SHARE * all;
  // What looked for the article has taken the document apart.
  const root = isMain ? article.content : wholeOf(parseDocument(html, order).document);
  return {
    title: short(article?.title || title),
    byline: short(article?.byline),
    site: short(article?.siteName),
    date: short(article?.publishedTime),
    text: root ? toMarkdown(root) : "",
    cut,
  };
}

function findArticle(document: Document) {
  const serializer = (node: Node) => node as Element;
  return new Readability(document, { keepClasses: true, serializer }).parse();
}

/** All but what is plainly around it: a reader can skip, but not guess. */
function wholeOf({ body }: Document): Element {
  const named = body.querySelector(MAIN);
  if (named && proseOf(named) >= LEAST_SHARE * proseOf(body)) return named;
  const inner = body.cloneNode(true) as Element;
  for (const element of inner.querySelectorAll(AROUND)) element.remove();
  // Nothing but menus: then they are what the page has.
  return inner.textContent?.trim() ? inner : body;
}

const NO_PROSE: ReadonlySet<string> = new Set(["A", "NAV", "FOOTER", "ASIDE", "MENU", "DIALOG"]);

/** Characters of text that are neither links nor around the content. */
function proseOf(element: Element): number {
  let chars = 0;
  for (const child of element.childNodes) {
    if (child.nodeType === child.TEXT_NODE) chars += child.textContent?.trim().length ?? 0;
    else if (child.nodeType === child.ELEMENT_NODE && !NO_PROSE.has(child.nodeName))
      chars += proseOf(child as Element);
  }
  return chars;
}

function short(text: string | null | undefined): string {
  return oneLine(text ?? "").slice(0, MAX_FACT_CHARS);
}
