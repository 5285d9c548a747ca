/** From one request to the next as the Fetch standard redirects, with less handed on: see {@link nextHop}. Pure. */
import { nameOf } from "../core/egress.ts";
import type { GuardedInit } from "../core/fetch.ts";
import { AppError } from "../errors.ts";

/** One request on the way to an answer. */
export interface Hop {
  /** Without user, password and fragment. */
  url: URL;
  method: string;
  headers: Headers;
  body: string | Uint8Array | null;
  /** The operator's own choice, which holds as long as the origin stays. */
  trusted: boolean;
  /** The URL that redirected here. */
  via?: URL | undefined;
}

/** What another origin gets of the caller's headers; everything else may be a credential. */
const SAFE_HEADERS = new Set([
  ...["accept", "accept-language", "user-agent", "range", "cache-control", "pragma"],
  ...["content-type", "content-language", "content-encoding", "content-location"],
]);
const BODY_HEADERS = ["content-type", "content-language", "content-encoding", "content-location"];

/** Those that belong to the connection, and `host`, which would name another server than the one that was checked. */
const OUR_HEADERS = [
  ...["host", "connection", "content-length", "transfer-encoding", "upgrade", "keep-alive", "te", "trailer"],
  ...["expect", "proxy-connection", "accept-encoding"],
];

const USER_AGENT = "Dragoman";

/**
 * The first request. User and password of the URL become a header, which no redirect to elsewhere carries on. Throws
 * AppError `invalid_request` for what cannot be sent.
 */
export function firstHop(url: URL, init: GuardedInit): Hop {
  const headers = headersOf(init);
  for (const name of OUR_HEADERS) headers.delete(name);
  if ((url.username || url.password) && !headers.has("authorization"))
    headers.set("authorization", `Basic ${basic(url)}`);
  if (!headers.has("accept")) headers.set("accept", "*/*");
  if (!headers.has("user-agent")) headers.set("user-agent", USER_AGENT);
  const method = (init.method ?? "GET").toUpperCase();
  const body = init.body ?? null;
  if (!/^[A-Z]{1,32}$/.test(method) || method === "CONNECT" || method === "TRACE")
    throw new AppError("invalid_request", `${method.slice(0, 32)} is no method that can be sent.`);
  if (body !== null && (method === "GET" || method === "HEAD"))
    throw new AppError("invalid_request", `A ${method} request has no body.`);
  if (typeof body === "string" && !headers.has("content-type"))
    headers.set("content-type", "text/plain;charset=UTF-8");
  return { url: bare(url), method, headers, body, trusted: init.trusted === true };
}

/**
 * Where the response redirects to; null where it does not. 303, and 301 and 302 of a POST, become a GET without body.
 * Another origin gets {@link SAFE_HEADERS} only, never a user in the address, and no trust. A body goes to another origin
 * with 307 and 308, but never from https to http. Throws AppError `unreachable` for a target that is no address.
 */
export function nextHop(hop: Hop, response: Response): Hop | null {
  const { status } = response;
  const sent = response.headers.get("location");
  if (sent === null || ![301, 302, 303, 307, 308].includes(status)) return null;
  const location = inUtf8(sent);
  if (!URL.canParse(location, hop.url))
    throw new AppError("unreachable", `${nameOf(hop.url)} redirects to what is no address.`);
  const next: Hop = { ...hop, url: bare(new URL(location, hop.url)), headers: new Headers(hop.headers) };
  const { method } = hop;
  if ((status === 303 && method !== "GET" && method !== "HEAD") || (status <= 302 && method === "POST")) {
    next.method = "GET";
    next.body = null;
    for (const name of BODY_HEADERS) next.headers.delete(name);
  }
  if (next.url.origin === hop.url.origin) return next;
  for (const name of [...next.headers.keys()]) if (!SAFE_HEADERS.has(name)) next.headers.delete(name);
  if (next.body !== null && hop.url.protocol === "https:" && next.url.protocol === "http:")
    throw new AppError(
      "unreachable",
      `${nameOf(hop.url)} redirects a ${method} to ${nameOf(next.url)}, where its body would be readable on the way.`,
    );
  next.trusted = false;
  return next;
}

/** The runtime's own error would repeat the value, which may be a key. */
function headersOf({ headers }: GuardedInit): Headers {
  try {
    return new Headers(headers);
  } catch {
    throw new AppError(
      "invalid_request",
      "A header cannot be sent: its name or its value has characters that HTTP does not allow.",
    );
  }
}

function bare(url: URL): URL {
  const out = new URL(url);
  out.username = "";
  out.password = "";
  out.hash = "";
  return out;
}

/** Most runtimes read headers byte by byte, and many servers write UTF-8 into this one. */
function inUtf8(text: string): string {
  const codes = Array.from(text, (character) => character.charCodeAt(0));
  if (codes.some((code) => code > 0xff)) return text;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(codes));
  } catch {
    return text;
  }
}

function basic(url: URL): string {
  const bytes = new TextEncoder().encode(`${decode(url.username)}:${decode(url.password)}`);
  return btoa(String.fromCharCode(...bytes));
}

/** A stray `%` is one. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
