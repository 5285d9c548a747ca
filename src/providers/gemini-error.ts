/** What Gemini says when it refuses, as our error: from an HTTP reply or from the middle of a stream. */
import { AppError } from "../errors.ts";
import { redact, retryAfterOf } from "./upstream-error.ts";

/** `google.rpc.Status`, as the API writes it into `{error}`. */
interface RpcStatus {
  code?: number;
  message?: string;
  status?: string;
  details?: { "@type"?: string; reason?: string; retryDelay?: string }[];
}

/** Characters of a body that is no JSON, shown so that a wrong base URL can be recognised. */
const EXCERPT = 200;

/**
 * Turns a reply that is not 2xx into the error to throw. Reads its body; the headers are still at hand here. `key` is
 * cut out before the body is shortened, so that not even half of it stays.
 */
export async function replyError(response: Response, key: string): Promise<AppError> {
  const raw = redact(await response.text().catch(() => ""), key);
  let body: unknown;
  try {
    body = JSON.parse(raw);
  } catch {
    body = undefined;
  }
  const status = statusOf(body);
  if (status) return statusError(status, response.status, response.headers);
  const excerpt = raw.trim().slice(0, EXCERPT);
  return new AppError(
    "upstream_error",
    `Gemini answered with status ${response.status}${excerpt ? `. It said: ${excerpt}` : " and said nothing more."}`,
    { status: errorStatus(response.status), retryAfter: retryAfterOf(response.headers) },
  );
}

/** The error of a body or stream event, which some gateways put into an array of one; undefined when it holds none. */
export function statusOf(body: unknown): RpcStatus | undefined {
  const outer: unknown = Array.isArray(body) ? body[0] : body;
  if (typeof outer !== "object" || outer === null) return undefined;
  const inner = (outer as { error?: unknown }).error;
  if (typeof inner === "string") return { message: inner };
  return typeof inner === "object" && inner !== null ? (inner as RpcStatus) : undefined;
}

export function statusError(status: RpcStatus, httpStatus?: number, headers?: Headers): AppError {
  const details = Array.isArray(status.details) ? status.details : [];
  const reason = details.find((detail) => typeof detail?.reason === "string")?.reason;
  // The service answers a bad key with 400; SDKs behind our doors know a bad key by 401.
  const badKey = reason === "API_KEY_INVALID";
  return new AppError("upstream_error", status.message || "Gemini failed and did not say why.", {
    status: badKey ? 401 : errorStatus(httpStatus ?? status.code),
    upstreamType: typeof status.status === "string" ? status.status : undefined,
    upstreamCode: reason,
    retryAfter: retryAfterOf(headers) ?? retryDelayOf(details),
  });
}

/** Seconds of a `google.rpc.RetryInfo` (`"20s"`, `"1.5s"`). */
function retryDelayOf(details: NonNullable<RpcStatus["details"]>): number | undefined {
  const delay = details.find((detail) => typeof detail?.retryDelay === "string")?.retryDelay;
  const seconds = Number.parseFloat(delay ?? "");
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined;
}

function errorStatus(status: number | undefined): number {
  return status !== undefined && status >= 400 && status <= 599 ? status : 502;
}
