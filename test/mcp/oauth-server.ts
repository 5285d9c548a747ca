/** An MCP server that wants OAuth, and its authorization server: small, strict, on two origins, with an eye on what it is asked. */
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { Hono } from "hono";

export interface OAuthWorld {
  /** Of the MCP server. */
  url: string;
  issuer: string;
  /** Every request to the token endpoint, and what came of it. */
  tokenRequests: { grant: string; outcome: string; auth: string }[];
  registrations: Record<string, unknown>[];
  authorizations: URLSearchParams[];
  /** Calls of tools that were let in. */
  calls: string[];
  /** Tokens that were shown to the MCP server. */
  shown: string[];
  settings: Settings;
  /** Access tokens are good no more; refresh tokens are. */
  expire(): void;
  /** Nothing is good any more. */
  revoke(): void;
  close(): Promise<void>;
}

interface Settings {
  /** Seconds that access tokens are said to be good for. */
  expiresIn: number | undefined;
  /** Of what the resource metadata, the authorization server's metadata and its answers say. */
  resource: string | undefined;
  issuer: string | undefined;
  answeringIssuer: string | undefined;
  /** Status of the token endpoint, where it does not work. */
  broken: number | undefined;
  /** What calls need; listing needs nothing in particular. */
  callScope: string | undefined;
  registers: boolean;
  /** What comes back in place of a code. */
  refusal: string | undefined;
  /** Held until it resolves. */
  beforeRefresh: (() => Promise<void>) | undefined;
}

interface Grant {
  client: string;
  scope: string;
  resource: string | null;
}

export const KNOWN_CLIENT = { client_id: "known-client", client_secret: "a-secret-of-the-known-client" };

export async function startOAuthWorld(): Promise<OAuthWorld> {
  const settings: Settings = {
    ...{ expiresIn: 3600, resource: undefined, issuer: undefined, answeringIssuer: undefined },
    ...{ broken: undefined, callScope: undefined, registers: true, refusal: undefined },
    beforeRefresh: undefined,
  };
  const clients = new Map<string, string | undefined>([[KNOWN_CLIENT.client_id, KNOWN_CLIENT.client_secret]]);
  const codes = new Map<string, Grant & { challenge: string; redirectUri: string }>();
  const access = new Map<string, Grant>();
  const refresh = new Map<string, Grant>();
  const world: OAuthWorld = {
    ...{
      url: "",
      issuer: "",
      tokenRequests: [],
      registrations: [],
      authorizations: [],
      calls: [],
      shown: [],
      settings,
    },
    expire: () => access.clear(),
    revoke() {
      access.clear();
      refresh.clear();
    },
    async close() {
      for (const server of [authServer, mcpServer]) await new Promise((resolve) => server.close(resolve));
    },
  };

  const auth = new Hono()
    .get("/.well-known/oauth-authorization-server", (c) =>
      c.json({
        issuer: settings.issuer ?? world.issuer,
        authorization_endpoint: `${world.issuer}/authorize`,
        token_endpoint: `${world.issuer}/token`,
        ...(settings.registers ? { registration_endpoint: `${world.issuer}/register` } : {}),
        response_types_supported: ["code"],
        grant_types_supported: ["authorization_code", "refresh_token"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["client_secret_basic", "none"],
        authorization_response_iss_parameter_supported: true,
      }),
    )
    .post("/register", async (c) => {
      const asked = await c.req.json();
      world.registrations.push(asked);
      const id = `client-${randomUUID()}`;
      const secret = `secret-${randomUUID()}`;
      clients.set(id, secret);
      return c.json({ ...asked, client_id: id, client_secret: secret }, 201);
    })
    .get("/authorize", (c) => {
      const asked = new URL(c.req.url).searchParams;
      world.authorizations.push(asked);
      const back = new URL(asked.get("redirect_uri") ?? "");
      back.searchParams.set("state", asked.get("state") ?? "");
      back.searchParams.set("iss", settings.answeringIssuer ?? world.issuer);
      if (settings.refusal !== undefined) {
        back.searchParams.set("error", "access_denied");
        back.searchParams.set("error_description", settings.refusal);
        return c.redirect(back.href);
      }
      if (asked.get("code_challenge_method") !== "S256") return c.text("PKCE", 400);
      const client = asked.get("client_id") ?? "";
      if (!clients.has(client) && !client.startsWith("https://")) return c.text("client", 400);
      const code = randomUUID();
      codes.set(code, {
        ...{ client, scope: asked.get("scope") ?? "", resource: asked.get("resource") },
        ...{ challenge: asked.get("code_challenge") ?? "", redirectUri: asked.get("redirect_uri") ?? "" },
      });
      back.searchParams.set("code", code);
      return c.redirect(back.href);
    })
    .post("/token", async (c) => {
      const form = new URLSearchParams(await c.req.text());
      const grant = form.get("grant_type") ?? "";
      const [id, secret, how] = clientOf(c.req.header("authorization"), form);
      const answer = (outcome: string, status: 200 | 400 | 401 | 500 | 503, body: object) => {
        world.tokenRequests.push({ grant, outcome, auth: how });
        return c.json(body, status);
      };
      const refuse = (error: string, status: 400 | 401 = 400) => answer(error, status, { error });
      const issue = (given: Grant) => {
        const tokens = { access_token: `access-${randomUUID()}`, refresh_token: `refresh-${randomUUID()}` };
        access.set(tokens.access_token, given);
        refresh.set(tokens.refresh_token, given);
        const { expiresIn } = settings;
        const about = { token_type: "Bearer", scope: given.scope };
        return answer("issued", 200, {
          ...{ ...tokens, ...about },
          ...(expiresIn === undefined ? {} : { expires_in: expiresIn }),
        });
      };
      if (settings.broken !== undefined) return answer("broken", settings.broken as 500, {});
      if (!id.startsWith("https://") && clients.get(id) !== secret) return refuse("invalid_client", 401);
      if (grant === "authorization_code") {
        const found = codes.get(form.get("code") ?? "");
        codes.delete(form.get("code") ?? "");
        const hash = createHash("sha256")
          .update(form.get("code_verifier") ?? "")
          .digest("base64url");
        const fits = found?.client === id && found.redirectUri === form.get("redirect_uri");
        if (!found || !fits || hash !== found.challenge) return refuse("invalid_grant");
        if (form.get("resource") !== found.resource) return refuse("invalid_target");
        return issue(found);
      }
      await settings.beforeRefresh?.();
      // It is good once: who shows it again may have stolen it, and all that came of it ends.
      const token = form.get("refresh_token") ?? "";
      const found = refresh.get(token);
      refresh.delete(token);
      return found?.client === id ? issue(found) : refuse("invalid_grant");
    });

  const mcp = new Hono()
    .get("/.well-known/oauth-protected-resource/mcp", (c) =>
      c.json({ resource: settings.resource ?? world.url, authorization_servers: [world.issuer] }),
    )
    .all("/mcp", async (c) => {
      const metadata = `resource_metadata="${new URL(world.url).origin}/.well-known/oauth-protected-resource/mcp"`;
      const token = c.req.header("authorization")?.slice("Bearer ".length);
      if (token !== undefined) world.shown.push(token);
      const grant = access.get(token ?? "");
      if (grant?.resource !== world.url)
        return c.json({ error: "invalid_token" }, 401, { "www-authenticate": `Bearer ${metadata}` });
      if (c.req.method !== "POST") return c.body(null, 405);
      const body = await c.req.json();
      const needs = body.method === "tools/call" ? settings.callScope : undefined;
      if (needs !== undefined && !grant.scope.split(" ").includes(needs)) {
        const told = `Bearer error="insufficient_scope", scope="${needs}", ${metadata}`;
        return c.json({ error: "insufficient_scope" }, 403, { "www-authenticate": told });
      }
      if (body.method === "tools/call") world.calls.push(body.params.name);
      return answerMcp(c.req.raw, body);
    });

  const authServer = serve({ fetch: auth.fetch, port: 0, hostname: "127.0.0.1" });
  const mcpServer = serve({ fetch: mcp.fetch, port: 0, hostname: "127.0.0.1" });
  for (const server of [authServer, mcpServer]) if (!server.listening) await once(server, "listening");
  world.issuer = `http://127.0.0.1:${(authServer.address() as AddressInfo).port}`;
  world.url = `http://127.0.0.1:${(mcpServer.address() as AddressInfo).port}/mcp`;
  return world;
}

function clientOf(header: string | undefined, form: URLSearchParams): [string, string | undefined, string] {
  if (!header?.startsWith("Basic "))
    return [form.get("client_id") ?? "", form.get("client_secret") ?? undefined, "none"];
  const [id = "", secret] = atob(header.slice("Basic ".length)).split(":");
  return [id, secret, "basic"];
}

async function answerMcp(request: Request, body: unknown): Promise<Response> {
  const server = new Server({ name: "tracker", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [
      {
        name: "issues",
        description: "Lists issues.",
        inputSchema: { type: "object" as const },
        annotations: { readOnlyHint: true },
      },
    ],
  }));
  server.setRequestHandler(CallToolRequestSchema, () => ({
    content: [{ type: "text" as const, text: "No issues." }],
  }));
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  return transport.handleRequest(request, { parsedBody: body });
}
