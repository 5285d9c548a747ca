/**
 * Access tokens for one MCP server after the other: kept sealed, refreshed once however many processes need it, and put on
 * the requests to the server that they are for.
 */
import { auth, extractWWWAuthenticateParams } from "@modelcontextprotocol/sdk/client/auth.js";
import type { OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";
import type { GuardedFetch, GuardedInit } from "../core/fetch.ts";
import type { McpServers } from "../core/mcp.ts";
import { AppError } from "../errors.ts";
import { NeedsScope } from "./faults.ts";
import { authFetch } from "./oauth-fetch.ts";
import { Exchange } from "./oauth-provider.ts";
import type { Located, OAuthRecord, OAuthRecords } from "./oauth-record.ts";

/** A token that ends so soon is refreshed at once. */
const MARGIN_MS = 30_000;
/** How long one process may be at the tokens of a server, and others wait for it. */
const LEASE_MS = 60_000;
const LOOK_AGAIN_MS = 100;

export interface TokenHost {
  servers: McpServers;
  records: OAuthRecords;
  fetch: GuardedFetch;
  /** Addresses that callers give are the operator's own choice. */
  trusted: boolean;
  callerMark: Promise<string>;
  now(): Date;
}

/** What a token is for. */
interface Resource extends Located {
  url: string;
}

export class OAuthTokenSource {
  readonly #host: TokenHost;
  /** Refreshes of this process, so that its own requests do not compete. */
  readonly #renewing = new Map<string, Promise<string | undefined>>();

  constructor(host: TokenHost) {
    this.#host = host;
  }

  /**
   * The guarded fetch, with the server's token on what goes to the server. After a 401 it tries once more with a newer
   * token, if there is one or one can be had: what was refused has done nothing. Throws {@link NeedsScope}.
   */
  fetchFor(server: Resource): GuardedFetch {
    const { origin } = new URL(server.url);
    const { fetch, records } = this.#host;
    let known: Promise<Known> | undefined;
    const read = (): Promise<Known> => {
      known = records.read(server).then(knownOf);
      return known;
    };
    const token = async (): Promise<string | undefined> => {
      const now = await (known ?? read());
      if (now.token === undefined || !now.refreshable || !this.#endsWithin(MARGIN_MS, now)) return now.token;
      try {
        await this.renew(server, now.token);
      } catch (error) {
        // It is good for a moment yet.
        if (this.#endsWithin(0, now)) throw error;
        return now.token;
      }
      return (await read()).token;
    };
    return async (url, init = {}) => {
      const own = new URL(url).origin === origin && !new Headers(init.headers).has("authorization");
      if (!own || !records.canKeep) return fetch(url, init);
      const used = await token();
      const response = await fetch(url, withToken(init, used));
      if (response.status !== 401 && response.status !== 403) return response;
      const asked = extractWWWAuthenticateParams(response);
      const isNarrow = response.status === 403 && asked.error === "insufficient_scope";
      if (response.status === 403 && !isNarrow) return response;
      // Somebody may have authorized us anew meanwhile.
      const newer = isNarrow ? (await read()).token : await this.renew(server, used);
      known = undefined;
      if (newer !== undefined && newer !== used) {
        await response.body?.cancel();
        return fetch(url, withToken(init, newer));
      }
      await this.#note(server, asked);
      if (!isNarrow) return response;
      await response.body?.cancel();
      throw new NeedsScope(server.id, asked.scope);
    };
  }

  /**
   * A token other than the one that was `used`: a newer one that somebody else has got, or one that is got now. undefined:
   * only a person can help. Throws AppError `unreachable` where it may go well later.
   */
  renew(server: Resource, used: string | undefined): Promise<string | undefined> {
    const key = JSON.stringify([server.owner, server.id, server.url]);
    let renewing = this.#renewing.get(key);
    if (!renewing) {
      renewing = this.#renew(server, used).finally(() => this.#renewing.delete(key));
      this.#renewing.set(key, renewing);
    }
    return renewing;
  }

  async #renew(server: Resource, used: string | undefined): Promise<string | undefined> {
    const { records } = this.#host;
    const before = await records.read(server);
    if (before.tokens?.access_token !== used) return before.tokens?.access_token;
    if (before.tokens?.refresh_token === undefined) return undefined;
    return this.exclusively(server, async () => {
      const record = await records.read(server);
      const { tokens } = record;
      if (tokens?.access_token !== used) return tokens?.access_token;
      if (tokens?.refresh_token === undefined) return undefined;
      const next = await this.#refresh(server, record);
      await records.write(server, next);
      return next.tokens?.access_token;
    });
  }

  async #refresh(server: Resource, record: OAuthRecord): Promise<OAuthRecord> {
    const { given, client = given, redirectUri, discovery, tokens } = record;
    if (!client || redirectUri === undefined || !discovery) return { ...record, tokens: undefined };
    const exchange = new Exchange({ client, redirectUri, discovery, tokens });
    try {
      await auth(exchange, { serverUrl: server.url, fetchFn: authFetch(this.#host, server.url) });
    } catch (cause) {
      if (!exchange.revoked) throw notNow(cause);
    }
    if (exchange.tokensNow) return granted(record, exchange.tokensNow, this.#host.now());
    if (exchange.revoked) return { ...record, tokens: undefined, expiresAt: undefined };
    throw notNow();
  }

  /** The work of one process at a time, whatever process it is. Throws AppError `unavailable` when it is never its turn. */
  async exclusively<T>(server: Located, work: () => Promise<T>): Promise<T> {
    const { servers, now } = this.#host;
    const { owner, id } = server;
    const holder = crypto.randomUUID();
    const deadline = performance.now() + LEASE_MS;
    for (;;) {
      const at = now();
      const until = new Date(at.getTime() + LEASE_MS);
      if (await servers.lease(owner, id, { holder, now: at, until })) break;
      if ((await servers.get(owner, id)) === null)
        throw new AppError("not_found", "There is no saved MCP server with this id.");
      if (performance.now() >= deadline)
        throw new AppError("unavailable", "Somebody else is at this server's authorization. Try again.", {
          retryAfter: 5,
        });
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
    try {
      return await work();
    } finally {
      await servers.release(owner, id, holder);
    }
  }

  /** Keeps what the server has asked for, for the flow that a person begins later. */
  async #note(server: Resource, asked: ReturnType<typeof extractWWWAuthenticateParams>): Promise<void> {
    const challenge = { resourceMetadataUrl: asked.resourceMetadataUrl?.href, scope: asked.scope };
    const { records, servers } = this.#host;
    const row = await servers.get(server.owner, server.id);
    if (!row || isSame((await records.of(row)).challenge, challenge)) return;
    await this.exclusively(server, async () => {
      await records.write(server, { ...(await records.read(server)), challenge });
    });
  }

  #endsWithin(ms: number, { expiresAt }: Known): boolean {
    return expiresAt !== undefined && this.#host.now().getTime() >= expiresAt - ms;
  }
}

interface Known {
  token: string | undefined;
  refreshable: boolean;
  expiresAt: number | undefined;
}

function knownOf({ tokens, expiresAt }: OAuthRecord): Known {
  return { token: tokens?.access_token, refreshable: tokens?.refresh_token !== undefined, expiresAt };
}

/** The record with new tokens. */
export function granted(record: OAuthRecord, tokens: OAuthTokens, now: Date): OAuthRecord {
  const { expires_in: seconds } = tokens;
  const expiresAt = seconds === undefined ? undefined : now.getTime() + seconds * 1000;
  return { ...record, tokens, expiresAt };
}

function isSame(a: OAuthRecord["challenge"], b: NonNullable<OAuthRecord["challenge"]>): boolean {
  return a !== undefined && a.scope === b.scope && a.resourceMetadataUrl === b.resourceMetadataUrl;
}

function withToken(init: GuardedInit, token: string | undefined): GuardedInit {
  if (token === undefined) return init;
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${token}`);
  return { ...init, headers };
}

function notNow(cause?: unknown): AppError {
  return new AppError(
    "unreachable",
    "Its authorization has run out, and the authorization server has not renewed it now.",
    { cause },
  );
}
