import { expect, test } from "vitest";
import { ConfigError, parseConfig, secretsOf } from "../src/config.ts";
import { SETTINGS } from "../src/settings.ts";

const node = { runtime: "node" } as const;
const workerd = { runtime: "workerd" } as const;
const EDGE = { LIBSQL_URL: "libsql://db.example", ACCESS_TOKENS: "alice:t1" };

function problemsOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

test("an empty environment gives the documented defaults", () => {
  const config = parseConfig({}, node);
  expect(config).toMatchObject({
    host: "127.0.0.1",
    port: 8000,
    dataDir: "./data",
    workspace: "./workspace",
    terminal: "host",
    sandboxNetwork: [],
    approval: { default: "ask", rules: [] },
    access: { mode: "open", tokens: [], allowedHosts: [], corsOrigins: [] },
    upstream: { firstByteMs: 60_000, idleMs: 120_000, retries: 2 },
    run: { maxSteps: 50, timeoutMs: 1_800_000, tokenBudget: 2_000_000 },
    body: { v1Limit: 32 * 1024 * 1024, apiLimit: 1024 * 1024 },
    shutdownGraceMs: 10_000,
  });
  expect(config.providers.openai.apiKey).toBeUndefined();
});

test("empty and blank values count as unset, unknown names as somebody else's", () => {
  expect(parseConfig({ PORT: "", HOST: "  ", MY_OWN: "x" }, node)).toEqual(parseConfig({}, node));
});

test("every wrong setting is named at once, with what is allowed", () => {
  const problems = problemsOf(() =>
    parseConfig(
      {
        PORT: "70000",
        LOG_LEVEL: "loud",
        TERMINAL: "yes",
        OPENAI_BASE_URL: "localhost:11434",
        MODEL_ALIASES: "claude",
        UPSTREAM_IDLE_TIMEOUT: "-1",
        LIBSQL_URL: "postgres://x",
      },
      node,
    ),
  );
  expect(problems).toHaveLength(7);
  expect(problems).toContain("PORT has to be a whole number from 0 to 65535, not '70000'.");
  expect(problems).toContain("LOG_LEVEL has to be one of debug, info, warning, error, silent, not 'loud'.");
  expect(problems).toContain("TERMINAL has to be one of host, sandbox, virtual, off, not 'yes'.");
});

test("a wrong secret is named and not repeated", () => {
  const problems = problemsOf(() =>
    parseConfig(
      { ACCESS_TOKENS: "hunter2", SECRET_KEY: "short-secret", OPENAI_API_KEY: "sk-two words" },
      node,
    ),
  );
  expect(problems).toHaveLength(3);
  expect(problems.join()).not.toMatch(/hunter2|short-secret|sk-two/);
});

test("lists, durations and choices become values", () => {
  const config = parseConfig(
    {
      MODEL_ALIASES: "claude-*=gpt-5, small = llama3.2:1b ,",
      CONTEXT_WINDOWS: "llama*=8192",
      ACCESS_TOKENS: "alice:t1,bob:t2,alice:t3",
      CORS_ORIGINS: "https://Chat.example:443, chrome-extension://abc",
      ALLOWED_HOSTS: "Box.lan,10.0.0.5:8000",
      UPSTREAM_FIRST_BYTE_TIMEOUT: "0.25",
      STRICT_KEY_PREFIX: "1",
      LOG_LEVEL: "DEBUG",
      GEMINI_BASE_URL: "http://localhost:9000/",
    },
    node,
  );
  expect(config.models).toEqual({
    strictKeyPrefix: true,
    aliases: [
      { glob: "claude-*", model: "gpt-5" },
      { glob: "small", model: "llama3.2:1b" },
    ],
    contextWindows: [{ glob: "llama*", tokens: 8192 }],
  });
  expect(config.access).toMatchObject({
    mode: "tokens",
    tokens: [
      { owner: "alice", token: "t1" },
      { owner: "bob", token: "t2" },
      { owner: "alice", token: "t3" },
    ],
    corsOrigins: ["https://chat.example", "chrome-extension://abc"],
    allowedHosts: ["box.lan", "10.0.0.5:8000"],
  });
  expect(config.upstream.firstByteMs).toBe(250);
  expect(config.log.level).toBe("debug");
  expect(config.providers.gemini.baseUrl).toBe("http://localhost:9000");
});

test("A1: an address that others reach is refused without tokens or keys", () => {
  for (const host of ["0.0.0.0", "::", "192.168.1.4", "box.lan", "127.0.0.1.example.org", "0177.0.0.1"]) {
    const [problem] = problemsOf(() => parseConfig({ HOST: host }, node));
    expect(problem).toContain("ACCESS_TOKENS");
    expect(parseConfig({ HOST: host, ACCESS_TOKENS: "a:b" }, node).host).toBe(host);
    expect(parseConfig({ HOST: host, AUTH: "key" }, node).access.mode).toBe("key");
  }
  for (const host of ["localhost", "127.0.0.1", "127.1.2.3", "[::1]", "::1", "dev.localhost"])
    expect(parseConfig({ HOST: host }, node).access.mode).toBe("open");
});

test("A1: on Workers tokens or keys are required, and a database server", () => {
  const problems = problemsOf(() => parseConfig({}, workerd));
  expect(problems.join("\n")).toMatch(/ACCESS_TOKENS/);
  expect(problems.join("\n")).toMatch(/LIBSQL_URL/);
  expect(problemsOf(() => parseConfig({ ...EDGE, TERMINAL: "host" }, workerd))).toHaveLength(1);
  expect(problemsOf(() => parseConfig({ ...EDGE, TERMINAL: "sandbox" }, workerd))).toHaveLength(1);
  expect(parseConfig(EDGE, workerd).terminal).toBe("virtual");
  const shared = { HOST: "0.0.0.0", AUTH: "key" };
  expect(parseConfig(shared, { runtime: "node" }).terminal).toBe("virtual");
  expect(parseConfig({ ...shared, TERMINAL: "host" }, { runtime: "node" }).terminal).toBe("host");
  expect(parseConfig({ AUTH: "key" }, { runtime: "node" }).terminal).toBe("host");
  const key = { LIBSQL_URL: EDGE.LIBSQL_URL, AUTH: "key" };
  expect(problemsOf(() => parseConfig(key, workerd))[0]).toContain("SECRET_KEY");
  expect(parseConfig({ ...key, SECRET_KEY: "s".repeat(32) }, workerd).access.mode).toBe("key");
});

test("programs are started for callers where they have the machine's shell, and not for everybody with a key", () => {
  const may = (env: Record<string, string>) => parseConfig(env, node).mcp.stdio;
  expect(may({})).toBe(true);
  expect(may({ ACCESS_TOKENS: "a:t" })).toBe(true);
  expect(may({ TERMINAL: "sandbox" })).toBe(false);
  expect(may({ AUTH: "key" })).toBe(false);
  expect(may({ AUTH: "key", MCP_STDIO: "on" })).toBe(true);
});

test("tokens and AUTH=key exclude each other, and a token has one name", () => {
  expect(problemsOf(() => parseConfig({ ACCESS_TOKENS: "a:t", AUTH: "key" }, node))).toHaveLength(1);
  expect(problemsOf(() => parseConfig({ ACCESS_TOKENS: "a:t,b:t" }, node))).toHaveLength(1);
});

test("APPROVAL is a mode, a rules file, or the rules themselves", () => {
  const rules = { rules: [{ tool: "create_file", decision: "allow" }] };
  const readFile = (path: string) => {
    if (path !== "rules.json") throw new Error(`no such file: ${path}`);
    return JSON.stringify(rules);
  };
  expect(parseConfig({ APPROVAL: "AUTO" }, node).approval).toEqual({ default: "auto", rules: [] });
  expect(parseConfig({ APPROVAL: "rules.json" }, { ...node, readFile }).approval).toEqual({
    default: "ask",
    rules: rules.rules,
    source: "rules.json",
  });
  expect(parseConfig({ ...EDGE, APPROVAL: JSON.stringify(rules) }, workerd).approval.rules).toEqual(
    rules.rules,
  );
  expect(problemsOf(() => parseConfig({ APPROVAL: "sometimes" }, { ...node, readFile }))[0]).toMatch(
    /APPROVAL has to be ask, auto, deny .*no such file/,
  );
  expect(problemsOf(() => parseConfig({ APPROVAL: '{"rules":[{"tool":"x"}]}' }, node))[0]).toContain(
    "decision",
  );
});

test("the configuration cannot be changed", () => {
  const config = parseConfig({ ACCESS_TOKENS: "a:t" }, node);
  expect(() => {
    (config.access.tokens[0] as { owner: string }).owner = "b";
  }).toThrow(TypeError);
});

test("every secret is known to redaction", () => {
  const env = {
    ACCESS_TOKENS: "a:token-a,b:token-b",
    OPENAI_API_KEY: "sk-1",
    ANTHROPIC_API_KEY: "sk-ant-2",
    GROQ_API_KEY: "gsk_3",
    GEMINI_API_KEY: "AIza4",
    LIBSQL_AUTH_TOKEN: "jwt-5",
    SECRET_KEY: "k".repeat(40),
  };
  expect(secretsOf(parseConfig(env, node)).sort()).toEqual(
    ["token-a", "token-b", "sk-1", "sk-ant-2", "gsk_3", "AIza4", "jwt-5", "k".repeat(40)].sort(),
  );
});

test("each setting is described, and once", () => {
  expect(new Set(SETTINGS.map(({ name }) => name)).size).toBe(SETTINGS.length);
  for (const { name, default: fallback, description } of SETTINGS) {
    expect(name).toMatch(/^[A-Z][A-Z0-9_]*$/);
    expect(fallback).not.toBe("");
    expect(description).toMatch(/[.`]$/);
  }
});

test("P4: SANDBOX_NETWORK takes names of the public kind, and none of this machine's", () => {
  const networkOf = (value: string) =>
    parseConfig({ SANDBOX_NETWORK: value }, { runtime: "node" }).sandboxNetwork;
  expect(networkOf("API.example.org, *.example.net:443,xn--bcher-kva.example")).toEqual([
    "api.example.org",
    "*.example.net:443",
    "xn--bcher-kva.example",
  ]);
  for (const value of [
    "localhost",
    "*.localhost",
    "a.localhost:80",
    "127.0.0.1",
    "[::1]",
    "0x7f.1",
    "*",
    "*.com",
  ])
    expect(
      problemsOf(() => networkOf(value)),
      value,
    ).toHaveLength(1);
  for (const value of [
    "https://a.example",
    "a.example/x",
    "a..example",
    "-a.example",
    "a.example:port",
    "*a.example",
  ])
    expect(
      problemsOf(() => networkOf(value)),
      value,
    ).toHaveLength(1);
});

test("S3_*: a bucket is configured whole or not at all, and its secret is one", () => {
  const whole = {
    S3_ENDPOINT: "https://s3.example.org/",
    S3_BUCKET: "pictures",
    S3_ACCESS_KEY_ID: "AKIAEXAMPLE",
    S3_SECRET_ACCESS_KEY: "a-secret-of-the-bucket",
  };
  const config = parseConfig(whole, { runtime: "node" });
  expect(config.bucket).toEqual({
    endpoint: "https://s3.example.org",
    bucket: "pictures",
    region: "us-east-1",
    accessKeyId: "AKIAEXAMPLE",
    secretAccessKey: "a-secret-of-the-bucket",
  });
  expect(secretsOf(config)).toContain("a-secret-of-the-bucket");
  expect(parseConfig({ S3_REGION: "auto" }, { runtime: "node" }).bucket).toBeUndefined();
  const { S3_BUCKET: _, S3_ACCESS_KEY_ID: __, ...half } = whole;
  expect(problemsOf(() => parseConfig(half, { runtime: "node" }))).toEqual([
    "A bucket for images needs S3_BUCKET and S3_ACCESS_KEY_ID too: set them, or none of S3_*.",
  ]);
  const wrong = problemsOf(() => parseConfig({ ...whole, S3_BUCKET: "a/b" }, { runtime: "node" }));
  expect(wrong).toEqual([expect.stringContaining("S3_BUCKET has to be the name of a bucket")]);
});
