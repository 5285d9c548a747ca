/** `search_web`: pages about a question, from the search engine that the operator chose. */
import * as z from "zod";
import type { Config } from "../config.ts";
import { cleanText, oneLine } from "../core/clean-text.ts";
import { defineTool, type Tool } from "../core/tool.ts";
import { answer, count, cutLine } from "./result.ts";
import {
  FRESHNESS,
  type SearchAnswer,
  type SearchProvider,
  type SearchResult,
} from "./web/search-provider.ts";

const DEFAULT_RESULTS = 8;
const MAX_RESULTS = 20;
/** The least that an engine takes. */
const MAX_QUERY_CHARS = 400;
const MAX_TITLE_CHARS = 300;
const MAX_SNIPPET_CHARS = 1_000;
const MAX_URL_CHARS = 2_000;

export function createSearchWeb(config: Config["search"]): Tool {
  let engine: Promise<SearchProvider> | undefined;
  return defineTool({
    name: "search_web",
    description:
      "Searches the web and returns titles, addresses and short excerpts. Excerpts are no proof: to know what a page " +
      "says, open it with read_web_page. Name the addresses that you rely on in your answer.",
    args: z.strictObject({
      query: z
        .string()
        .trim()
        .min(1)
        .max(MAX_QUERY_CHARS)
        .describe("What to look for, in words as for a search engine."),
      max_results: z
        .int()
        .min(1)
        .max(MAX_RESULTS)
        .optional()
        .describe(`How many results at most, 1 to ${MAX_RESULTS}. Default ${DEFAULT_RESULTS}.`),
      freshness: z
        .enum(FRESHNESS)
        .optional()
        .describe("Only results of the last day, week, month or year. Default: of any time."),
    }),
    needs: [],
    risk: "network",
    outside: true,
    async run({ query, max_results = DEFAULT_RESULTS, freshness }, { fetch, signal }) {
      engine ??= import("./web/search-engines.ts").then(({ createSearchEngine }) =>
        createSearchEngine(config),
      );
      const { name, search } = await engine;
      const found = await search({ query, limit: max_results, freshness }, { fetch, signal });
      return answer(report(query, name, max_results, found));
    },
  });
}

function report(query: string, engine: string, limit: number, { results, note }: SearchAnswer): string {
  const seen = new Set<string>();
  const lines: string[] = [];
  for (const result of results) {
    if (!/^https?:\/\//i.test(result.url) || result.url.length > MAX_URL_CHARS || seen.has(result.url))
      continue;
    if (seen.size === limit) break;
    seen.add(result.url);
    lines.push("", ...written(result, seen.size));
  }
  const head =
    seen.size === 0
      ? `${engine} found nothing for "${query}". Try other or fewer words.`
      : `${count(seen.size, "result")} for "${query}" (${engine})`;
  return [head, ...(note ? [`[${oneLine(note)}]`] : []), ...lines].join("\n");
}

function written({ title, url, snippet, date }: SearchResult, number: number): string[] {
  const lines = [
    `${number}. ${cutLine(oneLine(title), MAX_TITLE_CHARS) || "(no title)"}`,
    `   ${cleanText(url)}`,
  ];
  const when = oneLine(date ?? "").slice(0, 40);
  if (when !== "") lines.push(`   ${when}`);
  const excerpt = cutLine(oneLine(snippet), MAX_SNIPPET_CHARS);
  if (excerpt !== "") lines.push(`   ${excerpt}`);
  return lines;
}
