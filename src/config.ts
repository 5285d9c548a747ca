/** Environment -> {@link Config}: parsed once at start, plain and frozen afterwards. Settings are described in settings.ts. */
import { isLoopback } from "./core/loopback.ts";
import { PROVIDERS, type ProviderName } from "./core/message.ts";
import { PolicyFile } from "./core/policy.ts";
import { type AccessToken, readSettings, SEARCH_PROVIDERS, type Values } from "./settings.ts";

export type Runtime = "node" | "bun" | "workerd";

export interface ProviderConfig {
  /** The operator's key. */
  apiKey?: string | undefined;
  /** Without a slash at the end; absent means the vendor's own. */
  baseUrl?: string | undefined;
  /** The default model. */
  model: string;
}

export interface EmbeddingConfig {
  provider: "openai" | "gemini";
  model: string;
  /** `none` for a server that asks for no key. */
  apiKey: string;
  baseUrl?: string | undefined;
}

export interface AccessConfig {
  /** `open`: loopback without tokens; `tokens`: ACCESS_TOKENS; `key`: AUTH=key. */
  mode: "open" | "tokens" | "key";
  tokens: readonly AccessToken[];
  /** Lower case, with a port where the operator named one. */
  allowedHosts: readonly string[];
  corsOrigins: readonly string[];
  /** SECRET_KEY; where it is unset the local platform has a file instead. */
  secretKey?: string | undefined;
}

export interface Config {
  runtime: Runtime;
  host: string;
  port: number;
  dataDir: string;
  workspace: string;
  /** `url` absent: the file in `dataDir`. */
  database: { url?: string | undefined; authToken?: string | undefined };
  log: { level: Values["LOG_LEVEL"]; format?: "json" | "pretty" | undefined };
  terminal: "host" | "sandbox" | "virtual" | "off";
  /** Domains that commands in the sandbox may reach. */
  sandboxNetwork: readonly string[];
  providers: Readonly<Record<ProviderName, ProviderConfig>>;
  models: {
    strictKeyPrefix: boolean;
    aliases: readonly { glob: string; model: string }[];
    contextWindows: readonly { glob: string; tokens: number }[];
  };
  /** Mode and rules; `source` is the file they came from. */
  approval: PolicyFile & { source?: string | undefined };
  access: AccessConfig;
  /** The origin at which browsers reach the service; absent: as each request has it. */
  publicUrl?: string | undefined;
  /** `stdio`: callers may have programs started. Milliseconds. */
  mcp: { stdio: boolean; connectMs: number; callMs: number };
  /** Entries of FETCH_ALLOW: hosts, `host:port`, ranges. */
  fetch: { allow: readonly string[] };
  /** Where `search_web` looks, and what the operator has set for each engine. */
  search: {
    provider: (typeof SEARCH_PROVIDERS)[number];
    accounts: Readonly<
      Record<(typeof SEARCH_PROVIDERS)[number], { apiKey?: string | undefined; baseUrl?: string | undefined }>
    >;
  };
  /** Where the images of notes are kept; absent: in the database. */
  bucket?: BucketConfig | undefined;
  /** Milliseconds. */
  upstream: { firstByteMs: number; idleMs: number; retries: number };
  run: { maxSteps: number; timeoutMs: number; tokenBudget: number };
  swarm: { concurrency: number; depth: number };
  /** Milliseconds. */
  sessions: { waitMs: number; leaseMs: number };
  automation: {
    concurrency: number;
    limits: Readonly<Record<`${"run" | "day" | "job"}${"Tokens" | "Money"}`, number>>;
    /** Money for a million tokens. */
    prices: readonly { glob: string; input: number; output: number }[];
  };
  /** The models that speak where none is named. */
  speech: Readonly<Record<Exclude<ProviderName, "anthropic">, string>>;
  memory: {
    /** Of a prompt; 0 is none. */
    recallTokens: number;
    /** Absent: nothing is extracted. Milliseconds, and tokens of one look. */
    extraction?: { idleMs: number; tokens: number } | undefined;
    /** Absent: words alone are searched. */
    embedding?: EmbeddingConfig | undefined;
  };
  /** Callers may have their tools run unasked. */
  allowAutoApprove: boolean;
  /** Of one owner; 0 is no limit. */
  quota: { requestsPerMinute: number; runs: number };
  /** Bytes, and milliseconds of head start for a slow body. */
  body: { v1Limit: number; apiLimit: number; timeoutMs: number };
  /** Milliseconds. */
  shutdownGraceMs: number;
}

export interface BucketConfig {
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/** One or more settings are wrong: `problems` has a sentence for each, `message` all of them. */
export class ConfigError extends Error {
  override name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The settings are wrong.\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.problems = problems;
  }
}

export interface ConfigOptions {
  runtime: Runtime;
  /** Reads the rules file that APPROVAL names; absent where there are no files. Throws when it cannot. */
  readFile?(path: string): string;
}

/** Throws {@link ConfigError} with every wrong setting at once. Unknown names are somebody else's. */
export function parseConfig(env: Record<string, string | undefined>, options: ConfigOptions): Config {
  const { values, problems } = readSettings(env);
  const approval = approvalOf(values.APPROVAL, options, problems);
  const access = accessOf(values, problems);
  const search = searchOf(values, problems);
  const bucket = bucketOf(values, problems);
  const embedding = embeddingOf(values, problems);
  checkExposure(values, access, options.runtime, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return freeze({
    runtime: options.runtime,
    host: values.HOST,
    port: values.PORT,
    dataDir: values.DATA_DIR,
    workspace: values.WORKSPACE,
    database: { url: values.LIBSQL_URL, authToken: values.LIBSQL_AUTH_TOKEN },
    log: { level: values.LOG_LEVEL, format: values.LOG_FORMAT },
    terminal: values.TERMINAL ?? defaultTerminal(values, options.runtime),
    sandboxNetwork: values.SANDBOX_NETWORK,
    providers: providersOf(values),
    models: {
      strictKeyPrefix: values.STRICT_KEY_PREFIX,
      aliases: values.MODEL_ALIASES,
      contextWindows: values.CONTEXT_WINDOWS,
    },
    approval,
    access,
    publicUrl: values.PUBLIC_URL,
    mcp: {
      stdio: mayStartServers(values, options.runtime),
      connectMs: values.MCP_CONNECT_TIMEOUT,
      callMs: values.MCP_CALL_TIMEOUT,
    },
    fetch: { allow: values.FETCH_ALLOW },
    search,
    bucket,
    upstream: {
      firstByteMs: values.UPSTREAM_FIRST_BYTE_TIMEOUT,
      idleMs: values.UPSTREAM_IDLE_TIMEOUT,
      retries: values.UPSTREAM_RETRIES,
    },
    run: {
      maxSteps: values.MAX_STEPS,
      timeoutMs: values.RUN_TIMEOUT,
      tokenBudget: values.RUN_TOKEN_BUDGET,
    },
    swarm: { concurrency: values.SWARM_CONCURRENCY, depth: values.SWARM_DEPTH },
    sessions: { waitMs: values.SESSION_WAIT, leaseMs: values.RUN_LEASE },
    automation: {
      concurrency: values.AUTOMATION_CONCURRENCY,
      limits: {
        runTokens: values.AUTOMATION_RUN_TOKENS,
        dayTokens: values.AUTOMATION_DAY_TOKENS,
        jobTokens: values.AUTOMATION_JOB_TOKENS,
        runMoney: values.AUTOMATION_RUN_MONEY,
        dayMoney: values.AUTOMATION_DAY_MONEY,
        jobMoney: values.AUTOMATION_JOB_MONEY,
      },
      prices: values.MODEL_PRICES,
    },
    speech: {
      openai: values.OPENAI_TTS_MODEL,
      groq: values.GROQ_TTS_MODEL,
      gemini: values.GEMINI_TTS_MODEL,
    },
    memory: {
      recallTokens: values.MEMORY_RECALL_TOKENS,
      extraction:
        values.MEMORY_EXTRACTION === "on"
          ? { idleMs: values.MEMORY_EXTRACTION_IDLE, tokens: values.MEMORY_EXTRACTION_TOKENS }
          : undefined,
      embedding,
    },
    allowAutoApprove: values.ALLOW_AUTO_APPROVE,
    quota: { requestsPerMinute: values.RATE_LIMIT, runs: values.MAX_RUNS },
    body: {
      v1Limit: values.V1_BODY_LIMIT,
      apiLimit: values.API_BODY_LIMIT,
      timeoutMs: values.BODY_TIMEOUT,
    },
    shutdownGraceMs: values.SHUTDOWN_GRACE,
  });
}

/** With AUTH=key anybody may come and approve his own commands: beyond this machine that takes the operator's word. */
function defaultTerminal({ AUTH, HOST }: Values, runtime: Runtime): Config["terminal"] {
  return runtime === "workerd" || (AUTH === "key" && !isLoopback(HOST)) ? "virtual" : "host";
}

/** Every secret in the configuration, for exact-value redaction. */
export function secretsOf(config: Config): string[] {
  const secrets = [config.database.authToken, config.access.secretKey];
  for (const provider of PROVIDERS) secrets.push(config.providers[provider].apiKey);
  for (const { token } of config.access.tokens) secrets.push(token);
  for (const { apiKey } of Object.values(config.search.accounts)) secrets.push(apiKey);
  secrets.push(config.bucket?.secretAccessKey);
  const embedding = config.memory.embedding?.apiKey;
  if (embedding !== NO_KEY) secrets.push(embedding);
  return secrets.filter((secret) => secret !== undefined);
}

function providersOf(values: Values): Record<ProviderName, ProviderConfig> {
  const out: Partial<Record<ProviderName, ProviderConfig>> = {};
  for (const provider of PROVIDERS) {
    const prefix = provider.toUpperCase() as Uppercase<ProviderName>;
    out[provider] = {
      apiKey: values[`${prefix}_API_KEY`],
      baseUrl: values[`${prefix}_BASE_URL`],
      model: values[`${prefix}_MODEL`],
    };
  }
  return out as Record<ProviderName, ProviderConfig>;
}

/** Who may run any command here may start any server; but not everybody who has a key, since any text is one. */
function mayStartServers({ MCP_STDIO, TERMINAL, AUTH }: Values, runtime: Runtime): boolean {
  if (runtime === "workerd") return false;
  return MCP_STDIO === undefined ? (TERMINAL ?? "host") === "host" && AUTH === undefined : MCP_STDIO === "on";
}

/** The engine that is named, otherwise the first that is configured, otherwise the one that takes no key. */
function searchOf(values: Values, problems: string[]): Config["search"] {
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

/** All four or none: half of them would keep images where nobody expects them. */
function bucketOf(values: Values, problems: string[]): BucketConfig | undefined {
  const names = ["S3_ENDPOINT", "S3_BUCKET", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY"] as const;
  const missing = names.filter((name) => values[name] === undefined);
  const { S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, S3_REGION } = values;
  if (S3_ENDPOINT && S3_BUCKET && S3_ACCESS_KEY_ID && S3_SECRET_ACCESS_KEY)
    return {
      endpoint: S3_ENDPOINT,
      bucket: S3_BUCKET,
      region: S3_REGION,
      accessKeyId: S3_ACCESS_KEY_ID,
      secretAccessKey: S3_SECRET_ACCESS_KEY,
    };
  const wrong = problems.some((problem) => names.some((name) => problem.startsWith(`${name} `)));
  if (missing.length < names.length && !wrong)
    problems.push(`A bucket for images needs ${missing.join(" and ")} too: set them, or none of S3_*.`);
  return undefined;
}

/** SDKs send some key or other. */
const NO_KEY = "none";

/** A key goes to the address that it belongs to: the provider's own is not sent to EMBEDDING_BASE_URL. */
function embeddingOf(values: Values, problems: string[]): EmbeddingConfig | undefined {
  const provider = values.EMBEDDING_PROVIDER;
  if (provider === undefined) {
    if (values.EMBEDDING_MODEL !== undefined || values.EMBEDDING_BASE_URL !== undefined)
      problems.push(
        "EMBEDDING_PROVIDER has to be set too: openai or gemini, whose protocol is spoken there.",
      );
    return undefined;
  }
  const [key, url, model] =
    provider === "openai"
      ? [values.OPENAI_API_KEY, values.OPENAI_BASE_URL, "text-embedding-3-small"]
      : [values.GEMINI_API_KEY, values.GEMINI_BASE_URL, "gemini-embedding-001"];
  const baseUrl = values.EMBEDDING_BASE_URL ?? url;
  const apiKey = values.EMBEDDING_API_KEY ?? (values.EMBEDDING_BASE_URL === undefined ? key : undefined);
  if (apiKey === undefined && baseUrl === undefined)
    problems.push(
      `EMBEDDING_API_KEY or ${provider.toUpperCase()}_API_KEY has to be set with EMBEDDING_PROVIDER=${provider}.`,
    );
  return { provider, model: values.EMBEDDING_MODEL ?? model, apiKey: apiKey ?? NO_KEY, baseUrl };
}

function approvalOf(word: string, options: ConfigOptions, problems: string[]): Config["approval"] {
  const mode = word.toLowerCase();
  if (mode === "ask" || mode === "auto" || mode === "deny") return { default: mode, rules: [] };
  const inline = word.startsWith("{");
  try {
    if (!inline && !options.readFile)
      throw new Error("there are no files here: set the rules themselves as JSON");
    const text = inline ? word : (options.readFile?.(word) ?? "");
    const parsed = PolicyFile.safeParse(JSON.parse(text));
    if (parsed.success) return { ...parsed.data, source: inline ? undefined : word };
    const issue = parsed.error.issues[0];
    throw new Error(`${issue?.path.join(".") || "the file"}: ${issue?.message}`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    problems.push(
      `APPROVAL has to be ask, auto, deny or the path of a JSON rules file; '${word.slice(0, 80)}' cannot be used (${reason}).`,
    );
    return { default: "deny", rules: [] };
  }
}

function accessOf(values: Values, problems: string[]): AccessConfig {
  const tokens = values.ACCESS_TOKENS ?? [];
  if (new Set(tokens.map(({ token }) => token)).size < tokens.length)
    problems.push("ACCESS_TOKENS has the same token twice: give every name a token of its own.");
  if (tokens.length > 0 && values.AUTH === "key")
    problems.push("ACCESS_TOKENS and AUTH=key exclude each other: unset one of them.");
  return {
    mode: tokens.length > 0 ? "tokens" : values.AUTH === "key" ? "key" : "open",
    tokens,
    allowedHosts: values.ALLOWED_HOSTS,
    corsOrigins: values.CORS_ORIGINS,
    secretKey: values.SECRET_KEY,
  };
}

/** A shell stands behind this service: it is open to the machine it runs on and to nobody else. */
function checkExposure(values: Values, access: AccessConfig, runtime: Runtime, problems: string[]): void {
  const wrong = new Set(problems.map((problem) => problem.slice(0, problem.indexOf(" "))));
  const open = access.mode === "open" && !wrong.has("ACCESS_TOKENS") && !wrong.has("AUTH");
  if (runtime !== "workerd") {
    if (open && !wrong.has("HOST") && !isLoopback(values.HOST))
      problems.push(
        `HOST=${values.HOST} can be reached from other machines: set ACCESS_TOKENS=name:token or AUTH=key, or leave HOST at 127.0.0.1.`,
      );
    return;
  }
  if (open)
    problems.push("On Workers everybody can reach the service: set ACCESS_TOKENS=name:token or AUTH=key.");
  if (access.mode === "key" && !access.secretKey && !wrong.has("SECRET_KEY"))
    problems.push("SECRET_KEY has to be set on Workers with AUTH=key: at least 32 random characters.");
  if (values.LIBSQL_URL === undefined && !wrong.has("LIBSQL_URL"))
    problems.push("LIBSQL_URL has to be set on Workers: the URL of a libSQL server.");
  if (values.TERMINAL === "host" || values.TERMINAL === "sandbox")
    problems.push(`TERMINAL has to be virtual or off on Workers, not '${values.TERMINAL}'.`);
}

function freeze<T extends object>(value: T): T {
  for (const inner of Object.values(value)) if (typeof inner === "object" && inner !== null) freeze(inner);
  return Object.freeze(value);
}
