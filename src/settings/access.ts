/** Settings of who may call, what they may have the agent do unasked, and whom it may reach. */
import * as z from "zod";
import type { AccessConfig, Config, ConfigOptions, Runtime } from "../config.ts";
import { parseAllowed } from "../core/egress.ts";
import { isLoopback } from "../core/loopback.ts";
import { PolicyFile } from "../core/policy.ts";
import type { Values } from "../settings.ts";
import { choice, flag, httpUrl, list, setting, text } from "./kinds.ts";

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

export const ACCESS = {
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
};

export function accessOf(values: Values, problems: string[]): AccessConfig {
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

export function approvalOf(word: string, options: ConfigOptions, problems: string[]): Config["approval"] {
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

/** A shell stands behind this service: it is open to the machine it runs on and to nobody else. */
export function checkExposure(
  values: Values,
  access: AccessConfig,
  runtime: Runtime,
  problems: string[],
): void {
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
