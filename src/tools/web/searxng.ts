/** Search through a SearXNG of the operator's: `GET /search?format=json`, which its settings have to allow. */
import * as z from "zod";
import {
  callJson,
  readResults,
  type SearchAccount,
  type SearchProvider,
  someText,
} from "./search-provider.ts";

const Answer = z.object({
  results: z.array(z.unknown()),
  /** Pairs of name and reason. */
  unresponsive_engines: z.array(z.array(z.unknown())).nullish().catch(undefined),
});
const Entry = z.object({ url: z.string(), title: someText, content: someText, publishedDate: someText });

export function createSearxng({ baseUrl = "" }: SearchAccount): SearchProvider {
  const name = "SearXNG";
  return {
    name,
    async search({ query, freshness }, context) {
      const url = new URL(`${baseUrl}/search`);
      url.searchParams.set("q", query);
      url.searchParams.set("format", "json");
      if (freshness) url.searchParams.set("time_range", freshness);
      const { results, unresponsive_engines: silent } = await callJson(
        {
          name,
          url: url.href,
          meaning: (status) =>
            status === 403
              ? `${name} does not answer in JSON. Tell the operator to add json to search.formats in its settings.yml.`
              : undefined,
        },
        Answer,
        context,
      );
      const engines = silent?.map(([engine]) => engine).filter((engine) => typeof engine === "string") ?? [];
      return {
        results: readResults(results, Entry, ({ url, title, content, publishedDate }) => ({
          url,
          title: title ?? "",
          snippet: content ?? "",
          date: publishedDate ?? undefined,
        })),
        note: engines.length > 0 ? `engines that did not answer: ${engines.join(", ")}` : undefined,
      };
    },
  };
}
