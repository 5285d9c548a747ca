/** Search through Exa: `POST /search`, the key in `x-api-key`. */
import * as z from "zod";
import {
  callJson,
  type Freshness,
  readResults,
  type SearchAccount,
  type SearchProvider,
  someText,
} from "./search-provider.ts";

const ADDRESS = "https://api.exa.ai";
const MAX_HIGHLIGHT_CHARS = 600;
const DAY_MS = 24 * 60 * 60 * 1000;
const DAYS: Record<Freshness, number> = { day: 1, week: 7, month: 31, year: 366 };

const Answer = z.object({ results: z.array(z.unknown()) });
const Entry = z.object({
  url: z.string(),
  title: someText,
  publishedDate: someText,
  text: someText,
  highlights: z.array(z.string()).nullish().catch(undefined),
});

export function createExa({ apiKey = "", baseUrl = ADDRESS }: SearchAccount, now = Date.now): SearchProvider {
  const name = "Exa";
  return {
    name,
    async search({ query, limit, freshness }, context) {
      const since = freshness && new Date(now() - DAYS[freshness] * DAY_MS).toISOString();
      const { results } = await callJson(
        {
          name,
          url: `${baseUrl}/search`,
          headers: { "x-api-key": apiKey },
          json: {
            query,
            numResults: limit,
            type: "auto",
            startPublishedDate: since,
            contents: { highlights: { maxCharacters: MAX_HIGHLIGHT_CHARS } },
          },
          key: { setting: "EXA_API_KEY", value: apiKey },
        },
        Answer,
        context,
      );
      return {
        results: readResults(results, Entry, ({ url, title, publishedDate, highlights, text }) => ({
          url,
          title: title ?? "",
          snippet: highlights?.length ? highlights.join(" … ") : (text ?? ""),
          date: publishedDate ?? undefined,
        })),
      };
    },
  };
}
