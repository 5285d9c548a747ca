/** Faults as responses, in the shape of the door that the path belongs to. The only place that chooses one. */
import type { Context } from "hono";
import type { Redaction } from "../core/redaction.ts";
import { type Fault, toFault } from "../errors.ts";
import { rpcFault } from "../mcp/rpc-fault.ts";
import { anthropicMessages } from "../protocols/anthropic-messages.ts";
import type { ErrorReply } from "../protocols/codec.ts";
import { openaiChat } from "../protocols/openai-chat.ts";
import type { AppEnv } from "./env.ts";

export type Door = "messages" | "chat" | "api";

/**
 * Which door a path leads to. `/v1/v1/…` comes from SDKs that append `/v1` to a base URL that has one, and
 * `/openai/v1/…` from groq-sdk.
 */
export function doorOf(path: string): Door {
  let rest = path.startsWith("/openai/v1/") ? path.slice(7) : path;
  if (!rest.startsWith("/v1/")) return rest === "/v1" || rest === "/openai/v1" ? "chat" : "api";
  while (rest.startsWith("/v1/")) rest = rest.slice(3);
  return rest === "/messages" || rest.startsWith("/messages/") ? "messages" : "chat";
}

/** Where Dragoman is an MCP server. */
export const MCP_PATH = "/mcp";

const TITLES: Record<number, string> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  412: "Precondition Failed",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  416: "Range Not Satisfiable",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  499: "Client Closed Request",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  507: "Insufficient Storage",
};

/** RFC 9457 problem details. `details.errors` of a fault (`[{path, message}]`) becomes the member `errors`. */
export function problem(fault: Fault, requestId: string): ErrorReply {
  const body: Record<string, unknown> = {
    type: "about:blank",
    title: TITLES[fault.status] ?? (fault.status < 500 ? "Request Failed" : "Service Failed"),
    status: fault.status,
    detail: fault.message,
    code: fault.code,
    request_id: requestId,
  };
  if (fault.param !== undefined) body.param = fault.param;
  if (fault.details?.errors !== undefined) body.errors = fault.details.errors;
  if (fault.details?.run_id !== undefined) body.run_id = fault.details.run_id;
  const headers: Record<string, string> = { "content-type": "application/problem+json" };
  if (fault.retryAfter !== undefined) headers["retry-after"] = String(Math.ceil(fault.retryAfter));
  return { status: fault.status, body, headers };
}

/** Anything thrown -> the response of the request's own door. What is no AppError goes out without detail. */
export function errorResponse(c: Context<AppEnv>, error: unknown): Response {
  const fault = cleaned(error instanceof Error ? toFault(error) : (error as Fault), c.get("redaction"));
  const requestId = c.get("requestId") ?? "";
  const reply = replyFor(c, fault, requestId);
  const headers: Record<string, string> = { "content-type": "application/json", ...reply.headers };
  if (fault.status === 401) headers["www-authenticate"] = "Bearer";
  if (fault.status === 416) headers["content-range"] = `bytes */${fault.details?.size}`;
  const runId = c.get("runId");
  if (runId !== undefined) headers["x-run-id"] = runId;
  return new Response(JSON.stringify(reply.body), { status: reply.status, headers });
}

/** What an upstream calls an error, where it is a word as ours are. */
const WORD = /^[a-z]+(_[a-z]+)*$/;

/**
 * What a message quotes may hold the key that came with the request (K2). Our own words stay: anybody's key may be one of
 * them, and would take it away from everybody.
 */
function cleaned(fault: Fault, redaction: Redaction | undefined): Fault {
  if (!redaction) return fault;
  const { code, status, message, param, upstreamType, upstreamCode, retryAfter, details } = fault;
  const said = (word: string | undefined) =>
    word === undefined || WORD.test(word) ? word : redaction.clean(word);
  return {
    ...{ code, status, retryAfter },
    message: redaction.clean(message),
    param: redaction.clean(param),
    upstreamType: said(upstreamType),
    upstreamCode: said(upstreamCode),
    details: redaction.clean(details),
  };
}

function replyFor(c: Context<AppEnv>, fault: Fault, requestId: string): ErrorReply {
  const door = doorOf(c.req.path);
  if (c.req.path === MCP_PATH) {
    const headers = problem(fault, requestId).headers;
    return {
      status: fault.status,
      body: rpcFault(fault, requestId),
      headers: { ...headers, "content-type": "application/json" },
    };
  }
  if (door === "api") return problem(fault, requestId);
  // The model list is shared by both families of SDKs; only Anthropic's say their version.
  const anthropic = door === "messages" || c.req.header("anthropic-version") !== undefined;
  return (anthropic ? anthropicMessages : openaiChat).fault(fault, requestId);
}
