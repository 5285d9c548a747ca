/**
 * Every setting that Dragoman has: its name, its default, what it means and what it may be. `config.ts` reads the
 * environment through this table, and the table in the README is this one.
 */
import * as z from "zod";
import { parseAllowed } from "./core/egress.ts";
import { PROVIDERS, type ProviderName } from "./core/message.ts";

/** What a setting is and how its text becomes a value. */
export interface Setting<T = unknown> {
  /** As the README shows it: the default value, or in words what happens without it. */
  default: string;
  description: string;
  /** What is allowed, after "has to be". */
  allowed: string;
  /** The value is never repeated, in messages or anywhere else. */
  secret?: boolean;
  parse: z.ZodType<T, string>;
  /** The value when the variable is unset or empty. */
  fallback: T;
}

const LONGEST_DURATION_S = 86_400;
const MIB = 1024 * 1024;

function setting<T>(entry: Setting<T>): Setting<T> {
  return entry;
}

const text = z.string();

function number(fallback: number, least: number, most: number, description: string): Setting<number> {
  const whole = /^\d{1,15}$/;
  return {
    default: String(fallback),
    description,
    allowed: `a whole number from ${least} to ${most}`,
    parse: z
      .string()
      .refine((value) => whole.test(value) && Number(value) >= least && Number(value) <= most)
      .transform(Number),
    fallback,
  };
}

/** Money, in the currency of MODEL_PRICES. */
function amount(fallback: number, description: string): Setting<number> {
  const decimal = /^\d{1,9}(\.\d{1,6})?$/;
  return {
    default: String(fallback),
    description,
    allowed: "an amount above 0",
    parse: z
      .string()
      .refine((value) => decimal.test(value) && Number(value) > 0)
      .transform(Number),
    fallback,
  };
}

/** Seconds in the environment, whole milliseconds in the configuration. */
function duration(fallbackSeconds: number, description: string, least = 0.001): Setting<number> {
  const decimal = /^\d{1,6}(\.\d{1,6})?$/;
  return {
    default: String(fallbackSeconds),
    description: `${description} Seconds.`,
    allowed: `a number of seconds from ${least} to ${LONGEST_DURATION_S}`,
    parse: z
      .string()
      .refine((value) => decimal.test(value) && Number(value) >= least && Number(value) <= LONGEST_DURATION_S)
      .transform((value) => Math.ceil(Number(value) * 1000)),
    fallback: fallbackSeconds * 1000,
  };
}

function choice<const T extends string>(values: readonly T[]) {
  return {
    allowed: `one of ${values.join(", ")}`,
    parse: z.string().toLowerCase().pipe(z.enum(values)) as unknown as z.ZodType<T, string>,
  };
}

function flag(description: string): Setting<boolean> {
  return {
    default: "0",
    description,
    allowed: "0 or 1",
    parse: z
      .enum(["0", "1", "false", "true"])
      .transform((value) => value === "1" || value === "true") as z.ZodType<boolean, string>,
    fallback: false,
  };
}

/** A comma-separated list, each entry through `entry`; null there refuses the whole. */
function list<T>(entry: (item: string) => T | null): z.ZodType<T[], string> {
  return z.string().transform((value, context) => {
    const out: T[] = [];
    for (const item of value.split(",")) {
      const trimmed = item.trim();
      if (trimmed === "") continue;
      const parsed = entry(trimmed);
      if (parsed === null) {
        context.addIssue({ code: "custom", message: "entry" });
        return z.NEVER;
      }
      out.push(parsed);
    }
    return out;
  });
}

/** `left=right`, split at the last `=`. */
function pair(item: string): [string, string] | null {
  const at = item.lastIndexOf("=");
  const left = item.slice(0, at).trim();
  const right = item.slice(at + 1).trim();
  return at > 0 && left !== "" && right !== "" ? [left, right] : null;
}

export interface AccessToken {
  owner: string;
  token: string;
}

/** A token holds no colon, since the provider key may follow behind one. */
function accessToken(item: string): AccessToken | null {
  const match = /^([A-Za-z0-9._-]{1,64}):([^\s:,]+)$/.exec(item);
  return match ? { owner: match[1] as string, token: match[2] as string } : null;
}

/** The origin as browsers write it; schemes other than http (`chrome-extension:`, `tauri:`) are taken as they are. */
function origin(item: string): string | null {
  const lower = item.toLowerCase().replace(/\/$/, "");
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#\s@]+$/.test(lower)) return null;
  if (!/^https?:/.test(lower)) return lower;
  return URL.canParse(lower) ? new URL(lower).origin : null;
}

/** A name of the public kind: what this machine calls itself would lead back to this service. */
function domain(item: string): string | null {
  const match =
    /^(\*\.)?(?:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9](:\d{1,5})?$/i.exec(item);
  return match && !/\.(localhost|localdomain)(:|$)/i.test(item) ? item.toLowerCase() : null;
}

function httpUrl(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}

/** Search engines, in the order in which they are taken where several are configured. */
export const SEARCH_PROVIDERS = ["tavily", "brave", "exa", "searxng", "duckduckgo"] as const;

/** An address that requests are sent to, without a slash at the end. A password in it could not be kept. */
function address(description: string, byDefault: string): Setting<string | undefined> {
  return {
    default: byDefault,
    description,
    allowed: "an http or https URL without a user name, query or fragment",
    parse: z
      .string()
      .refine((value) => httpUrl(value) && /^[^?#@]+$/.test(value))
      .transform((url) => url.replace(/\/+$/, "")),
    fallback: undefined,
  };
}

function searchKey(engine: string): Setting<string | undefined> {
  return {
    default: "none",
    description: `The operator's key for searching with ${engine}.`,
    allowed: "a key without blanks",
    secret: true,
    parse: z.string().regex(/^\S+$/),
    fallback: undefined,
  };
}

function bucketKey(description: string): Setting<string | undefined> {
  return {
    default: "none",
    description,
    allowed: "a key without blanks",
    secret: true,
    parse: z.string().regex(/^\S+$/),
    fallback: undefined,
  };
}

function speechModel(vendor: string, model: string): Setting<string> {
  return {
    default: model,
    description: `The model that speaks when ${vendor} is asked to and none is named.`,
    allowed: "a model id",
    parse: text,
    fallback: model,
  };
}

/** Names and default models. The models are the current general ones of each vendor. */
const VENDORS: Record<ProviderName, { name: string; model: string }> = {
  anthropic: { name: "Anthropic", model: "claude-sonnet-5-5" },
  groq: { name: "Groq", model: "openai/gpt-oss-120b" },
  openai: { name: "OpenAI", model: "gpt-5.5" },
  gemini: { name: "Gemini", model: "gemini-3.8-flash" },
};

type Upper = Uppercase<ProviderName>;
type ProviderSettings = { [K in `${Upper}_API_KEY` | `${Upper}_BASE_URL`]: Setting<string | undefined> } & {
  [K in `${Upper}_MODEL`]: Setting<string>;
};

function providerSettings(): ProviderSettings {
  const out: Record<string, Setting<string | undefined>> = {};
  for (const provider of PROVIDERS) {
    const { name, model } = VENDORS[provider];
    const prefix = provider.toUpperCase();
    out[`${prefix}_API_KEY`] = {
      default: "none",
      description: `The operator's ${name} key, used for requests that bring none.`,
      allowed: "a key without blanks",
      secret: true,
      parse: z.string().regex(/^\S+$/),
      fallback: undefined,
    };
    out[`${prefix}_BASE_URL`] = {
      default: `${name}'s own`,
      description: `Where ${name} requests go: any server that speaks its protocol.`,
      allowed: "an http or https URL",
      parse: z
        .string()
        .refine(httpUrl)
        .transform((url) => url.replace(/\/+$/, "")),
      fallback: undefined,
    };
    out[`${prefix}_MODEL`] = {
      default: model,
      description: `The model behind \`dragoman\` when ${name} answers.`,
      allowed: "a model id",
      parse: text,
      fallback: model,
    };
  }
  return out as ProviderSettings;
}

export const SETTINGS_TABLE = {
  HOST: setting({
    default: "127.0.0.1",
    description:
      "Address to listen on. Other than loopback it takes `ACCESS_TOKENS` or `AUTH=key`. Not on Workers.",
    allowed: "a host name or an IP address, without a port",
    parse: z
      .string()
      .regex(/^(\[[0-9a-fA-F:.]+\]|[0-9a-fA-F:.]+|[A-Za-z0-9.-]+)$/)
      .transform((host) => host.replace(/^\[|\]$/g, "")),
    fallback: "127.0.0.1",
  }),
  PORT: number(8000, 0, 65_535, "Port to listen on; 0 takes any free one. Not on Workers."),
  DATA_DIR: setting({
    default: "./data",
    description: "Folder of the database, the secret key and uploads; made with mode 0700. Not on Workers.",
    allowed: "a path",
    parse: text,
    fallback: "./data",
  }),
  WORKSPACE: setting({
    default: "./workspace",
    description: "The folder the agent works in. Virtual on Workers and with `TERMINAL=virtual`.",
    allowed: "a path",
    parse: text,
    fallback: "./workspace",
  }),
  LIBSQL_URL: setting<string | undefined>({
    default: "a file in `DATA_DIR`",
    description: "A libSQL server instead of the file. Required on Workers.",
    allowed: "a URL that begins with libsql:, https:, http:, wss: or ws:",
    parse: z
      .string()
      .refine((value) => URL.canParse(value) && /^(libsql|https?|wss?):$/.test(new URL(value).protocol)),
    fallback: undefined,
  }),
  LIBSQL_AUTH_TOKEN: setting<string | undefined>({
    default: "none",
    description: "The token for that server.",
    allowed: "a token without blanks",
    secret: true,
    parse: z.string().regex(/^\S+$/),
    fallback: undefined,
  }),
  LOG_LEVEL: setting<"debug" | "info" | "warning" | "error" | "silent">({
    default: "info",
    description: "The least urgent lines to log: `debug`, `info`, `warning`, `error` or `silent`.",
    ...choice(["debug", "info", "warning", "error", "silent"]),
    fallback: "info",
  }),
  LOG_FORMAT: setting<"json" | "pretty" | undefined>({
    default: "`pretty` on a terminal, else `json`",
    description: "How log lines look: `json` or `pretty`.",
    ...choice(["json", "pretty"]),
    fallback: undefined,
  }),
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
  ...providerSettings(),
  SEARCH_PROVIDER: setting<(typeof SEARCH_PROVIDERS)[number] | undefined>({
    default: "the first that is configured, else `duckduckgo`",
    description:
      "Where `search_web` looks: `tavily`, `brave`, `exa`, `searxng`, or `duckduckgo`, which takes no key and may refuse.",
    ...choice(SEARCH_PROVIDERS),
    fallback: undefined,
  }),
  TAVILY_API_KEY: searchKey("Tavily"),
  TAVILY_BASE_URL: address("Where searches with Tavily go.", "Tavily's own"),
  BRAVE_API_KEY: searchKey("Brave Search"),
  BRAVE_BASE_URL: address("Where searches with Brave go.", "Brave's own"),
  EXA_API_KEY: searchKey("Exa"),
  EXA_BASE_URL: address("Where searches with Exa go.", "Exa's own"),
  SEARXNG_URL: address("A SearXNG to search with; its settings have to allow `json`.", "none"),
  DUCKDUCKGO_BASE_URL: address("Where searches with DuckDuckGo go.", "`https://html.duckduckgo.com`"),
  STRICT_KEY_PREFIX: flag(
    "`1` refuses keys whose prefix belongs to no provider instead of sending them to Gemini.",
  ),
  MODEL_ALIASES: setting<{ glob: string; model: string }[]>({
    default: "none",
    description: "Model ids to replace, first match wins: `claude-*=gpt-5.5,small=gemini-3.8-flash`.",
    allowed: "glob=model entries with commas between them",
    parse: list((item) => {
      const entry = pair(item);
      return entry && { glob: entry[0], model: entry[1] };
    }),
    fallback: [],
  }),
  CONTEXT_WINDOWS: setting<{ glob: string; tokens: number }[]>({
    default: "built-in table",
    description: "Context windows of models that the built-in table has not or has wrong: `llama*=8192`.",
    allowed: "glob=tokens entries with commas between them, tokens a whole number from 256",
    parse: list((item) => {
      const entry = pair(item);
      return entry && /^\d{3,9}$/.test(entry[1]) && Number(entry[1]) >= 256
        ? { glob: entry[0], tokens: Number(entry[1]) }
        : null;
    }),
    fallback: [],
  }),
  APPROVAL: setting({
    default: "ask",
    description:
      "What happens to tools that write or execute: `ask`, `auto`, `deny`, or a JSON rules file (on Workers its text).",
    allowed: "ask, auto, deny, the path of a JSON rules file, or the rules themselves as JSON",
    parse: text,
    fallback: "ask",
  }),
  ALLOW_AUTO_APPROVE: flag(
    "`1` lets a caller of `/api/chat` say `auto_approve`: what would ask runs without asking.",
  ),
  ACCESS_TOKENS: setting<AccessToken[]>({
    default: "none",
    description: "Who may use the service: `alice:token1,bob:token2`. Each name owns what it makes.",
    allowed:
      "name:token entries with commas between them; a name is up to 64 of A-Z a-z 0-9 . _ -, a token has no blank and no colon",
    secret: true,
    parse: list(accessToken),
    fallback: [],
  }),
  AUTH: setting<"key" | undefined>({
    default: "none",
    description: "`key`: every request brings a provider key, and that key owns what it makes.",
    ...choice(["key"]),
    fallback: undefined,
  }),
  ALLOWED_HOSTS: setting<string[]>({
    default: "none",
    description:
      "Host names other than loopback under which the service may be called without a token: `box.lan,10.0.0.5`.",
    allowed: "host names with commas between them, each with or without a port",
    parse: list((item) =>
      /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i.test(item) ? item.toLowerCase() : null,
    ),
    fallback: [],
  }),
  FETCH_ALLOW: setting<string[]>({
    default: "none",
    description:
      "Private places that the agent, webhooks and watchdogs may reach: `localhost:11434,printer.local,10.1.0.0/16`.",
    allowed:
      "host names, addresses or CIDR ranges with commas between them, names and addresses with or without a port",
    parse: list((item) => (parseAllowed(item) ? item.toLowerCase() : null)),
    fallback: [],
  }),
  PUBLIC_URL: setting<string | undefined>({
    default: "as each request has it",
    description:
      "Where browsers reach the service, for authorizations of MCP servers: `https://agent.example`.",
    allowed: "an http or https origin, without a path",
    parse: z
      .string()
      .refine((value) => httpUrl(value) && new URL(value).href === `${new URL(value).origin}/`)
      .transform((value) => new URL(value).origin),
    fallback: undefined,
  }),
  CORS_ORIGINS: setting<string[]>({
    default: "none",
    description: "Web pages that may call the service from a browser: `https://chat.example`.",
    allowed: "origins such as https://chat.example with commas between them",
    parse: list(origin),
    fallback: [],
  }),
  SECRET_KEY: setting<string | undefined>({
    default: "`DATA_DIR/secret.key`, made at first start",
    description: "The server's secret, at least 32 characters. Required on Workers with `AUTH=key`.",
    allowed: "at least 32 characters without blanks",
    secret: true,
    parse: z.string().regex(/^\S{32,}$/),
    fallback: undefined,
  }),
  MAX_STEPS: number(50, 1, 10_000, "Model calls in one run."),
  RUN_TIMEOUT: duration(1800, "Longest time of one run."),
  RUN_TOKEN_BUDGET: number(2_000_000, 1, 1_000_000_000, "Input and output tokens of one run together."),
  SWARM_CONCURRENCY: number(5, 1, 50, "Members of a swarm that work at the same time."),
  SWARM_DEPTH: number(2, 0, 5, "Delegations below one another; 0: no agent may delegate."),
  AUTOMATION_CONCURRENCY: number(4, 1, 1_000, "Runs of scheduled jobs at once, in one process."),
  AUTOMATION_RUN_TOKENS: number(
    200_000,
    1,
    1_000_000_000,
    "Tokens that one run of a job may use. A job may ask for less.",
  ),
  AUTOMATION_DAY_TOKENS: number(
    2_000_000,
    1,
    1_000_000_000_000,
    "Tokens that all jobs of one owner may use on a day, in UTC.",
  ),
  AUTOMATION_JOB_TOKENS: number(
    50_000_000,
    1,
    1_000_000_000_000,
    "Tokens that a job may use in its life; then it is paused.",
  ),
  AUTOMATION_RUN_MONEY: amount(2, "The same of one run in money, for models with a price."),
  AUTOMATION_DAY_MONEY: amount(20, "The same of all jobs of one owner on a day."),
  AUTOMATION_JOB_MONEY: amount(500, "The same of a job in its life."),
  MODEL_PRICES: setting<{ glob: string; input: number; output: number }[]>({
    default: "none",
    description:
      "What a million input and output tokens cost, first match wins: `gpt-5*=1.25/10,claude-*=3/15`. Any currency.",
    allowed: "glob=input/output entries with commas between them",
    parse: list((item) => {
      const entry = pair(item);
      const price = entry && /^(\d{1,6}(?:\.\d{1,6})?)\/(\d{1,6}(?:\.\d{1,6})?)$/.exec(entry[1]);
      return price ? { glob: entry[0], input: Number(price[1]), output: Number(price[2]) } : null;
    }),
    fallback: [],
  }),
  RUN_LEASE: duration(
    15,
    "How long a run stays with a process that has gone silent before another goes on with it.",
    2,
  ),
  SESSION_WAIT: duration(
    30,
    "How long a turn waits for the one before it in its session, before it is refused with 409.",
    0,
  ),
  MAX_RUNS: number(0, 0, 1_000_000, "Runs that one owner may have under way in a process; 0 is any number."),
  RATE_LIMIT: number(
    0,
    0,
    1_000_000,
    "Requests that one owner may send a minute to a process; 0 is any number.",
  ),
  MEMORY_RECALL_TOKENS: number(
    500,
    0,
    20_000,
    "Tokens of a conversation's prompt that what is remembered of its user may have; 0 is none.",
  ),
  MEMORY_EXTRACTION: setting<"off" | "on">({
    default: "off",
    description:
      "`on`: once a session has been idle, its model is asked what of the user's words is worth remembering.",
    ...choice(["off", "on"]),
    fallback: "off",
  }),
  MEMORY_EXTRACTION_IDLE: duration(300, "How long a session has to be idle for that.", 1),
  MEMORY_EXTRACTION_TOKENS: number(4_000, 1_000, 200_000, "Tokens that one such look may cost, in and out."),
  EMBEDDING_PROVIDER: setting<"openai" | "gemini" | undefined>({
    default: "none",
    description:
      "Memories are searched by meaning too, with vectors of this provider: `openai` or `gemini`, or what imitates one.",
    ...choice(["openai", "gemini"]),
    fallback: undefined,
  }),
  EMBEDDING_MODEL: setting<string | undefined>({
    default: "`text-embedding-3-small` or `gemini-embedding-001`",
    description: "The model that makes them. Another one makes them anew, in the background.",
    allowed: "a model id",
    parse: text,
    fallback: undefined,
  }),
  EMBEDDING_BASE_URL: setting<string | undefined>({
    default: "the provider's",
    description: "Where the requests for vectors go; with it no key of the provider's is used.",
    allowed: "an http or https URL",
    parse: z
      .string()
      .refine(httpUrl)
      .transform((url) => url.replace(/\/+$/, "")),
    fallback: undefined,
  }),
  EMBEDDING_API_KEY: setting<string | undefined>({
    default: "the operator's key for the provider",
    description: "The key for them.",
    allowed: "a key without blanks",
    secret: true,
    parse: z.string().regex(/^\S+$/),
    fallback: undefined,
  }),
  OPENAI_TTS_MODEL: speechModel("OpenAI", "gpt-4o-mini-tts"),
  GROQ_TTS_MODEL: speechModel("Groq", "canopylabs/orpheus-v1-english"),
  GEMINI_TTS_MODEL: speechModel("Gemini", "gemini-3.8-flash-tts"),
  UPSTREAM_FIRST_BYTE_TIMEOUT: duration(60, "How long a provider may take until its first byte."),
  UPSTREAM_IDLE_TIMEOUT: duration(120, "How long a provider may be silent between two bytes."),
  UPSTREAM_RETRIES: number(
    2,
    0,
    10,
    "How often a failed call to a provider is repeated, before its first byte.",
  ),
  S3_ENDPOINT: address(
    "An S3-compatible service that keeps the images of notes, instead of the database: `https://s3.eu-central-1.amazonaws.com`, or that of MinIO or R2.",
    "none",
  ),
  S3_BUCKET: {
    default: "none",
    description: "The bucket for images.",
    allowed: "the name of a bucket: 3 to 63 letters, digits, dots, hyphens and underscores",
    parse: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/),
    fallback: undefined as string | undefined,
  },
  S3_REGION: {
    default: "us-east-1",
    description: "The region of the bucket; `auto` for R2.",
    allowed: "a name of letters, digits and hyphens",
    parse: z.string().regex(/^[a-z0-9-]{1,64}$/),
    fallback: "us-east-1",
  },
  S3_ACCESS_KEY_ID: bucketKey("Who the service is to the bucket."),
  S3_SECRET_ACCESS_KEY: bucketKey("The secret that requests to the bucket are signed with."),
  V1_BODY_LIMIT: number(32 * MIB, 1024, 1024 * MIB, "Largest request body on `/v1`. Bytes."),
  API_BODY_LIMIT: number(MIB, 1024, 1024 * MIB, "Largest request body on `/api`. Bytes."),
  BODY_TIMEOUT: duration(30, "Head start of a request body, which then has to come at 16 KiB a second."),
  SHUTDOWN_GRACE: duration(10, "How long open requests may take to end when the service is stopped.", 0),
};

export type SettingName = keyof typeof SETTINGS_TABLE;
export type Values = {
  [K in SettingName]: (typeof SETTINGS_TABLE)[K] extends Setting<infer T> ? T : never;
};

/** The table as the README shows it. */
export const SETTINGS: { name: string; default: string; description: string }[] = Object.entries(
  SETTINGS_TABLE,
).map(([name, entry]) => ({ name, default: entry.default, description: entry.description }));

/** Reads every setting. A wrong one is a sentence in `problems` and missing in `values`. */
export function readSettings(env: Record<string, string | undefined>): {
  values: Values;
  problems: string[];
} {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, entry] of Object.entries(SETTINGS_TABLE) as [SettingName, Setting][]) {
    const raw = env[name]?.trim();
    if (!raw) {
      values[name] = entry.fallback;
      continue;
    }
    const parsed = entry.parse.safeParse(raw);
    if (parsed.success) values[name] = parsed.data;
    else
      problems.push(
        `${name} has to be ${entry.allowed}${entry.secret ? "" : `, not '${raw.slice(0, 80)}'`}.`,
      );
  }
  return { values: values as Values, problems };
}
