/**
 * The closed set of ways in which Dragoman fails, and the one error class that carries them.
 *
 * HTTP and protocol shapes are made at the edge (`http/`, `protocols/`); nothing in here knows a wire format.
 */

/** Every code with the HTTP status it has unless the fault carries its own. */
export const STATUS = {
  invalid_request: 400,
  unsupported_field: 400,
  missing_key: 401,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  conflict: 409,
  gone: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  cancelled: 499,
  internal: 500,
  not_implemented: 501,
  /** The upstream answered with an error of its own; `status` is the upstream's. */
  upstream_error: 502,
  /** The upstream could not be reached, or what it sent is not its protocol. */
  upstream_unreachable: 502,
  /** Something else that a request or a tool needs (a page, an MCP server) cannot be reached, or does not answer as it should. */
  unreachable: 502,
  unavailable: 503,
  upstream_timeout: 504,
  storage_full: 507,
  /** The run reached one of its limits: steps, repetition, wall clock, tokens. */
  limit_reached: 500,
} as const;

export type ErrorCode = keyof typeof STATUS;

/** A failure as plain data: what travels inside event streams, journals and error bodies. */
export interface Fault {
  code: ErrorCode;
  /** One or two sentences: what happened and what to do. Never holds a secret. */
  message: string;
  /** HTTP status, 400 to 599. */
  status: number;
  /** The field at fault, in the words of the door it came through (`messages[2].content`). */
  param?: string | undefined;
  /** What the upstream called it (`rate_limit_error`, `insufficient_quota`), passed on as it came. */
  upstreamType?: string | undefined;
  upstreamCode?: string | undefined;
  /** Seconds after which a retry may succeed. */
  retryAfter?: number | undefined;
  /** Machine-readable detail that a protocol defines for this error (`error.details` of the messages door). */
  details?: Record<string, unknown> | undefined;
}

export interface FaultDetails {
  status?: number | undefined;
  param?: string | undefined;
  upstreamType?: string | undefined;
  upstreamCode?: string | undefined;
  retryAfter?: number | undefined;
  details?: Record<string, unknown> | undefined;
  cause?: unknown;
}

export class AppError extends Error implements Fault {
  override name = "AppError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly param?: string | undefined;
  readonly upstreamType?: string | undefined;
  readonly upstreamCode?: string | undefined;
  readonly retryAfter?: number | undefined;
  readonly details?: Record<string, unknown> | undefined;

  constructor(code: ErrorCode, message: string, options: FaultDetails = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.status = options.status ?? STATUS[code];
    this.param = options.param;
    this.upstreamType = options.upstreamType;
    this.upstreamCode = options.upstreamCode;
    this.retryAfter = options.retryAfter;
    this.details = options.details;
  }
}

/** Anything thrown, as a fault. What is not an {@link AppError} is our own failure: `internal`, with no detail. */
export function toFault(error: unknown): Fault {
  if (error instanceof AppError) {
    const { code, message, status, param, upstreamType, upstreamCode, retryAfter, details } = error;
    return { code, message, status, param, upstreamType, upstreamCode, retryAfter, details };
  }
  return {
    code: "internal",
    message: "Something failed inside the service. The log has the details under this request's id.",
    status: 500,
  };
}

/** The way back: a fault that left a stream, as something to throw. */
export function fromFault(fault: Fault): AppError {
  return new AppError(fault.code, fault.message, fault);
}
