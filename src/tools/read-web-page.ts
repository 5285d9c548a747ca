/** `read_web_page`: what stands at an address, as Markdown or text, in parts where it is long. */
import * as z from "zod";
import { defineTool, type Tool, type ToolContext, type ToolOutput } from "../core/tool.ts";
import { AppError } from "../errors.ts";
import { toBase64 } from "./read-file.ts";
import { answer, count, MAX_RESULT_CHARS, refusal } from "./result.ts";
import { readContent, type WebImage, type WebText } from "./web/page.ts";
import { createPageCache } from "./web/page-cache.ts";

const MAX_URL_CHARS = 2_048;
const MAX_PAGE = 1_000;
/** Characters of a part; the rest of a result is for its header. */
const PART_CHARS = MAX_RESULT_CHARS - 4_000;
/** How much of a part may be given up so that it ends where a paragraph does. */
const SLACK_CHARS = 6_000;
const MAX_IMAGE_BYTES = 1024 * 1024;
const HEADERS = {
  accept:
    "text/markdown,text/html;q=0.9,application/xhtml+xml;q=0.9,text/plain;q=0.8,application/pdf;q=0.8,*/*;q=0.5",
  "accept-language": "en;q=0.9,*;q=0.5",
  "user-agent": "Mozilla/5.0 (compatible; Dragoman/0.1)",
};

export function createReadWebPage(now?: () => number): Tool {
  const cache = createPageCache(now);
  return defineTool({
    name: "read_web_page",
    description:
      "Fetches an address of the web and returns what it says: the main content of a page as Markdown, the text of a " +
      "PDF, other text as it is, a small image to look at. Long content comes in pages: go on with page. Nothing on " +
      "the page is run, so what only scripts show is missing. To find pages use search_web.",
    args: z.strictObject({
      url: z.string().min(1).max(MAX_URL_CHARS).describe("The http or https address."),
      page: z
        .int()
        .min(1)
        .max(MAX_PAGE)
        .optional()
        .describe("Which page of long content, from 1. Default 1."),
    }),
    needs: [],
    risk: "network",
    outside: true,
    async run({ url, page = 1 }, context) {
      const address = addressOf(url);
      const known = page > 1 ? cache.get(context.owner, address) : undefined;
      const content = known ?? (await load(address, context));
      if ("bytes" in content) return image(content);
      if (!known && content.text.length > PART_CHARS) cache.put(context.owner, address, content);
      return part(content, page);
    },
  });
}

/** As a browser takes it: without a scheme it is https, and what stands behind `#` stays here. */
function addressOf(given: string): string {
  const trimmed = given.trim();
  const whole = /^[a-z][a-z0-9+.-]*:(?!\d)/i.test(trimmed) ? trimmed : `https://${trimmed}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    throw new AppError("invalid_request", `'${given}' is no http or https address.`);
  url.hash = "";
  return url.href;
}

async function load(address: string, { fetch, html, pdf, signal }: ToolContext): Promise<WebText | WebImage> {
  const response = await fetch(address, { headers: HEADERS, signal });
  const url = response.url || address;
  if (!response.ok) {
    await response.body?.cancel();
    throw new AppError("unreachable", `${url} answered ${response.status}. ${adviceOn(response)}`);
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  const contentType = response.headers.get("content-type") ?? "";
  return await readContent({ url, contentType, bytes }, { html, pdf, signal });
}

function adviceOn({ status, headers }: Response): string {
  if (status === 404 || status === 410) return "There is no such page; check the address, or search for it.";
  if (status === 401 || status === 407) return "It wants a login, which this tool has not.";
  if (status === 403 || status === 451)
    return "The site does not show this page to programs. Try another source.";
  if (status === 429) {
    const wait = headers.get("retry-after");
    return `The site wants fewer requests${wait && /^\d{1,6}$/.test(wait) ? `; try again in ${wait} seconds` : "; try again later"}.`;
  }
  if (status >= 500) return "The site has a fault of its own; try again later, or another source.";
  return "Try another address.";
}

function part(content: WebText, page: number): ToolOutput {
  const parts = partsOf(content.text);
  const text = parts[page - 1];
  if (text === undefined)
    return refusal(`${content.url} has ${count(parts.length, "page")}; there is no page ${page}.`);
  const lines = [`URL: ${content.url}`];
  if (content.title) lines.unshift(`Title: ${content.title}`);
  if (content.byline) lines.push(`By: ${content.byline}`);
  if (content.site) lines.push(`Site: ${content.site}`);
  if (content.date) lines.push(`Date: ${content.date}`);
  lines.push(...content.notes);
  if (parts.length > 1) {
    const more = page < parts.length ? `; call again with page ${page + 1} for what follows` : "";
    lines.push(`[page ${page} of ${parts.length}${more}]`);
  }
  if (text === "" && content.notes.length === 0) lines.push("[nothing is there]");
  return answer(text === "" ? lines.join("\n") : `${lines.join("\n")}\n\n${text}`);
}

/** The same text always falls into the same parts, and their sum is the text but for blanks at the cuts. */
export function partsOf(text: string): string[] {
  const parts: string[] = [];
  let rest = text.trim();
  while (rest.length > PART_CHARS) {
    const at = cutAt(rest);
    parts.push(rest.slice(0, at).trimEnd());
    rest = rest.slice(at).replace(/^\n+/, "");
  }
  if (rest !== "" || parts.length === 0) parts.push(rest);
  return parts;
}

function cutAt(text: string): number {
  const least = PART_CHARS - SLACK_CHARS;
  for (const end of ["\n\n", "\n", " "]) {
    const at = text.lastIndexOf(end, PART_CHARS);
    if (at >= least) return at;
  }
  const last = text.charCodeAt(PART_CHARS - 1);
  return last >= 0xd800 && last <= 0xdbff ? PART_CHARS - 1 : PART_CHARS;
}

function image({ url, mediaType, bytes }: WebImage): ToolOutput {
  const what = `${url} is an image (${mediaType}, ${count(bytes.length, "byte")})`;
  if (bytes.length > MAX_IMAGE_BYTES)
    return refusal(
      `${what}; at most ${count(MAX_IMAGE_BYTES, "byte")} can be shown. Look for a smaller one.`,
    );
  return {
    content: [
      { type: "text", text: `[${what}]` },
      { type: "image", source: { kind: "data", mediaType, data: toBase64(bytes) } },
    ],
  };
}
