/** Search through Brave: `GET /res/v1/web/search`, the key in `X-Subscription-Token`. */
import * as z from "zod";
import { plainOf } from "./html-text.ts";
import {
  callJson,
  type Freshness,
  readResults,
  type SearchAccount,
  type SearchProvider,
  someText,
} from "./search-provider.ts";

const ADDRESS = "https://api.search.brave.com";
const WITHIN: Record<Freshness, string> = { day: "pd", week: "pw", month: "pm", year: "py" };

/** Without any result there is no `web`. */
const Answer = z.object({
  type: z.literal("search"),
  web: z.object({ results: z.array(z.unknown()) }).nullish(),
});
const Entry = z.object({
  url: z.string(),
  title: someText,
  description: someText,
  page_age: someText,
  age: someText,
});

export function createBrave({ apiKey = "", baseUrl = ADDRESS }: SearchAccount): SearchProvider {
  const name = "Brave Search";
  return {
    name,
    async search({ query, limit, freshness }, context) {
      const url = new URL(`${baseUrl}/res/v1/web/search`);
      url.searchParams.set("q", query);
      url.searchParams.set("count", String(limit));
      url.searchParams.set("result_filter", "web");
      url.searchParams.set("text_decorations", "false");
      if (freshness) url.searchParams.set("freshness", WITHIN[freshness]);
      const { web } = await callJson(
        {
          name,
          url: url.href,
          headers: { "x-subscription-token": apiKey },
          key: { setting: "BRAVE_API_KEY", value: apiKey },
          // A wrong key is not a 401 there.
          meaning: (status, body) =>
            status === 422 && body.includes("SUBSCRIPTION_TOKEN")
              ? `${name} refused the key. Tell the operator to check BRAVE_API_KEY.`
              : undefined,
        },
        Answer,
        context,
      );
      return {
        results: readResults(web?.results ?? [], Entry, ({ url, title, description, page_age, age }) => ({
          url,
          title: plainOf(title ?? ""),
          snippet: plainOf(description ?? ""),
          date: page_age ?? age ?? undefined,
        })),
      };
    },
  };
}
