/** Environment -> {@link Config}: parsed once at start, plain and frozen afterwards. Settings are described in settings.ts. */
import { PROVIDERS, type ProviderName } from "./core/message.ts";
import type { PolicyFile } from "./core/policy.ts";
import { type AccessToken, accessOf, approvalOf, checkExposure } from "./settings/access.ts";
import { bucketOf, embeddingOf, NO_KEY } from "./settings/knowledge.ts";
import { providersOf } from "./settings/providers.ts";
import { defaultTerminal, mayStartServers, type SEARCH_PROVIDERS, searchOf } from "./settings/tools.ts";
import { readSettings, type Values } from "./settings.ts";

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

function freeze<T extends object>(value: T): T {
  for (const inner of Object.values(value)) if (typeof inner === "object" && inner !== null) freeze(inner);
  return Object.freeze(value);
}
