/**
 * `/api/mcp/oauth`: a person authorizes the agent to use an MCP server. The start is the owner's; the way back is a browser's,
 * whose state says all that it may do.
 */
import { type Context, Hono } from "hono";
import type { McpServer } from "../core/mcp.ts";
import { reveal } from "../core/preview.ts";
import { AppError, toFault } from "../errors.ts";
import type { Unconfirmed } from "../mcp/oauth.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";
import { OAUTH_CALLBACK } from "./guard.ts";

/** Characters shown of an owner's name. */
const OWNER_CHARS = 40;

/** An address at which everybody can read who we are; where the service has one, servers take it for our id. */
export const CLIENT_METADATA = "/client-metadata.json";

export function mcpOAuthRoutes({ config, mcp, mcpAuthorizations, platform }: Services): Hono<AppEnv> {
  const severalOwners = config.access.mode !== "open";
  /** Where browsers reach us: what the operator says, or as this one has it. */
  const originOf = (c: Context<AppEnv>): string => config.publicUrl ?? new URL(c.req.url).origin;

  async function authorized({ owner, id, name }: McpServer): Promise<Response> {
    const problem = await mcp.reconnect(owner, id).then(() => null, reasonOf);
    const whose = severalOwners ? ` of ${shortened(owner)}` : "";
    const done = `The agent${whose} may use ${name} now`;
    const text =
      problem === null
        ? `${done}. You can close this page.`
        : `${done}, but could not connect to it: ${problem}`;
    return page(200, "Authorized", escaped(text));
  }

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
      return c.json({
        authorization_url: authorizationUrl,
        expires_at: expiresAt.toISOString(),
        owner: shortened(server.owner),
      });
    })
    .get("/callback", async (c) => {
      // A HEAD request must not use up a state.
      if (c.req.method !== "GET")
        throw new AppError("method_not_allowed", "This address is opened with GET.");
      try {
        const confirmation = c.req.query("confirmation");
        if (confirmation !== undefined)
          return await authorized(await mcpAuthorizations.confirm(confirmation));
        const returned = {
          state: c.req.query("state"),
          code: c.req.query("code"),
          issuer: c.req.query("iss"),
          error: c.req.query("error"),
          errorDescription: c.req.query("error_description"),
        };
        // On one's own machine whoever comes back has begun it.
        if (!severalOwners) return await authorized(await mcpAuthorizations.finish(returned));
        return question(await mcpAuthorizations.ask(returned));
      } catch (error) {
        if (!(error instanceof AppError))
          platform.log("error", "an authorization broke", {
            request_id: c.get("requestId"),
            error: String((error as Error).stack ?? error),
          });
        const { status, message } = toFault(error);
        return page(status, "Not authorized", escaped(c.get("redaction")?.clean(message) ?? message));
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

/** As it is told apart from others: an HMAC of a provider key is long. */
function shortened(owner: string): string {
  return owner.length > OWNER_CHARS ? `${owner.slice(0, OWNER_CHARS)}…` : owner;
}

/**
 * Whoever has begun the flow can have sent its address to somebody else, whose account it would then lead into. Only who
 * comes back can say, so they are asked.
 */
function question({ server: { owner, name, url }, confirmation }: Unconfirmed): Response {
  const [who, what] = [`<b>${escaped(shortened(owner))}</b>`, `<b>${escaped(reveal(name))}</b>`];
  const at = url === null ? "" : ` (${escaped(new URL(url).host)})`;
  return page(
    200,
    "Did you begin this?",
    `${who} has asked to use the MCP server ${what}${at} with the account that you have just signed in to. Go on only if you are ${who} and began this yourself: whoever is ${who} can use your account there from then on. Otherwise close this page, and nothing is granted.`,
    `<form method="get" action="${OAUTH_CALLBACK}"><input type="hidden" name="confirmation" value="${confirmation}"><button>I am ${escaped(shortened(owner))}: authorize</button></form>`,
  );
}

/** Nothing in it runs, loads or is framed, and the code in its address goes no further. */
const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** `text` and `form` are HTML. */
function page(status: number, title: string, text: string, form = ""): Response {
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${title} - Dragoman</title></head>
<body><h1>${title}</h1><p>${text}</p>${form}</body>
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
