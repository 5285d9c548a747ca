/** Settings of what the agent works with: its shell, MCP servers and search engines. */
import type { Config, Runtime } from "../config.ts";
import { isLoopback } from "../core/loopback.ts";
import type { Values } from "../settings.ts";
import { address, choice, duration, key, list, setting } from "./kinds.ts";

/** A name of the public kind: what this machine calls itself would lead back to this service. */
function domain(item: string): string | null {
  const match =
    /^(\*\.)?(?:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9](:\d{1,5})?$/i.exec(item);
  return match && !/\.(localhost|localdomain)(:|$)/i.test(item) ? item.toLowerCase() : null;
}

/** Search engines, in the order in which they are taken where several are configured. */
export const SEARCH_PROVIDERS = ["tavily", "brave", "exa", "searxng", "duckduckgo"] as const;

export const TERMINAL_AND_MCP = {
  TERMINAL: setting<"host" | "sandbox" | "virtual" | "off" | undefined>({
    default: "`host`; on Workers, and with `AUTH=key` beyond loopback, `virtual`",
    description:
      "The agent's shell: `host` is the machine's, `sandbox` the same kept in the workspace by the system, `virtual` a bash over files kept in the database, `off` none.",
    ...choice(["host", "sandbox", "virtual", "off"]),
    fallback: undefined,
  }),
  SANDBOX_NETWORK: setting<string[]>({
    default: "none",
    description:
      "Domains that commands may reach with `TERMINAL=sandbox`: `api.example.org,*.example.net`, with or without a port.",
    allowed: "domain names with commas between them, each with or without *. in front and a port behind",
    parse: list(domain),
    fallback: [],
  }),
  MCP_STDIO: setting<"on" | "off" | undefined>({
    default: "`on` with `TERMINAL=host` and without `AUTH`, else `off`",
    description: "`on` lets callers connect MCP servers that are programs of this machine. Not on Workers.",
    ...choice(["on", "off"]),
    fallback: undefined,
  }),
  MCP_CONNECT_TIMEOUT: duration(60, "How long an MCP server may take until it is connected."),
  MCP_CALL_TIMEOUT: duration(60, "How long a tool of an MCP server may take between two signs of progress."),
};

export const SEARCH = {
  SEARCH_PROVIDER: setting<(typeof SEARCH_PROVIDERS)[number] | undefined>({
    default: "the first that is configured, else `duckduckgo`",
    description:
      "Where `search_web` looks: `tavily`, `brave`, `exa`, `searxng`, or `duckduckgo`, which takes no key and may refuse.",
    ...choice(SEARCH_PROVIDERS),
    fallback: undefined,
  }),
  TAVILY_API_KEY: key("The operator's key for searching with Tavily."),
  TAVILY_BASE_URL: address("Where searches with Tavily go.", "Tavily's own"),
  BRAVE_API_KEY: key("The operator's key for searching with Brave Search."),
  BRAVE_BASE_URL: address("Where searches with Brave go.", "Brave's own"),
  EXA_API_KEY: key("The operator's key for searching with Exa."),
  EXA_BASE_URL: address("Where searches with Exa go.", "Exa's own"),
  SEARXNG_URL: address("A SearXNG to search with; its settings have to allow `json`.", "none"),
  DUCKDUCKGO_BASE_URL: address("Where searches with DuckDuckGo go.", "`https://html.duckduckgo.com`"),
};

/** With AUTH=key anybody may come and approve his own commands: beyond this machine that takes the operator's word. */
export function defaultTerminal({ AUTH, HOST }: Values, runtime: Runtime): Config["terminal"] {
  return runtime === "workerd" || (AUTH === "key" && !isLoopback(HOST)) ? "virtual" : "host";
}

/** Who may run any command here may start any server; but not everybody who has a key, since any text is one. */
export function mayStartServers({ MCP_STDIO, TERMINAL, AUTH }: Values, runtime: Runtime): boolean {
  if (runtime === "workerd") return false;
  return MCP_STDIO === undefined ? (TERMINAL ?? "host") === "host" && AUTH === undefined : MCP_STDIO === "on";
}

/** The engine that is named, otherwise the first that is configured, otherwise the one that takes no key. */
export function searchOf(values: Values, problems: string[]): Config["search"] {
  const accounts: Config["search"]["accounts"] = {
    tavily: { apiKey: values.TAVILY_API_KEY, baseUrl: values.TAVILY_BASE_URL },
    brave: { apiKey: values.BRAVE_API_KEY, baseUrl: values.BRAVE_BASE_URL },
    exa: { apiKey: values.EXA_API_KEY, baseUrl: values.EXA_BASE_URL },
    searxng: { baseUrl: values.SEARXNG_URL },
    duckduckgo: { baseUrl: values.DUCKDUCKGO_BASE_URL },
  };
  const isReady = (name: (typeof SEARCH_PROVIDERS)[number]) =>
    name === "duckduckgo" || accounts[name][name === "searxng" ? "baseUrl" : "apiKey"] !== undefined;
  const provider = values.SEARCH_PROVIDER ?? SEARCH_PROVIDERS.find(isReady) ?? "duckduckgo";
  if (!isReady(provider)) {
    const missing = provider === "searxng" ? "SEARXNG_URL" : `${provider.toUpperCase()}_API_KEY`;
    problems.push(`SEARCH_PROVIDER=${provider} needs ${missing}: set it, or choose another.`);
  }
  return { provider, accounts };
}
