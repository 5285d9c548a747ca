/** Search without a key: DuckDuckGo's page for browsers without scripts, taken apart. It may refuse at any time, and says so. */
import { AppError } from "../../errors.ts";
import {
  callEngine,
  type Freshness,
  type SearchAccount,
  type SearchProvider,
  type SearchResult,
} from "./search-provider.ts";

const ADDRESS = "https://html.duckduckgo.com";
const WITHIN: Record<Freshness, string> = { day: "d", week: "w", month: "m", year: "y" };
const KEYED =
  "Tell the operator to set TAVILY_API_KEY, BRAVE_API_KEY, EXA_API_KEY or SEARXNG_URL for a search that does not depend on it";

export function createDuckDuckGo({ baseUrl = ADDRESS }: SearchAccount): SearchProvider {
  const name = "DuckDuckGo";
  return {
    name,
    async search({ query, limit, freshness }, context) {
      const url = `${baseUrl}/html/`;
      const html = await callEngine(
        {
          name,
          url,
          headers: {
            accept: "text/html",
            "accept-language": "en",
            "user-agent": "Mozilla/5.0 (compatible; Dragoman/0.1)",
          },
          form: { q: query, b: "", kl: "", df: freshness ? WITHIN[freshness] : "" },
          meaning: (status, body) =>
            [202, 403, 418, 429].includes(status) || isChallenge(body)
              ? `${name} refuses searches from here for now, since it takes us for a robot. Try again in a few minutes. ${KEYED}.`
              : undefined,
        },
        context,
      );
      // Loaded when there is a page: a start does without it.
      const { parseHTML } = await import("linkedom");
      const { document } = parseHTML(html);
      const results = [...document.querySelectorAll(".web-result")].flatMap((entry) =>
        readResult(entry, url),
      );
      if (results.length === 0 && !document.querySelector(".no-results, .result--no-result"))
        throw new AppError(
          "unreachable",
          `${name} has changed its page, and its results cannot be read. ${KEYED}.`,
        );
      return { results: results.slice(0, limit) };
    },
  };
}

function isChallenge(html: string): boolean {
  return /\b(?:id|class)\s*=\s*["'][^"'>]{0,200}(?:anomaly-modal|challenge-form)/.test(html);
}

function readResult(entry: Element, page: string): SearchResult[] {
  const link = entry.querySelector(".result__a");
  const url = link && targetOf(link.getAttribute("href"), page);
  // Advertisements look like results.
  if (!url || entry.classList.contains("result--ad")) return [];
  const textOf = (name: string) => entry.querySelector(name)?.textContent ?? "";
  const date = /\d{4}-\d\d-\d\d(?=T)/.exec(textOf(".result__extras"))?.[0];
  return [{ title: link.textContent ?? "", url, snippet: textOf(".result__snippet"), date }];
}

/** Links lead through a counter of theirs, which names the target. */
function targetOf(href: string | null, page: string): string | undefined {
  const address = resolve(href, page);
  if (address === undefined) return undefined;
  const url = new URL(address);
  const target = url.searchParams.get("uddg");
  if (target !== null) return resolve(target, page);
  return url.pathname === "/y.js" ? undefined : address;
}

function resolve(address: string | null, base: string): string | undefined {
  if (!address || !URL.canParse(address, base)) return undefined;
  const url = new URL(address, base);
  return /^https?:$/.test(url.protocol) ? url.href : undefined;
}
