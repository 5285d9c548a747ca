/** The search engines there are, by the name that SEARCH_PROVIDER has for them. */
import type { Config } from "../../config.ts";
import { createBrave } from "./brave.ts";
import { createDuckDuckGo } from "./duckduckgo.ts";
import { createExa } from "./exa.ts";
import type { SearchAccount, SearchProvider } from "./search-provider.ts";
import { createSearxng } from "./searxng.ts";
import { createTavily } from "./tavily.ts";

const ENGINES: Record<Config["search"]["provider"], (account: SearchAccount) => SearchProvider> = {
  tavily: createTavily,
  brave: createBrave,
  exa: createExa,
  searxng: createSearxng,
  duckduckgo: createDuckDuckGo,
};

export function createSearchEngine({ provider, accounts }: Config["search"]): SearchProvider {
  return ENGINES[provider](accounts[provider]);
}
