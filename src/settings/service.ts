/** Settings of the process itself: where it listens, what it keeps where, its log, and what a request may take. */
import * as z from "zod";
import { choice, duration, number, setting, text } from "./kinds.ts";

export const SERVICE = {
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
};

const MIB = 1024 * 1024;

export const REQUESTS = {
  V1_BODY_LIMIT: number(32 * MIB, 1024, 1024 * MIB, "Largest request body on `/v1`. Bytes."),
  API_BODY_LIMIT: number(MIB, 1024, 1024 * MIB, "Largest request body on `/api`. Bytes."),
  BODY_TIMEOUT: duration(30, "Head start of a request body, which then has to come at 16 KiB a second."),
  SHUTDOWN_GRACE: duration(10, "How long open requests may take to end when the service is stopped.", 0),
};
