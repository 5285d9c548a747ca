/** The two roles in which the SDK's OAuth machinery works for us: a flow that a person goes through, and a refresh. */
import type { OAuthClientProvider, OAuthDiscoveryState } from "@modelcontextprotocol/sdk/client/auth.js";
import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthTokens,
} from "@modelcontextprotocol/sdk/shared/auth.js";
import type { OAuthRecord } from "./oauth-record.ts";

/** In the order of preference; what a server does not support cannot be used. */
const METHODS = ["client_secret_basic", "client_secret_post", "none"];

export interface Callback {
  /** Where authorization servers send people back to. */
  redirectUri: string;
  /** Where our metadata document can be read by everybody, for servers that take that address as the client's id. */
  documentUrl?: string | undefined;
  clientUri?: string | undefined;
}

export interface FlowWish extends Callback {
  record: OAuthRecord;
  discovery: OAuthDiscoveryState;
  state: string;
}

/** What somebody reads who is asked whether we may. */
export function clientMetadata(
  redirectUri: string,
  discovery: OAuthDiscoveryState | undefined,
  clientUri?: string | undefined,
): OAuthClientMetadata {
  const supported = discovery?.authorizationServerMetadata?.token_endpoint_auth_methods_supported;
  const method = METHODS.find((each) => supported?.includes(each));
  return {
    client_name: "Dragoman",
    ...(clientUri === undefined ? {} : { client_uri: clientUri }),
    redirect_uris: [redirectUri],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    ...(method === undefined ? {} : { token_endpoint_auth_method: method }),
  };
}

/** Up to the address that a person has to open. */
export class BeginningFlow implements OAuthClientProvider {
  client: OAuthClientInformationMixed | undefined;
  verifier = "";
  authorizationUrl: URL | undefined;
  readonly saveClientInformation?: (client: OAuthClientInformationMixed) => void;
  readonly clientMetadataUrl?: string;
  readonly #wish: FlowWish;

  constructor(wish: FlowWish) {
    this.#wish = wish;
    const { given, client, redirectUri } = wish.record;
    this.client = given ?? (redirectUri === wish.redirectUri ? client : undefined);
    if (given) return;
    this.saveClientInformation = (registered) => {
      this.client = registered;
    };
    if (wish.documentUrl !== undefined) this.clientMetadataUrl = wish.documentUrl;
  }

  get redirectUrl(): string {
    return this.#wish.redirectUri;
  }

  get clientMetadata(): OAuthClientMetadata {
    const { redirectUri, discovery, clientUri } = this.#wish;
    return clientMetadata(redirectUri, discovery, clientUri);
  }

  state(): string {
    return this.#wish.state;
  }

  clientInformation(): OAuthClientInformationMixed | undefined {
    return this.client;
  }

  /** A person goes through it because what there is does not do. */
  tokens(): undefined {
    return undefined;
  }

  saveTokens(): void {}

  discoveryState(): OAuthDiscoveryState {
    return this.#wish.discovery;
  }

  saveCodeVerifier(verifier: string): void {
    this.verifier = verifier;
  }

  codeVerifier(): string {
    return this.verifier;
  }

  redirectToAuthorization(url: URL): void {
    this.authorizationUrl = url;
  }
}

export interface Granted {
  client: OAuthClientInformationMixed;
  redirectUri: string;
  discovery: OAuthDiscoveryState;
  /** Of a flow. */
  verifier?: string | undefined;
  /** To be refreshed. */
  tokens?: OAuthTokens | undefined;
}

/** From a code, or from a refresh token, to tokens. Registers nothing and asks nobody. */
export class Exchange implements OAuthClientProvider {
  tokensNow: OAuthTokens | undefined;
  /** The authorization server has said that the refresh token, or the client, is none of its own any more. */
  revoked = false;
  readonly #granted: Granted;

  constructor(granted: Granted) {
    this.#granted = granted;
  }

  get redirectUrl(): string {
    return this.#granted.redirectUri;
  }

  get clientMetadata(): OAuthClientMetadata {
    return clientMetadata(this.#granted.redirectUri, this.#granted.discovery);
  }

  clientInformation(): OAuthClientInformationMixed {
    return this.#granted.client;
  }

  tokens(): OAuthTokens | undefined {
    return this.revoked ? undefined : this.#granted.tokens;
  }

  saveTokens(tokens: OAuthTokens): void {
    this.tokensNow = tokens;
  }

  discoveryState(): OAuthDiscoveryState {
    return this.#granted.discovery;
  }

  saveCodeVerifier(): void {}

  codeVerifier(): string {
    return this.#granted.verifier ?? "";
  }

  redirectToAuthorization(): void {}

  invalidateCredentials(): void {
    this.revoked = true;
  }
}
