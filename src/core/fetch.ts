/** The one way out of the service for addresses that it did not choose itself (E1). */

export interface GuardedInit {
  method?: string | undefined;
  headers?: HeadersInit | undefined;
  body?: string | Uint8Array | null | undefined;
  signal?: AbortSignal | null | undefined;
  /** As for fetch; default `follow`, at most 5 times, each address checked anew. */
  redirect?: RequestRedirect | undefined;
  /** Bytes of the body, counted as they arrive; default 10 MiB. Reading behind them throws AppError `payload_too_large`. */
  maxBytes?: number | undefined;
  /** Milliseconds for the whole of it, body included; default 30 s. 0: until the head, then no limit (event streams). */
  timeoutMs?: number | undefined;
  /**
   * The address is the operator's own choice, from the settings: its origin may be private. What it redirects to elsewhere
   * is checked like any other, and nothing leads back to this service.
   */
  trusted?: boolean | undefined;
}

/**
 * Fetches http and https only. The name is resolved once, every address of it checked against private, loopback,
 * link-local and metadata ranges (FETCH_ALLOW makes exceptions), and the connection goes to what was checked. When a
 * redirect leaves the origin, only headers that are known to be harmless go along. The body streams, decoded; whoever does
 * not read it to its end cancels it. `response.url` is where it came from.
 *
 * Throws AppError, with a sentence that a person or a model can act on: `forbidden` (an address that may not be reached),
 * `invalid_request` (no address, no method, no header), `payload_too_large`, `unreachable` (no such name, refused, reset, too slow). An abort
 * throws the signal's reason.
 */
export type GuardedFetch = (url: string | URL, init?: GuardedInit) => Promise<Response>;
