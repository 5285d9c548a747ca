/**
 * HTML as a document of what a reader would see: hidden text, scripts and what only a browser shows are dropped as it is
 * read, addresses are absolute, and its depth and size are bounded, so that what walks it later ends.
 */
import { Parser } from "htmlparser2";
import { parseHTML } from "linkedom";
import { cleanText, oneLine } from "../core/clean-text.ts";
import { languageIn } from "./html-code.ts";
import { createHiding, type Hiding } from "./html-hidden.ts";

/** What is read of a page: addresses in it are relative to `url`, and so many characters are looked at. */
export interface HtmlOrder {
  url: string;
  maxChars: number;
}

/** Elements, and texts with what is written as entities in them: each is a node again when the finder starts over. */
const MAX_NODES = 150_000;
/** Elements inside one another; what is deeper counts as content of the last one. */
const MAX_DEPTH = 100;
/** Open elements at which reading ends: each costs the parser as much as there are. */
const MAX_OPEN = 2_000;
const MAX_LINKED_DATA_CHARS = 200_000;
const MAX_ADDRESS_CHARS = 2_000;
const MAX_VALUE_CHARS = 500;
/** Blanks in a row in a listing: patterns that look for blanks at an end take the square of them. */
const MAX_BLANKS = 200;
const LONG_BLANKS = new RegExp(`[^\\S\\n]{${MAX_BLANKS},}`, "g");
const MAX_EMPTY_LINES = 20;
const LONG_GAPS = new RegExp(`(?:[^\\S\\n]*\\n){${MAX_EMPTY_LINES},}`, "g");
const PIECE_CHARS = 64 * 1024;

const EMPTY = "<!doctype html><html><head><title></title></head><body></body></html>";
/** Their content goes to the document's own. */
const FRAME: ReadonlySet<string> = new Set(["html", "head", "body"]);
/** Nothing in them is for reading. */
const SKIPPED: ReadonlySet<string> = new Set(
  (
    "script style template svg canvas iframe object embed applet audio video map select datalist button input textarea " +
    "frameset noframes noscript annotation-xml link title meta base"
  ).split(" "),
);
/** What stands beside the lines of a listing. */
const LINE_NUMBERS =
  /(^|[\s_-])(line-?nos?|linenums?|line-?numbers?|gutter|rouge-gutter|blob-num|lnt|ln)($|[\s_-])/i;
const LINES: ReadonlySet<string> = new Set(["div", "tr", "li"]);
const ADDRESSES: ReadonlySet<string> = new Set(["href"]);
/** What is looked at later. */
const KEPT: ReadonlySet<string> = new Set(
  (
    "alt alttext aria-modal class colspan data-lang data-language dir encoding height id itemprop lang rel role start " +
    "title width"
  ).split(" "),
);

/** `cut`: there was more than is looked at. `nodes`: how many it is made of, as {@link MAX_NODES} counts them. */
export function parseDocument(
  html: string,
  { url, maxChars }: HtmlOrder,
): { document: Document; cut: boolean; nodes: number } {
  const builder = new DocumentBuilder(url, createHiding(html.slice(0, maxChars)));
  const parser = new Parser(builder, { decodeEntities: true });
  const end = Math.min(html.length, maxChars);
  // In pieces, to end where enough was seen.
  for (let at = 0; at < end && !builder.full; at += PIECE_CHARS)
    parser.write(html.slice(at, Math.min(at + PIECE_CHARS, end)));
  parser.end();
  const document = builder.finish();
  return { document, cut: builder.full || end < html.length, nodes: builder.nodes };
}

class DocumentBuilder {
  readonly #document = parseHTML(EMPTY).document as unknown as Document;
  readonly #hiding: Hiding;
  #current: Element = this.#document.body;
  #depth = 0;
  /** Elements open below the deepest that is kept. */
  #flattened = 0;
  /** Elements open inside one that is left out, itself included. */
  #skipped = 0;
  #open = 0;
  #text = "";
  /** What the text goes to that is not shown. */
  #aside: { into: "title" | "linked-data"; text: string } | null = null;
  #titled = false;
  /** The `pre` that is open: what is in it is its text. */
  #listing: Element | null = null;
  #base: string;
  #rebased = false;
  nodes = 0;
  full = false;

  constructor(address: string, hiding: Hiding) {
    this.#base = address;
    this.#hiding = hiding;
  }

  onopentag(tag: string, attributes: Record<string, string>): void {
    if (++this.#open > MAX_OPEN) this.full = true;
    if (this.#skipped > 0) {
      this.#skipped++;
      return;
    }
    if (tag === "meta") this.#describe(attributes);
    else if (tag === "base" && !this.#rebased) {
      this.#base = resolve(attributes.href, this.#base) ?? this.#base;
      this.#rebased = true;
    }
    if (SKIPPED.has(tag) || this.#hiding(tag, attributes) || this.#isLineNumber(tag, attributes)) {
      this.#skipped = 1;
      if (tag === "title" && !this.#titled) this.#aside = { into: "title", text: "" };
      else if (tag === "script" && attributes.type?.toLowerCase() === "application/ld+json")
        this.#aside = { into: "linked-data", text: "" };
      return;
    }
    if (this.full || this.#depth >= MAX_DEPTH) {
      this.#flattened++;
      return;
    }
    if (this.#listing) this.#inListing(tag, attributes);
    else if (tag === "img") this.#picture(attributes);
    if (this.#listing || tag === "img") {
      this.#flattened++;
      return;
    }
    this.#flush();
    this.#depth++;
    if (FRAME.has(tag)) return;
    const element = this.#document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) this.#keep(element, name, value);
    if (tag === "pre") this.#listing = element;
    this.#current.appendChild(element);
    this.#current = element;
    this.full = ++this.nodes >= MAX_NODES;
  }

  onclosetag(tag: string): void {
    this.#open--;
    if (this.#skipped > 0) {
      if (--this.#skipped === 0 && this.#aside) this.#set(this.#aside);
    } else if (this.#flattened > 0) {
      this.#flattened--;
      if (this.#listing && LINES.has(tag) && !this.#text.endsWith("\n")) this.#text += "\n";
    } else if (this.#depth > 0) {
      this.#flush();
      this.#listing = null;
      this.#depth--;
      if (!FRAME.has(tag)) this.#current = this.#current.parentElement ?? this.#document.body;
    }
  }

  ontext(piece: string): void {
    if (this.#skipped === 0) this.#text += piece;
    else if (this.#aside && this.#aside.text.length < MAX_LINKED_DATA_CHARS) this.#aside.text += piece;
  }

  /** Text comes in pieces that end anywhere, so it is cleaned when it is whole. */
  #flush(): void {
    const clean = cleanText(this.#text);
    this.#text = "";
    if (clean === "" || this.full) return;
    const text = this.#listing
      ? clean
          .replaceAll(LONG_BLANKS, " ".repeat(MAX_BLANKS))
          .replaceAll(LONG_GAPS, "\n".repeat(MAX_EMPTY_LINES))
      : clean.replaceAll(/\s+/g, " ");
    this.nodes += text.match(/[<>&]/g)?.length ?? 0;
    this.#current.appendChild(this.#document.createTextNode(text));
    this.full = ++this.nodes >= MAX_NODES;
  }

  #isLineNumber(tag: string, attributes: Record<string, string>): boolean {
    return (
      attributes.class !== undefined &&
      (this.#listing !== null || tag === "td" || tag === "pre") &&
      LINE_NUMBERS.test(attributes.class)
    );
  }

  #inListing(tag: string, attributes: Record<string, string>): void {
    if (tag === "br") this.#text += "\n";
    const language = tag === "code" && languageIn((name) => attributes[name] ?? null);
    if (language) this.#listing?.setAttribute("data-lang", language);
  }

  /** A picture is its description: as text it counts as such where the main content is looked for. */
  #picture(attributes: Record<string, string>): void {
    const { alt, src, "data-src": later, width, height } = attributes;
    const shown = oneLine((alt ?? "").slice(0, MAX_VALUE_CHARS));
    if (shown === "" || width === "1" || height === "1") return;
    this.#flush();
    const picture = this.#document.createElement("span");
    const address = resolve(src?.startsWith("data:") ? later : (src ?? later), this.#base);
    if (address !== undefined && address.length <= MAX_ADDRESS_CHARS)
      picture.setAttribute("data-picture", address);
    picture.textContent = shown;
    this.#current.appendChild(picture);
  }

  #keep(element: Element, name: string, value: string): void {
    if (KEPT.has(name)) element.setAttribute(name, cleanText(value.slice(0, MAX_VALUE_CHARS)));
    else if (ADDRESSES.has(name) && value.length <= MAX_ADDRESS_CHARS) {
      // Within the page there is nothing to fetch.
      const address = value.trim().startsWith("#") ? undefined : resolve(value, this.#base);
      if (address !== undefined) element.setAttribute(name, address);
    }
  }

  #describe(attributes: Record<string, string>): void {
    const meta = this.#document.createElement("meta");
    for (const name of ["name", "property", "itemprop", "content"])
      if (attributes[name] !== undefined)
        meta.setAttribute(name, oneLine(attributes[name].slice(0, MAX_VALUE_CHARS)));
    this.#document.head.appendChild(meta);
  }

  #set({ into, text }: { into: "title" | "linked-data"; text: string }): void {
    this.#aside = null;
    if (into === "title") {
      this.#titled = true;
      this.#document.title = oneLine(text);
      return;
    }
    const script = this.#document.createElement("script");
    script.setAttribute("type", "application/ld+json");
    script.textContent = cleanText(text);
    this.#document.head.appendChild(script);
  }

  finish(): Document {
    this.#flush();
    return this.#document;
  }
}

/** The absolute address that `address` stands for, or undefined where it is none for a reader. */
function resolve(address: string | undefined, base: string): string | undefined {
  const trimmed = address?.trim();
  if (!trimmed || !URL.canParse(trimmed, base)) return undefined;
  const url = new URL(trimmed, base);
  return /^(https?|mailto|tel|ftp):$/.test(url.protocol) ? url.href : undefined;
}
