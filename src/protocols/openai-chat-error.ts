/** Faults in the shape of chat completions: before the first byte as a reply, after it as the stream's last event. */
import type { Fault } from "../errors.ts";
import type { ErrorReply } from "./codec.ts";

const TYPES: Record<number, string> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};

/** Names that an upstream gives in the style of this door (`insufficient_quota`), unlike Gemini's `NOT_FOUND`. */
const OWN_STYLE = /^[a-z]+(?:_[a-z]+)*$/;

export function errorBody(fault: Fault): Record<string, unknown> {
  const { upstreamType, status } = fault;
  const type =
    upstreamType && OWN_STYLE.test(upstreamType)
      ? upstreamType
      : (TYPES[status] ?? (status < 500 ? "invalid_request_error" : "api_error"));
  return {
    error: {
      message: fault.message,
      type,
      param: fault.param ?? null,
      code: fault.upstreamCode ?? fault.code,
    },
  };
}

export function errorReply(fault: Fault): ErrorReply {
  const headers: Record<string, string> = {};
  if (fault.retryAfter !== undefined) {
    headers["retry-after"] = String(Math.ceil(fault.retryAfter));
    headers["retry-after-ms"] = String(Math.ceil(fault.retryAfter * 1000));
  }
  return { status: fault.status, body: errorBody(fault), headers };
}
