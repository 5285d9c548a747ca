/** What is kept of a server's authorization, as one sealed text in its row: nothing in it is ever shown. */
import type { OAuthDiscoveryState } from "@modelcontextprotocol/sdk/client/auth.js";
import type { OAuthClientInformationMixed, OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";
import type { McpServer, McpServers } from "../core/mcp.ts";

/** A client that somebody has registered with the authorization server beforehand. */
export interface GivenClient {
  client_id: string;
  client_secret?: string | undefined;
  scope?: string | undefined;
}

export interface OAuthFlow {
  verifier: string;
  redirectUri: string;
  client: OAuthClientInformationMixed;
  discovery: OAuthDiscoveryState;
  /** The row has it too: the callback finds the server by it. */
  stateHash: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
  /** A person has brought it back, and has not yet said that they began this. */
  code?: string | undefined;
}

export interface OAuthRecord {
  /** The server's address: at another one, nothing of this is anybody's business. Set when it is kept. */
  url?: string | null | undefined;
  given?: GivenClient | undefined;
  /** What the server has asked for when it last refused. */
  challenge?: { resourceMetadataUrl?: string | undefined; scope?: string | undefined } | undefined;
  /** Registered by us, for this address of the callback. */
  client?: OAuthClientInformationMixed | undefined;
  redirectUri?: string | undefined;
  discovery?: OAuthDiscoveryState | undefined;
  tokens?: OAuthTokens | undefined;
  /** Of the access token, where the server has said so. Milliseconds since the epoch. */
  expiresAt?: number | undefined;
  /** Under way: a person is at the authorization server. */
  flow?: OAuthFlow | undefined;
}

export interface Vault {
  seal(text: string): Promise<string>;
  /** null when it was sealed under another secret. */
  open(sealed: string): Promise<string | null>;
}

export interface Located {
  owner: string;
  id: string;
}

export interface Addressed extends Located {
  url: string | null;
}

export class OAuthRecords {
  readonly #servers: McpServers;
  readonly #vault: Vault | undefined;
  readonly #hold: (secret: string) => void;

  /** `hold`: the log and errors cut out what it is given. */
  constructor(servers: McpServers, vault: Vault | undefined, hold: (secret: string) => void) {
    this.#servers = servers;
    this.#vault = vault;
    this.#hold = hold;
  }

  /** Without a secret of the service's nothing can be kept. */
  get canKeep(): boolean {
    return this.#vault !== undefined;
  }

  async read({ owner, id }: Located): Promise<OAuthRecord> {
    return this.of(await this.#servers.get(owner, id));
  }

  async of(server: McpServer | null): Promise<OAuthRecord> {
    const text = server?.oauth ? await this.#vault?.open(server.oauth) : undefined;
    if (!text) return {};
    const record = JSON.parse(text) as OAuthRecord;
    this.#holdAll(record);
    return record.url === server?.url ? record : {};
  }

  /** false where the server is gone. */
  async write({ owner, id, url }: Addressed, record: OAuthRecord): Promise<boolean> {
    if (!this.#vault) return false;
    this.#holdAll(record);
    const sealed = await this.#vault.seal(JSON.stringify({ ...record, url }));
    return this.#servers.saveOAuth(owner, id, { sealed, stateHash: record.flow?.stateHash ?? null });
  }

  #holdAll({ given, client, tokens, flow }: OAuthRecord): void {
    const secrets = [
      given?.client_secret,
      client?.client_secret,
      flow?.client.client_secret,
      flow?.verifier,
      flow?.code,
    ];
    for (const secret of [...secrets, tokens?.access_token, tokens?.refresh_token])
      if (secret !== undefined) this.#hold(secret);
  }
}

/** What the row keeps to find a flow by: the state itself is only in the browser. */
export async function hashState(state: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(state));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** 256 random bits, for a URL. */
export function createState(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
