/** `/api/mcp/oauth`: the authorization of MCP servers that ask for it. */
import * as z from "zod";
import type { Operation } from "./operation.ts";

const started = z
  .object({
    authorization_url: z.string().describe("To be opened in a browser."),
    expires_at: z.iso.datetime().describe("The way back is open until then, once."),
    owner: z.string().describe("Who the page that you come back to has to name."),
  })
  .meta({ id: "McpAuthorization" });
const clientMetadata = z
  .object({
    client_id: z.string(),
    client_name: z.string(),
    client_uri: z.string(),
    redirect_uris: z.array(z.string()),
    grant_types: z.array(z.string()),
    response_types: z.array(z.string()),
    token_endpoint_auth_method: z.literal("none"),
  })
  .meta({ id: "McpClientMetadata" });

const ORIGIN = "https://agent.example";
const HTML = "text/html";

export const MCP_OAUTH_ROUTES = [
  {
    id: "startMcpAuthorization",
    method: "get",
    path: "/api/mcp/oauth/{id}/start",
    tag: "MCP servers",
    summary: "Authorize an MCP server",
    description:
      "For a server with the status `needs_reauth`, or to give it a wider authorization. A browser (`Accept: text/html`) is sent to the authorization server; a program gets the address, to be opened in a browser. Discovers the authorization server, registers the agent there unless `connect` has named a client, and uses PKCE. An earlier start is void.",
    family: "api",
    params: z.object({ id: z.string().meta({ examples: ["tracker"] }) }),
    replies: {
      200: {
        description: "The address that a person opens.",
        json: {
          schema: started,
          examples: {
            Started: {
              authorization_url:
                "https://auth.example/authorize?response_type=code&client_id=example&code_challenge_method=S256",
              expires_at: "2026-11-20T10:10:00.000Z",
              owner: "ann",
            },
          },
        },
      },
      302: { description: "For a browser." },
    },
    faults: [404, 409, 502],
  },
  {
    id: "returnFromMcpAuthorization",
    method: "get",
    path: "/api/mcp/oauth/callback",
    tag: "MCP servers",
    summary: "Come back from an authorization",
    description:
      "Where an authorization server sends the browser back to. It takes no token: `state` is good for one attempt, for the owner and the server that it was made for. Where the service has several owners (ACCESS_TOKENS, AUTH=key) nothing is granted yet: the address may have been sent by somebody else, so a page names the owner and the server, and its button comes here again with a `confirmation` that is good for one attempt.",
    family: "public",
    query: z.object({
      state: z.string().optional(),
      code: z.string().optional(),
      iss: z.string().optional().describe("Who the answer comes from (RFC 9207)."),
      error: z.string().optional(),
      error_description: z.string().optional(),
      confirmation: z.string().optional().describe("From the page that asks, in place of all the others."),
    }),
    replies: {
      200: {
        description: "Authorized, and connected or not, as the page says; or the page that asks first.",
        text: HTML,
      },
      403: { description: "The authorization server has refused, or is another one.", text: HTML },
      410: { description: "The state is not known, was used, or took too long.", text: HTML },
      502: { description: "The authorization server has not taken the code.", text: HTML },
    },
    faults: [429],
  },
  {
    id: "clientMetadata",
    method: "get",
    path: "/client-metadata.json",
    tag: "MCP servers",
    summary: "Who the agent is to authorization servers",
    description: "Exists where PUBLIC_URL is an https address, which then is the agent's client id.",
    family: "public",
    replies: {
      200: {
        description: "A client id metadata document.",
        json: {
          schema: clientMetadata,
          examples: {
            Document: {
              client_id: `${ORIGIN}/client-metadata.json`,
              client_name: "Dragoman",
              client_uri: ORIGIN,
              redirect_uris: [`${ORIGIN}/api/mcp/oauth/callback`],
              grant_types: ["authorization_code", "refresh_token"],
              response_types: ["code"],
              token_endpoint_auth_method: "none",
            },
          },
        },
      },
    },
    faults: [404],
  },
] as const satisfies readonly Operation[];
