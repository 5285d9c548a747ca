/** How errors look in the document: one shape for each family of routes, and what each status means. */
import * as z from "zod";
import { errorCode } from "../../protocols/native-chat-events.ts";
import type { Family } from "./operation.ts";

export const problemBody = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string().describe("What happened and what to do."),
    code: errorCode,
    request_id: z.string().describe("The log has more under it."),
    param: z.string().optional().describe("The field at fault."),
    run_id: z.string().optional().describe("With 409: the run in the way."),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .describe("Every field at fault, where there is more than one thing to say."),
  })
  .meta({ id: "Problem", description: "RFC 9457 problem details." });

export const chatFault = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string().describe("`invalid_request_error`, `authentication_error`, `rate_limit_error`, …"),
      param: z.string().nullable(),
      code: z.string().nullable().describe("The upstream's own code, where it gave one."),
    }),
  })
  .meta({ id: "ChatCompletionError" });

export const messagesFault = z
  .object({
    type: z.literal("error"),
    error: z.object({
      type: z.string().describe("`invalid_request_error`, `overloaded_error`, `api_error`, …"),
      message: z.string(),
      details: z.record(z.string(), z.unknown()).optional(),
    }),
    request_id: z.string(),
  })
  .meta({ id: "MessagesError" });

export const mcpFault = z
  .object({
    jsonrpc: z.literal("2.0"),
    error: z.object({
      code: z.int(),
      message: z.string(),
      data: z.object({ code: errorCode, request_id: z.string(), retry_after: z.int().optional() }),
    }),
    id: z.null(),
  })
  .meta({ id: "McpError", description: "A fault of the request as a whole." });

export const FAULT_SCHEMAS = {
  public: problemBody,
  api: problemBody,
  chat: chatFault,
  messages: messagesFault,
  mcp: mcpFault,
} as const satisfies Record<Family, z.ZodType>;

export const MEANINGS = {
  400: "The request is not what this route takes; the body names the field.",
  401: "No credential that is known here: the provider key or the access token is missing or wrong.",
  403: "Not allowed: by the operator, or from this host or origin.",
  404: "There is nothing under this id. What belongs to somebody else is answered in the same words.",
  406: "`Accept` has to name application/json and text/event-stream.",
  408: "The body came too slowly.",
  409: "It conflicts with what is there now; the sentence says with what.",
  410: "It has expired.",
  412: "It has been changed since; read it again, and put your change on top of that.",
  413: "The body is too large.",
  415: "The body has to be `application/json` in UTF-8, uncompressed.",
  416: "It has fewer bytes than that.",
  422: "The `Idempotency-Key` was used with another body.",
  429: "Too many requests or runs; `retry-after` says when to come again.",
  500: "Something failed inside the service; the log has it under the request's id.",
  501: "Part of what is asked for is not built yet; the sentence names it.",
  502: "The provider could not be reached, or what it sent is not its protocol.",
  503: "A part that the service needs does not work now; `retry-after` says when to come again.",
  504: "The provider did not answer in time.",
  507: "The disk or the database is full; nothing was stored.",
  529: "The provider is overloaded.",
} as const satisfies Record<number, string>;

/** Beside the statuses above: what the provider itself answers with. */
export const PASSED_ON =
  "Any other 4xx or 5xx that the provider answers with comes through, in the same shape.";

export type FaultStatus = keyof typeof MEANINGS;

/** An error of each family, as the example of each of its statuses begins. */
export function exampleFault(family: Family, status: FaultStatus): unknown {
  const { title, code, type, detail } = SAMPLES[status];
  const request_id = "req_example";
  if (family === "chat") return { error: { message: detail, type, param: null, code } };
  if (family === "mcp")
    return { jsonrpc: "2.0", error: { code: -32000, message: detail, data: { code, request_id } }, id: null };
  if (family === "messages") return { type: "error", error: { type, message: detail }, request_id };
  return { type: "about:blank", title, status, detail, code, request_id };
}

type Sample = { title: string; code: z.infer<typeof errorCode>; type: string; detail: string };

const invalid = "invalid_request_error";
const SAMPLES: Record<FaultStatus, Sample> = {
  400: sample(
    "Bad Request",
    "invalid_request",
    invalid,
    "stream has to be true or false, but it is a string.",
  ),
  401: sample(
    "Unauthorized",
    "unauthorized",
    "authentication_error",
    "The access token is not one of this service.",
  ),
  403: sample(
    "Forbidden",
    "forbidden",
    "permission_error",
    "Web pages of other sites may not call this service.",
  ),
  404: sample("Not Found", "not_found", "not_found_error", "There is nothing with this id."),
  406: sample(
    "Not Acceptable",
    "invalid_request",
    invalid,
    "The client has to accept application/json and text/event-stream.",
  ),
  408: sample(
    "Request Timeout",
    "request_timeout",
    "timeout_error",
    "The body came too slowly: send it again.",
  ),
  409: sample("Conflict", "conflict", "conflict_error", "The session has a turn under way: run_example."),
  410: sample("Gone", "gone", invalid, "The call can no longer be decided: it has expired."),
  412: sample("Precondition Failed", "conflict", invalid, "The note has been changed since you read it."),
  413: sample(
    "Content Too Large",
    "payload_too_large",
    "request_too_large",
    "The body is larger than the limit.",
  ),
  415: sample(
    "Unsupported Media Type",
    "unsupported_media_type",
    invalid,
    "The content type has to be application/json in UTF-8.",
  ),
  416: sample("Range Not Satisfiable", "invalid_request", invalid, "range: it has 10 bytes."),
  422: sample(
    "Unprocessable Content",
    "invalid_request",
    invalid,
    "This Idempotency-Key was used with another body: take a new one.",
  ),
  429: sample("Too Many Requests", "rate_limited", "rate_limit_error", "Send this one again in 5 s."),
  500: sample("Internal Server Error", "internal", "api_error", "Something failed inside the service."),
  501: sample(
    "Not Implemented",
    "not_implemented",
    "api_error",
    "Swarms are not there yet: leave use_swarm out.",
  ),
  502: sample("Bad Gateway", "upstream_unreachable", "api_error", "The provider could not be reached."),
  503: sample(
    "Service Unavailable",
    "unavailable",
    "api_error",
    "The database does not answer: try again in 1 s.",
  ),
  504: sample(
    "Gateway Timeout",
    "upstream_timeout",
    "timeout_error",
    "The provider did not answer within 60 s.",
  ),
  507: sample("Insufficient Storage", "storage_full", "api_error", "The disk is full: nothing was stored."),
  529: sample("Overloaded", "upstream_error", "overloaded_error", "The provider is overloaded."),
};

function sample(title: string, code: Sample["code"], type: string, detail: string): Sample {
  return { title, code, type, detail };
}

/** What every route of a family may answer with; `body`: what those with a body may, in addition. */
export const COMMON_FAULTS: Record<Family, { all: readonly FaultStatus[]; body: readonly FaultStatus[] }> = {
  public: { all: [403], body: [] },
  api: { all: [401, 403, 429, 500, 503], body: [400, 408, 413, 415] },
  mcp: { all: [401, 403, 429, 500, 503], body: [400, 408, 413, 415] },
  chat: { all: [401, 403, 429, 500, 502, 503], body: [400, 404, 408, 413, 415, 504, 529] },
  messages: { all: [401, 403, 429, 500, 502, 503], body: [400, 404, 408, 413, 415, 504, 529] },
};
