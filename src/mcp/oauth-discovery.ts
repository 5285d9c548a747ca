/** What an MCP server and its authorization server say about themselves, and how much of it is believed. */
import {
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  type OAuthDiscoveryState,
} from "@modelcontextprotocol/sdk/client/auth.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { McpServer } from "../core/mcp.ts";
import { AppError } from "../errors.ts";
import type { OAuthRecord } from "./oauth-record.ts";

/** Asks a server for nothing, to hear what it wants. */
const PROBE = JSON.stringify({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "dragoman", version: "1.0.0" },
  },
});

/** What the server asks for when nobody has noted it yet. */
export async function probe(url: string, fetchFn: FetchLike): Promise<NonNullable<OAuthRecord["challenge"]>> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const response = await fetchFn(url, { method: "POST", headers, body: PROBE });
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response);
  await response.body?.cancel();
  return { resourceMetadataUrl: resourceMetadataUrl?.href, scope };
}

export async function discover(
  serverUrl: string,
  resourceMetadataUrl: string | undefined,
  fetchFn: FetchLike,
): Promise<OAuthDiscoveryState> {
  const where =
    resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl: new URL(resourceMetadataUrl) };
  const found = await discoverOAuthServerInfo(serverUrl, { ...where, fetchFn });
  const issuer = found.authorizationServerMetadata?.issuer;
  // RFC 8414, 3.3. Servers of 2025-03-26 name no authorization server that its name could be held against.
  if (found.resourceMetadata && issuer !== undefined && !isSame(issuer, found.authorizationServerUrl))
    throw new Error(`its authorization server ${found.authorizationServerUrl} calls itself ${issuer}`);
  return { ...found, ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }) };
}

/**
 * What the server asked for, beside what has been granted before; otherwise what it supports. `offline_access` joins where the
 * authorization server knows it, since a refresh token is wanted.
 */
export function scopeOf(
  { given, tokens }: OAuthRecord,
  asked: string | undefined,
  { resourceMetadata, authorizationServerMetadata }: OAuthDiscoveryState,
): string | undefined {
  const wanted = asked ?? given?.scope ?? resourceMetadata?.scopes_supported?.join(" ") ?? "";
  const scopes = new Set([...words(tokens?.scope), ...words(wanted)]);
  const known = authorizationServerMetadata?.scopes_supported;
  if (scopes.size > 0 && known?.includes("offline_access")) scopes.add("offline_access");
  return scopes.size === 0 ? undefined : [...scopes].join(" ");
}

function words(text: string | undefined): string[] {
  return text?.split(" ").filter((word) => word !== "") ?? [];
}

/** A person is sent there by a browser. */
export function checkScheme({ protocol }: URL): void {
  if (protocol !== "https:" && protocol !== "http:")
    throw new Error("the address to authorize at is no web address");
}

/** RFC 9207: an answer of another authorization server than the one that was asked. */
export function checkIssuer(
  server: McpServer,
  discovery: OAuthDiscoveryState,
  issuer: string | undefined,
): void {
  const metadata = discovery.authorizationServerMetadata as
    | { issuer: string; authorization_response_iss_parameter_supported?: boolean }
    | undefined;
  const missing = issuer === undefined && metadata?.authorization_response_iss_parameter_supported === true;
  const other = issuer !== undefined && metadata !== undefined && issuer !== metadata.issuer;
  if (missing || other)
    throw new AppError(
      "forbidden",
      `The answer came from another authorization server than the one of ${server.name}. Nothing was kept.`,
    );
}

/** But for a slash at the end, which parsed URLs have and written ones often have not. */
function isSame(a: string, b: string): boolean {
  return a.replace(/\/$/, "") === b.replace(/\/$/, "");
}
