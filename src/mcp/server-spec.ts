/** What a caller says of an MCP server, checked and completed: the body of `POST /api/mcp/connect`. */
import * as z from "zod";
import { MCP_TRANSPORTS, type McpSecrets, type McpServerSpec } from "../core/mcp.ts";
import { AppError } from "../errors.ts";

/** Characters. The names of tools begin with it and have at most 64. */
const ID_LIMIT = 32;
const ID = /^[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*$/;
const NAME_LIMIT = 100;
const ARGS_LIMIT = 100;
const TEXT_LIMIT = 4_096;
const GLOBS_LIMIT = 200;
const ENTRIES_LIMIT = 100;
const VALUE_LIMIT = 16_384;

/** RFC 9110's token, and what may stand in a field's value. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** What the transports set themselves. */
const OWN_HEADERS =
  /^(host|content-length|content-type|accept|connection|transfer-encoding|mcp-.*|last-event-id|x-dragoman-.*)$/i;

const noNul = (text: string) => !text.includes("\0");
const NO_NUL = "has to be without NUL characters";
const FEW = `has to hold at most ${ENTRIES_LIMIT} names`;
const isFew = (entries: object) => Object.keys(entries).length <= ENTRIES_LIMIT;
const line = z.string().max(TEXT_LIMIT).refine(noNul, NO_NUL);
const globs = z.array(z.string().min(1).max(NAME_LIMIT)).max(GLOBS_LIMIT);

const env = z
  .record(
    z.string().regex(VARIABLE_NAME, "has to be the name of an environment variable"),
    z.string().max(VALUE_LIMIT).refine(noNul, NO_NUL),
  )
  .refine(isFew, FEW);
const headers = z
  .record(
    z
      .string()
      .regex(HEADER_NAME, "has to be the name of a header")
      .refine(
        (name) => !OWN_HEADERS.test(name),
        "has to be another header: the connection sets this one itself",
      ),
    z.string().max(VALUE_LIMIT).regex(HEADER_VALUE, "has to be the value of a header, on one line"),
  )
  .refine(isFew, FEW);

export const connectRequest = z
  .looseObject({
    server_id: z
      .string()
      .max(ID_LIMIT)
      .regex(ID, "has to be letters and digits, with single - or _ between them")
      .nullish()
      .describe("Begins the names of its tools. Default: made from `name`."),
    name: z.string().trim().min(1).max(NAME_LIMIT).nullish().describe("For people. Default: `server_id`."),
    transport: z
      .enum(MCP_TRANSPORTS)
      .nullish()
      .describe("Default: `stdio` with a `command`, `http` with a `url`."),
    command: line.min(1).nullish().describe("`stdio`: the program, started without a shell."),
    args: z.array(line).max(ARGS_LIMIT).nullish(),
    env: env
      .nullish()
      .describe("`stdio`: variables beside a minimal environment. Kept encrypted, never shown."),
    url: z.string().min(1).max(TEXT_LIMIT).nullish().describe("`http` and `sse`: where it answers."),
    headers: headers
      .nullish()
      .describe("`http` and `sse`: sent with every request. Kept encrypted, never shown."),
    oauth: z
      .looseObject({
        client_id: z.string().min(1).max(TEXT_LIMIT),
        client_secret: z.string().min(1).max(TEXT_LIMIT).optional(),
        scope: z.string().min(1).max(TEXT_LIMIT).optional(),
      })
      .nullish()
      .describe(
        "A client that is registered with the authorization server already. Kept encrypted, never shown. null: the agent registers itself, as it does by default.",
      ),
    tools: z
      .looseObject({ include: globs.nullish(), exclude: globs.nullish() })
      .nullish()
      .describe("Which of its tools are offered: globs over the names that the server gives them."),
  })
  .meta({ id: "McpConnectRequest" });

export type ConnectRequest = z.infer<typeof connectRequest>;

/** null: nothing but the id of a server that is saved already. Throws AppError `invalid_request`. */
export function toServer(request: ConnectRequest): { spec: McpServerSpec; secrets: McpSecrets } | null {
  const { command, url } = request;
  if (!request.transport && !command && !url) {
    if (request.server_id) return null;
    throw invalid("transport", "Say how to reach the server: `command` and `args`, or `url`.");
  }
  const transport = request.transport ?? (command ? "stdio" : "http");
  if (transport === "stdio" && !command)
    throw invalid("command", "command is required with the transport stdio.");
  if (transport === "stdio" && url) throw invalid("url", "url does not go with the transport stdio.");
  if (transport !== "stdio" && command)
    throw invalid("command", `command does not go with the transport ${transport}.`);
  const id = request.server_id ?? toSlug(request.name ?? "");
  if (!id) throw invalid("server_id", "Give the server a `server_id` or a `name` with letters or digits.");
  return {
    spec: {
      id,
      name: request.name ?? id,
      transport,
      command: transport === "stdio" ? (command ?? null) : null,
      args: transport === "stdio" ? (request.args ?? []) : [],
      url: transport === "stdio" ? null : toUrl(url ?? ""),
      tools: { include: request.tools?.include ?? [], exclude: request.tools?.exclude ?? [] },
    },
    secrets: {
      env: transport === "stdio" ? (request.env ?? {}) : {},
      headers: transport === "stdio" ? {} : (request.headers ?? {}),
    },
  };
}

/** Lower-case letters and digits with single `-` between them; empty where the name has none. */
export function toSlug(name: string): string {
  return name
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+/g, "")
    .slice(0, ID_LIMIT)
    .replaceAll(/-+$/g, "");
}

function toUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw invalid("url", "url has to be an http or https URL.");
  const url = new URL(text);
  if (url.username !== "" || url.password !== "")
    throw invalid(
      "url",
      "url must not hold a name or password: put them into `headers`, which are kept encrypted.",
    );
  url.hash = "";
  return url.href;
}

function invalid(path: string, message: string): AppError {
  return new AppError("invalid_request", message, { param: path, details: { errors: [{ path, message }] } });
}
