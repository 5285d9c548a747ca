/** The way to authorization servers: addresses that an MCP server, and not a person, has chosen. */
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { GuardedFetch } from "../core/fetch.ts";
import { isLoopback } from "../core/loopback.ts";
import { CALLER_HEADER } from "./http-fetch.ts";

/** Bytes of a metadata document or an answer with tokens. */
const ANSWER_BYTES = 256 * 1024;
/** For one request, and for all of one errand. */
const TIMEOUT_MS = 15_000;
const ERRAND_MS = 45_000;

export interface AuthFetchOptions {
  fetch: GuardedFetch;
  /** Addresses that callers give are the operator's own choice. */
  trusted: boolean;
  /** Tells the service that a request comes from itself; see http/own-agent.ts. */
  callerMark: Promise<string>;
}

/**
 * The server's own origin is trusted as the server is. What the server refers to elsewhere is not, but for a server on this
 * machine, whose authorization server may well be beside it. For one errand: it is late after a while.
 */
export function authFetch({ fetch, trusted, callerMark }: AuthFetchOptions, serverUrl: string): FetchLike {
  const server = new URL(serverUrl);
  const late = AbortSignal.timeout(ERRAND_MS);
  return async (url, init) => {
    const { origin, hostname } = new URL(url);
    const known = origin === server.origin || (isLoopback(server.hostname) && isLoopback(hostname));
    const headers = new Headers(init?.headers as HeadersInit | undefined);
    headers.set(CALLER_HEADER, await callerMark);
    return fetch(url, {
      method: init?.method,
      headers,
      body: bodyOf(init?.body),
      signal: init?.signal ? AbortSignal.any([init.signal, late]) : late,
      redirect: init?.redirect,
      maxBytes: ANSWER_BYTES,
      timeoutMs: TIMEOUT_MS,
      trusted: trusted && known,
    });
  };
}

function bodyOf(body: RequestInit["body"]): string | null {
  return body === undefined || body === null ? null : String(body);
}
