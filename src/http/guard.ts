/**
 * The one layer that every request passes first, whatever its path: who may call from where (A2), which paths there
 * can be (A6), and as whom (A4, A5). Routes behind it read `owner` and `providerKey` and ask nothing further.
 */
import type { MiddlewareHandler } from "hono";
import type { AccessConfig } from "../config.ts";
import { createId } from "../core/id.ts";
import { isLoopback } from "../core/loopback.ts";
import type { Redaction } from "../core/redaction.ts";
import { AppError } from "../errors.ts";
import { IMAGES_PATH, type ImageLinks } from "../knowledge/images-links.ts";
import { type AccessOptions, createAccess, type Identity } from "./access.ts";
import type { AppEnv } from "./env.ts";
import { doorOf, errorResponse } from "./problem.ts";

/** Paths that say nothing about anybody and need nobody's token. */
const PUBLIC = new Set(["/healthz", "/readyz", "/openapi.json", "/docs", "/client-metadata.json"]);

/** Where a browser comes back to from an authorization server. */
export const OAUTH_CALLBACK = "/api/mcp/oauth/callback";

/** Paths that an agent's commands may ask for: they do nothing and show nothing. */
const PROBES = new Set(["/healthz", "/readyz"]);

/** How long a browser may remember what a preflight said. Seconds. */
const PREFLIGHT_AGE = "600";
const EXPOSED =
  "x-request-id, request-id, x-run-id, x-session-id, x-upstream-model, x-estimated, retry-after, idempotency-replayed, etag";

/** The mark of a request id that a client or a proxy brings along: short, and fit for a log line and a header. */
const REQUEST_ID = /^[A-Za-z0-9._:-]{8,128}$/;

export interface GuardOptions extends AccessOptions {
  /** Gets to know the keys that headers carry. */
  redaction?: Redaction | undefined;
  /** Knows the addresses of images that need no token. */
  imageLinks?: ImageLinks | undefined;
}

export function guard(config: AccessConfig, options: GuardOptions = {}): MiddlewareHandler<AppEnv> {
  const access = createAccess(config, options);
  const { redaction, imageLinks } = options;
  const hosts = new Set(config.allowedHosts);
  const origins = new Set(config.corsOrigins);

  return async function guard(c, next) {
    const request = c.req.raw;
    const headers = request.headers;
    const shown = headers.get("x-request-id");
    const requestId = shown !== null && REQUEST_ID.test(shown) ? shown : createId("req");
    c.set("requestId", requestId);
    if (redaction) c.set("redaction", redaction);
    const origin = headers.get("origin");
    const cors = origin !== null && origins.has(origin.toLowerCase()) ? origin : null;
    let response: Response | null = null;
    try {
      if (config.mode === "open") checkHost(headers.get("host"), request.url, hosts);
      if (cors === null && !isReturn(request, c.req.path)) checkOrigin(origin, headers, request.url);
      checkPath(request.url);
      if (c.env?.startedByAgent && !PROBES.has(c.req.path) && (await c.env.startedByAgent()))
        throw ownCommand();
      if (cors !== null && isPreflight(request)) response = preflight(headers);
      else {
        const link = linked();
        const identity = (link && (await link)) ?? (await identify());
        c.set("owner", identity.owner);
        c.set("providerKey", identity.providerKey);
        if (identity.providerKey !== undefined) redaction?.hold(identity.providerKey);
      }
    } catch (error) {
      response = errorResponse(c, error);
    }
    if (response !== null) c.res = response;
    else await next();
    finish();

    /**
     * Who shows an image's signed address may see that image, whoever they say they are: an `<img>` can send no token, and
     * what it would get without one, a token of whatever kind takes nothing away from.
     */
    function linked(): Promise<Identity | null> | null {
      if (config.mode === "open" || !imageLinks || !c.req.path.startsWith(IMAGES_PATH)) return null;
      const signature = c.req.query("signature");
      if (signature === undefined) return null;
      if (request.method !== "GET" && request.method !== "HEAD") return null;
      return imageLinks.verify(c.req.path, signature).then((id) => {
        if (id === null) return null;
        c.set("imageLink", id);
        // Nobody's name: it owns nothing, and counts for itself.
        return { owner: `link ${id}`, providerKey: undefined };
      });
    }

    function identify(): Identity | Promise<Identity> {
      if (PUBLIC.has(c.req.path)) return { owner: "local", providerKey: undefined };
      // A browser that comes back has no token; who it acts for is in its state. It owns nothing, and counts for itself.
      if (c.req.path === OAUTH_CALLBACK && request.method === "GET")
        return { owner: "a returning browser", providerKey: undefined };
      return access({
        headers,
        v1: doorOf(c.req.path) !== "api",
        address: () => c.env?.address?.() ?? "unknown",
      });
    }

    function finish(): void {
      const out = c.res.headers;
      out.set("x-request-id", requestId);
      if (doorOf(c.req.path) === "messages") out.set("request-id", requestId);
      if (cors !== null) {
        out.set("access-control-allow-origin", cors);
        out.set("access-control-expose-headers", EXPOSED);
      }
      if (origins.size > 0) out.append("vary", "origin");
    }
  };
}

/**
 * An authorization server sends a person's browser back here, from its own site to ours: the one navigation across sites that
 * is meant to be. What it may do is in its single-use state, which no page can know. Fetches, images and frames of pages stay
 * outside.
 */
function isReturn({ method, headers }: Request, path: string): boolean {
  return (
    path === OAUTH_CALLBACK &&
    method === "GET" &&
    headers.get("origin") === null &&
    headers.get("sec-fetch-mode") === "navigate" &&
    headers.get("sec-fetch-dest") === "document"
  );
}

/** In open mode a command could otherwise approve the calls of its own run (P4). */
function ownCommand(): AppError {
  return new AppError(
    "forbidden",
    "This request comes from a command that the agent runs, and an agent may not call the service it runs in. Send it from a program that was started in another way.",
  );
}

/** A name that somebody else's DNS points here is not ours: that is how a web page would get in (DNS rebinding). */
function checkHost(header: string | null, url: string, allowed: ReadonlySet<string>): void {
  const fromUrl = authority(url);
  const host = (header ?? fromUrl).toLowerCase();
  if (isOurs(host, allowed) && (fromUrl === host || isOurs(fromUrl.toLowerCase(), allowed))) return;
  throw new AppError(
    "forbidden",
    `Without access tokens this service answers on loopback names only, not on '${host.slice(0, 100)}'. Add the name to ALLOWED_HOSTS, or set ACCESS_TOKENS.`,
  );
}

function isOurs(host: string, allowed: ReadonlySet<string>): boolean {
  const name = withoutPort(host);
  return isLoopback(name) || allowed.has(host) || allowed.has(name);
}

function withoutPort(host: string): string {
  const colon = host.lastIndexOf(":");
  if (colon === -1 || host.endsWith("]")) return host;
  for (let i = colon + 1; i < host.length; i++) {
    const c = host.charCodeAt(i);
    if (c < 48 || c > 57) return host;
  }
  return host.slice(0, colon);
}

/** Pages of other origins stay outside, in every mode: a browser lends them the user's network, and nothing else they need. */
function checkOrigin(origin: string | null, headers: Headers, url: string): void {
  if (origin !== null) {
    const host = (headers.get("host") ?? authority(url)).toLowerCase();
    const lower = origin.toLowerCase();
    if (lower === `http://${host}` || lower === `https://${host}`) return;
  } else if (headers.get("sec-fetch-site") !== "cross-site") {
    return;
  }
  throw new AppError(
    "forbidden",
    `Web pages of ${origin === null ? "other sites" : `'${origin.slice(0, 100)}'`} may not call this service. If they should, add the page's origin to CORS_ORIGINS.`,
  );
}

/** `example.org:80` of `http://example.org:80/path`. */
function authority(url: string): string {
  const start = url.indexOf("://") + 3;
  const end = url.indexOf("/", start);
  return end === -1 ? url.slice(start) : url.slice(start, end);
}

/** Ids of models may hold slashes (`openai/gpt-oss-120b`), which SDKs encode. */
const MODELS = ["/v1/models/", "/openai/v1/models/", "/v1/v1/models/"];

/**
 * One spelling per path, so that what is decided about a path holds for all that reaches its route: an empty
 * or dot segment, a backslash or an encoded slash, backslash, dot or NUL leads nowhere.
 */
function checkPath(url: string): void {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start === -1) return;
  let segment = start;
  for (let i = start; i < url.length; i++) {
    const c = url.charCodeAt(i);
    if (c === 63 /* ? */ || c === 35 /* # */) break;
    if (c === 92 /* \ */ || (c === 37 /* % */ && isHidden(url, start, i))) throw noPath();
    if (c === 47 /* / */) {
      if (i > start && i === segment + 1) throw noPath();
      segment = i;
    } else if (c === 46 /* . */ && i === segment + 1) {
      const next = url[i + 1] === "." ? url[i + 2] : url[i + 1];
      if (next === undefined || next === "/" || next === "?" || next === "#") throw noPath();
    }
  }
}

function isHidden(url: string, start: number, at: number): boolean {
  const code = url.slice(at + 1, at + 3).toLowerCase();
  if (code === "2f") return !MODELS.some((prefix) => url.startsWith(prefix, start));
  return code === "5c" || code === "2e" || code === "00";
}

function noPath(): AppError {
  return new AppError(
    "not_found",
    "There is no such path: write it without empty segments, dots or encoded slashes. A base URL that ends in a slash is the usual cause.",
  );
}

function isPreflight(request: Request): boolean {
  return request.method === "OPTIONS" && request.headers.get("access-control-request-method") !== null;
}

function preflight(headers: Headers): Response {
  const out: Record<string, string> = {
    "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
    "access-control-max-age": PREFLIGHT_AGE,
  };
  const wanted = headers.get("access-control-request-headers");
  if (wanted !== null) out["access-control-allow-headers"] = wanted;
  if (headers.get("access-control-request-private-network") === "true")
    out["access-control-allow-private-network"] = "true";
  return new Response(null, { status: 204, headers: out });
}
