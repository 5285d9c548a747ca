/** The authorizations of all MCP servers. What speaks OAuth is loaded when the first one is needed. */
import type { GuardedFetch } from "../core/fetch.ts";
import type { McpServer, McpServers } from "../core/mcp.ts";
import type { BegunFlow, McpOAuth, Returned, Unconfirmed } from "./oauth.ts";
import type { Callback } from "./oauth-provider.ts";
import { type GivenClient, type Located, OAuthRecords, type Vault } from "./oauth-record.ts";
import type { OAuthTokenSource } from "./oauth-tokens.ts";

export interface AuthorizationHost {
  servers: McpServers;
  /** Absent where the service has no secret: then nothing can be authorized. */
  vault: Vault | undefined;
  fetch: GuardedFetch;
  /** Addresses that callers give are the operator's own choice. */
  trusted: boolean;
  /** What the service's own requests bear (P4). */
  callerMark(): Promise<string>;
  now(): Date;
  /** The log and errors cut it out from here on. */
  hold(secret: string): void;
}

export class Authorizations {
  readonly #host: AuthorizationHost;
  #parts: Promise<{ tokens: OAuthTokenSource; oauth: McpOAuth }> | undefined;

  constructor(host: AuthorizationHost) {
    this.#host = host;
  }

  /** The way to a server, with its token where it has one. */
  async fetchFor({ owner, id, url }: McpServer): Promise<GuardedFetch> {
    if (url === null) return this.#host.fetch;
    return (await this.#load()).tokens.fetchFor({ owner, id, url });
  }

  /** See {@link McpOAuth.configure}. */
  async configure(server: McpServer, client: GivenClient | null): Promise<void> {
    await (await this.#load()).oauth.configure(server, client);
  }

  /** See {@link McpOAuth.start}. */
  async start(server: Located, callback: Callback): Promise<BegunFlow> {
    return (await this.#load()).oauth.start(server, callback);
  }

  /** See {@link McpOAuth.finish}. */
  async finish(returned: Returned): Promise<McpServer> {
    return (await this.#load()).oauth.finish(returned);
  }

  /** See {@link McpOAuth.ask}. */
  async ask(returned: Returned): Promise<Unconfirmed> {
    return (await this.#load()).oauth.ask(returned);
  }

  /** See {@link McpOAuth.confirm}. */
  async confirm(confirmation: string): Promise<McpServer> {
    return (await this.#load()).oauth.confirm(confirmation);
  }

  #load() {
    this.#parts ??= Promise.all([import("./oauth.ts"), import("./oauth-tokens.ts")]).then(
      ([{ McpOAuth }, { OAuthTokenSource }]) => {
        const { servers, vault, fetch, trusted } = this.#host;
        const records = new OAuthRecords(servers, vault, (secret) => this.#host.hold(secret));
        const callerMark = this.#host.callerMark();
        const host = { servers, records, fetch, trusted, callerMark, now: () => this.#host.now() };
        const tokens = new OAuthTokenSource(host);
        return { tokens, oauth: new McpOAuth(host, tokens) };
      },
    );
    return this.#parts;
  }
}
