/**
 * OAuth for the MCP servers that ask for it: a person is sent to the authorization server and comes back with a code, which
 * becomes tokens. Discovery, registration, PKCE and the resource indicator are the SDK's; what is kept, for whom and how
 * long, and what is believed, is decided here.
 */
import { auth } from "@modelcontextprotocol/sdk/client/auth.js";
import type { McpServer } from "../core/mcp.ts";
import { AppError } from "../errors.ts";
import { checkIssuer, checkScheme, discover, probe, scopeOf } from "./oauth-discovery.ts";
import { authFetch } from "./oauth-fetch.ts";
import { BeginningFlow, type Callback, Exchange } from "./oauth-provider.ts";
import {
  createState,
  type GivenClient,
  hashState,
  type Located,
  type OAuthFlow,
  type OAuthRecord,
} from "./oauth-record.ts";
import { granted, type OAuthTokenSource, type TokenHost } from "./oauth-tokens.ts";
import { plainText } from "./plain-text.ts";

/** How long a person has at the authorization server. */
const FLOW_MS = 10 * 60_000;
/** Characters shown of what a server says. */
const QUOTE_LIMIT = 300;

export interface BegunFlow {
  authorizationUrl: string;
  expiresAt: Date;
}

/** What comes back with a person. */
export interface Returned {
  state: string | undefined;
  code: string | undefined;
  /** The authorization server's name for itself (RFC 9207). */
  issuer: string | undefined;
  error: string | undefined;
  errorDescription: string | undefined;
}

export interface Unconfirmed {
  server: McpServer;
  /** For {@link McpOAuth.confirm}. */
  confirmation: string;
}

type Attempt<T> = (server: McpServer, flow: OAuthFlow, record: OAuthRecord) => Promise<T>;

export class McpOAuth {
  readonly #host: TokenHost;
  readonly #tokens: OAuthTokenSource;

  constructor(host: TokenHost, tokens: OAuthTokenSource) {
    this.#host = host;
    this.#tokens = tokens;
  }

  /** A client that is registered already is used from here on; null: we register ourselves. Tokens of another client go. */
  async configure(server: McpServer, given: GivenClient | null): Promise<void> {
    const { records } = this.#host;
    this.#needKeeping();
    await this.#tokens.exclusively(server, async () => {
      const record = await records.read(server);
      if (JSON.stringify(record.given ?? null) === JSON.stringify(given)) return;
      await records.write(server, given ? { given } : {});
    });
  }

  /** Begins a flow; one that was under way is over. Throws AppError. */
  async start(located: Located, callback: Callback): Promise<BegunFlow> {
    this.#needKeeping();
    return this.#tokens.exclusively(located, async () => {
      const { servers, records, now } = this.#host;
      const server = await servers.get(located.owner, located.id);
      if (!server) throw new AppError("not_found", "There is no saved MCP server with this id.");
      const url = urlOf(server);
      const record = await records.of(server);
      const fetchFn = authFetch(this.#host, url);
      const state = createState();
      try {
        const challenge = record.challenge ?? (await probe(url, fetchFn));
        const discovery = await discover(url, challenge.resourceMetadataUrl, fetchFn);
        const scope = scopeOf(record, challenge.scope, discovery);
        const flow = new BeginningFlow({ record, ...callback, discovery, state });
        await auth(flow, { serverUrl: url, fetchFn, ...(scope === undefined ? {} : { scope }) });
        const { client, verifier, authorizationUrl } = flow;
        if (!client || !authorizationUrl) throw new Error("it gives no address to authorize at");
        checkScheme(authorizationUrl);
        const expiresAt = now().getTime() + FLOW_MS;
        const { redirectUri } = callback;
        const stateHash = await hashState(state);
        const under = { verifier, redirectUri, client, discovery, stateHash, expiresAt };
        await records.write(server, { ...record, challenge, flow: under });
        return { authorizationUrl: authorizationUrl.href, expiresAt: new Date(expiresAt) };
      } catch (error) {
        throw cannot(server, "cannot be authorized", error);
      }
    });
  }

  /**
   * Ends the flow that a state belongs to: there are tokens for the server from here on. A state is good for one attempt, whatever
   * becomes of it. Throws AppError `gone`, `forbidden` or `unreachable`.
   */
  async finish(returned: Returned): Promise<McpServer> {
    return this.#end(returned.state, async (server, flow, record) => {
      const code = codeOf(server, flow, returned);
      return this.#exchange(server, flow, record, code);
    });
  }

  /**
   * As {@link finish}, where whoever comes back need not be who has begun: nothing is granted before they have confirmed that,
   * with a token that is good for one attempt as well.
   */
  async ask(returned: Returned): Promise<Unconfirmed> {
    return this.#end(returned.state, async (server, flow, record) => {
      const code = codeOf(server, flow, returned);
      const confirmation = createState();
      const stateHash = await hashState(confirmation);
      await this.#host.records.write(server, { ...record, flow: { ...flow, code, stateHash } });
      return { server, confirmation };
    });
  }

  /** Ends the flow that {@link ask} has asked about. Throws as {@link finish}. */
  async confirm(confirmation: string): Promise<McpServer> {
    return this.#end(confirmation, async (server, flow, record) => {
      if (flow.code === undefined) throw stale();
      return this.#exchange(server, flow, record, flow.code);
    });
  }

  /** Takes the flow that a state belongs to out of the record, for one attempt. */
  async #end<T>(state: string | undefined, attempt: Attempt<T>): Promise<T> {
    const { servers, records, now } = this.#host;
    const stateHash = state === undefined ? "" : await hashState(state);
    const found = await servers.findByOAuthState(stateHash);
    if (!found) throw stale();
    return this.#tokens.exclusively(found, async () => {
      const server = await servers.findByOAuthState(stateHash);
      const { flow, ...record } = await records.of(server);
      if (!server || !flow) throw stale();
      await records.write(server, record);
      if (now().getTime() >= flow.expiresAt) throw stale();
      return attempt(server, flow, record);
    });
  }

  async #exchange(server: McpServer, flow: OAuthFlow, record: OAuthRecord, code: string): Promise<McpServer> {
    const { client, redirectUri, discovery, verifier } = flow;
    const exchange = new Exchange({ client, redirectUri, discovery, verifier });
    const url = urlOf(server);
    try {
      await auth(exchange, {
        serverUrl: url,
        authorizationCode: code,
        fetchFn: authFetch(this.#host, url),
      });
    } catch (error) {
      throw cannot(server, "has not taken the authorization", error);
    }
    const tokens = exchange.tokensNow;
    if (!tokens) throw cannot(server, "has not taken the authorization", new Error("it gave no tokens"));
    const kept: OAuthRecord = { ...record, challenge: undefined, client, redirectUri, discovery };
    await this.#host.records.write(server, granted(kept, tokens, this.#host.now()));
    return server;
  }

  #needKeeping(): void {
    if (this.#host.records.canKeep) return;
    throw new AppError(
      "unavailable",
      "Authorizations cannot be kept: set SECRET_KEY on the server, at least 32 random characters.",
    );
  }
}

function urlOf({ url }: McpServer): string {
  if (url !== null) return url;
  throw new AppError(
    "conflict",
    "This server is a program of its own: it has no authorization to ask for. Give it what it needs in `env`.",
  );
}

function codeOf(server: McpServer, flow: OAuthFlow, returned: Returned): string {
  // It is a confirmation, which was taken for a state.
  if (flow.code !== undefined) throw stale();
  if (returned.error !== undefined || returned.code === undefined) throw refused(server, returned);
  checkIssuer(server, flow.discovery, returned.issuer);
  return returned.code;
}

function stale(): AppError {
  return new AppError(
    "gone",
    "This way back is not known, was used already, or took too long. Begin again with GET /api/mcp/oauth/{id}/start.",
  );
}

function refused({ name }: McpServer, { error, errorDescription }: Returned): AppError {
  const said = quote(errorDescription || error || "there is no code in its answer");
  return new AppError("forbidden", `The authorization server of ${name} has refused: ${said}.`);
}

function cannot({ name }: McpServer, what: string, cause: unknown): AppError {
  return new AppError("unreachable", `The MCP server ${name} ${what}: ${reasonOf(cause)}.`, { cause });
}

function reasonOf(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause);
  // The SDK quotes the page that it took for an answer.
  const status = /^HTTP (\d{3}): Invalid OAuth error response/.exec(message)?.[1];
  if (status === undefined) return quote(message);
  return `what it names as its authorization server answered with HTTP ${status}, and not as OAuth says; perhaps it wants no authorization`;
}

function quote(text: string): string {
  return plainText(text, QUOTE_LIMIT).replaceAll(/\s+/g, " ").trim().replace(/\.$/, "");
}
