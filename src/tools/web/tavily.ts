/** Search through Tavily: `POST /search`, the key as a Bearer token. */
import * as z from "zod";
import {
  callJson,
  readResults,
  type SearchAccount,
  type SearchProvider,
  someText,
} from "./search-provider.ts";

const ADDRESS = "https://api.tavily.com";

const Answer = z.object({ results: z.array(z.unknown()) });
const Entry = z.object({ url: z.string(), title: someText, content: someText, published_date: someText });

export function createTavily({ apiKey = "", baseUrl = ADDRESS }: SearchAccount): SearchProvider {
  const name = "Tavily";
  return {
    name,
    async search({ query, limit, freshness }, context) {
      const { results } = await callJson(
        {
          name,
          url: `${baseUrl}/search`,
          headers: { authorization: `Bearer ${apiKey}` },
          json: { query, max_results: limit, search_depth: "basic", time_range: freshness },
          key: { setting: "TAVILY_API_KEY", value: apiKey },
        },
        Answer,
        context,
      );
      return {
        results: readResults(results, Entry, ({ url, title, content, published_date }) => ({
          url,
          title: title ?? "",
          snippet: content ?? "",
          date: published_date ?? undefined,
        })),
      };
    },
  };
}
