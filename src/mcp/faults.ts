/** What goes wrong between us and a server, in words for a person or a model. */
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { SseError } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { AppError } from "../errors.ts";
import { plainText } from "./plain-text.ts";

/** Codes of the errors that stand in for an answer which did not come. Outside those that the protocol knows. */
export const LOST = -39_001;
export const TOO_LARGE = -39_002;

/** Characters shown of what a server says. */
const QUOTE_LIMIT = 500;

export interface Failure {
  kind: /** It wants an authorization that it has not got. */
    | "unauthorized"
    /** Nothing has reached it, or it has refused the message as a whole: nothing was done. */
    | "refused"
    /** It no longer knows the session: nothing was done, and a new session may do it. */
    | "forgotten"
    /** The connection ended before there was an answer: what was done is unknown. */
    | "lost"
    /** It has not answered in time, and was told that nobody waits any longer. */
    | "timeout"
    /** It has answered, with an error of its own or with what is none of the protocol's. */
    | "answered";
  /** Without a full stop; follows the server's name: `answered with HTTP 500`. */
  words: string;
  /** Where nothing was done: the same may be tried again, over a new connection. */
  isTransient?: boolean | undefined;
  /** It is of one call: the connection is none the worse for it, and others may be using it. */
  isOfCall?: boolean | undefined;
}

/** What was asked for needs more than the server has been allowed to give us. */
export class NeedsScope extends Error {
  override name = "NeedsScope";
  readonly serverId: string;
  readonly scope: string | undefined;

  constructor(serverId: string, scope: string | undefined) {
    super("It wants a wider authorization.");
    this.serverId = serverId;
    this.scope = scope;
  }
}

export function failureOf(error: unknown): Failure {
  if (error instanceof NeedsScope) {
    const scope = error.scope === undefined ? "" : ` (${quote(error.scope)})`;
    return {
      kind: "refused",
      words: `wants a wider authorization${scope}: a person has to give it, at GET /api/mcp/oauth/${error.serverId}/start`,
    };
  }
  if (error instanceof UnauthorizedError) return { kind: "unauthorized", words: "wants an authorization" };
  if (error instanceof StreamableHTTPError || error instanceof SseError) return httpFailure(error);
  if (error instanceof McpError) return rpcFailure(error);
  if (error instanceof AppError) {
    const words = error.message.replace(/\.$/, "");
    const isTransient = neverConnected(error);
    const kind = UNSENT.has(error.code) || isTransient ? "refused" : "lost";
    return { kind, words: `could not be reached: ${words}`, isTransient };
  }
  const { name, message } = error as Error;
  if (name === "ZodError" || name === "$ZodError" || name === "SyntaxError")
    return { kind: "answered", words: "answered with something that is not of the protocol" };
  const code = /\(HTTP (\d{3})\)/.exec(message)?.[1];
  if (code !== undefined) return httpFailure({ code: Number(code), message });
  return { kind: "lost", words: `failed: ${quote(message)}` };
}

/** Codes of the guarded fetch for what it did not even try. */
const UNSENT = new Set<string>(["forbidden", "invalid_request"]);
/** What Node and Bun call it when nobody listens, or there is no such name. */
const NOBODY =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused)$/;

function neverConnected(error: unknown): boolean {
  for (let at = error, depth = 0; typeof at === "object" && at !== null && depth < 5; depth++) {
    const { code, errors, cause } = at as { code?: unknown; errors?: unknown; cause?: unknown };
    if (typeof code === "string" && NOBODY.test(code)) return true;
    if (Array.isArray(errors) && errors.length > 0 && errors.every(neverConnected)) return true;
    at = cause;
  }
  return false;
}

function httpFailure({ code, message }: { code?: number | undefined; message: string }): Failure {
  if (code === 401) return { kind: "unauthorized", words: "wants an authorization (HTTP 401)" };
  // What the SDK puts in front says nothing here.
  const said = quote(
    message.replace(/^(Streamable HTTP|SSE) error: /, "").replace(/^Error POSTing to endpoint[^:]*: /, ""),
  );
  if (code === undefined || code < 100) return { kind: "lost", words: `failed: ${said}` };
  const words = `answered with HTTP ${code}${said === "" ? "" : `: ${said}`}`;
  // The protocol says 404; some servers say 400 and what it is about.
  if (code === 404 || (code === 400 && /session/i.test(said)))
    return { kind: "forgotten", words, isTransient: true };
  return { kind: code < 500 ? "refused" : "lost", words, isOfCall: true };
}

function rpcFailure({ code, message }: McpError): Failure {
  const said = quote(message.replace(/^MCP error -?\d+: /, ""));
  if (code === LOST || code === TOO_LARGE) return { kind: "lost", words: said, isOfCall: true };
  if (code === ErrorCode.ConnectionClosed) return { kind: "lost", words: "ended the connection" };
  if (code === ErrorCode.RequestTimeout) return { kind: "timeout", words: "did not answer in time" };
  return { kind: "answered", words: `answered with an error: ${said} (${code})` };
}

function quote(text: string): string {
  return plainText(text, QUOTE_LIMIT).replaceAll(/\s+/g, " ").trim();
}
