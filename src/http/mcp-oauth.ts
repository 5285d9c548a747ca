/**
 * `/api/mcp/oauth`: a person authorizes the agent to use an MCP server. The start is the owner's; the way back is a browser's,
 * whose state says all that it may do.
 */
import { type Context, Hono } from "hono";
import { AppError, toFault } from "../errors.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";
import { OAUTH_CALLBACK } from "./guard.ts";

/** An address at which everybody can read who we are; where the service has one, servers take it for our id. */
export const CLIENT_METADATA = "/client-metadata.json";

export function mcpOAuthRoutes({ config, mcp, mcpAuthorizations, platform }: Services): Hono<AppEnv> {
  /** Where browsers reach us: what the operator says, or as this one has it. */
  const originOf = (c: Context<AppEnv>): string => config.publicUrl ?? new URL(c.req.url).origin;

  return new Hono<AppEnv>()
    .get("/:id/start", async (c) => {
      const server = { owner: c.get("owner"), id: c.req.param("id") };
      const { authorizationUrl, expiresAt } = await mcpAuthorizations.start(server, {
        redirectUri: originOf(c) + OAUTH_CALLBACK,
        ...publicIdentity(config.publicUrl),
      });
      c.header("cache-control", "no-store");
      // A browser goes there; whoever asks with a program opens the address in one.
      if (c.req.header("accept")?.includes("text/html")) return c.redirect(authorizationUrl);
      return c.json({ authorization_url: authorizationUrl, expires_at: expiresAt.toISOString() });
    })
    .get("/callback", async (c) => {
      // A HEAD request must not use up a state.
      if (c.req.method !== "GET")
        throw new AppError("method_not_allowed", "This address is opened with GET.");
      try {
        const server = await mcpAuthorizations.finish({
          state: c.req.query("state"),
          code: c.req.query("code"),
          issuer: c.req.query("iss"),
          error: c.req.query("error"),
          errorDescription: c.req.query("error_description"),
        });
        const { owner, id, name } = server;
        const problem = await mcp.reconnect(owner, id).then(() => null, reasonOf);
        return problem === null
          ? page(200, "Authorized", `The agent may use ${name} now. You can close this page.`)
          : page(200, "Authorized", `The agent may use ${name} now, but could not connect to it: ${problem}`);
      } catch (error) {
        if (!(error instanceof AppError))
          platform.log("error", "an authorization broke", {
            request_id: c.get("requestId"),
            error: String((error as Error).stack ?? error),
          });
        const { status, message } = toFault(error);
        return page(status, "Not authorized", c.get("redaction")?.clean(message) ?? message);
      }
    });
}

/** `/client-metadata.json`, for authorization servers that know clients by an address of theirs. */
export function clientMetadataRoutes({ config }: Services): Hono<AppEnv> {
  return new Hono<AppEnv>().get(CLIENT_METADATA, (c) => {
    const { documentUrl, clientUri } = publicIdentity(config.publicUrl);
    if (documentUrl === undefined)
      throw new AppError(
        "not_found",
        "This service has no public address: PUBLIC_URL is not set to an https one.",
      );
    return c.json({
      client_id: documentUrl,
      client_name: "Dragoman",
      client_uri: clientUri,
      redirect_uris: [clientUri + OAUTH_CALLBACK],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    });
  });
}

function publicIdentity(publicUrl: string | undefined) {
  if (!publicUrl?.startsWith("https:")) return { documentUrl: undefined, clientUri: publicUrl };
  return { documentUrl: publicUrl + CLIENT_METADATA, clientUri: publicUrl };
}

function reasonOf(error: unknown): string {
  return toFault(error).message;
}

/** Nothing in it runs, loads or is framed, and the code in its address goes no further. */
const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

function page(status: number, title: string, text: string): Response {
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${title} - Dragoman</title></head>
<body><h1>${title}</h1><p>${escaped(text)}</p></body>
</html>
`;
  return new Response(html, { status, headers: PAGE_HEADERS });
}

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] as string);
}
