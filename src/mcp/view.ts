/** An owner's servers as `GET /api/mcp/servers` shows them. */
import type { McpDefinition, McpTool, McpVersion } from "../core/mcp.ts";
import type { Link, LinkStatus } from "./link.ts";
import type { Offer, PinnedServer } from "./mcp-tools.ts";

interface ServerFacts {
  name: string;
  transport: PinnedServer["transport"];
  command: string | null;
  args: string[];
  url: string | null;
}

/** A tool that is not offered, because nobody has approved what it says now. */
export interface HeldBack {
  name: string;
  /** Of the new definition; `approve` can be told what was seen. */
  hash: string;
  approved: McpDefinition | null;
  now: McpDefinition;
}

export interface McpView {
  servers: Record<
    string,
    ServerFacts & {
      status: LinkStatus;
      /** As models are given them. */
      toolNames: string[];
      error: string | null;
      /** Where a person authorizes it; null where nobody has to. */
      authorize_at: string | null;
      held_back: HeldBack[];
    }
  >;
  saved_servers: (ServerFacts & {
    id: string;
    is_active: boolean;
    tools: { include: string[]; exclude: string[] };
    /** Names alone: their values are never shown. */
    env: string[];
    headers: string[];
    last_error: string | null;
    created_at: string;
  })[];
}

export interface Viewed {
  servers: readonly PinnedServer[];
  offer: Offer;
  links: ReadonlyMap<string, Link>;
  complaints: ReadonlyMap<string, string[]>;
  secrets: ReadonlyMap<string, { env: string[]; headers: string[] }>;
  staysConnected: boolean;
}

export function viewOf(viewed: Viewed): McpView {
  const { servers, offer, complaints, secrets } = viewed;
  const shown = servers.filter(({ active, needsReauth }) => active || needsReauth);
  return {
    servers: Object.fromEntries(
      shown.map((server) => {
        const { status, error } = stateOf(server, viewed);
        const problems = [...(complaints.get(server.id) ?? []), ...(offer.problems.get(server.id) ?? [])];
        const sentences = error === null ? problems : [error, ...problems];
        const facts = {
          status,
          toolNames: offer.tools.filter(({ source }) => source === server.id).map(({ name }) => name),
          error: sentences.length > 0 ? sentences.join(" ") : null,
          authorize_at:
            status === "needs_reauth" && server.url !== null ? `/api/mcp/oauth/${server.id}/start` : null,
          held_back: server.pinned.flatMap(toHeldBack),
        };
        return [server.id, { ...factsOf(server), ...facts }];
      }),
    ),
    saved_servers: servers.map((server) => ({
      id: server.id,
      ...factsOf(server),
      is_active: server.active,
      tools: server.tools,
      env: secrets.get(server.id)?.env ?? [],
      headers: secrets.get(server.id)?.headers ?? [],
      last_error: server.lastError,
      created_at: server.createdAt.toISOString(),
    })),
  };
}

/** Where no connection outlives a request, what the last one came to is all that is known. */
function stateOf(
  server: PinnedServer,
  { links, staysConnected }: Viewed,
): { status: LinkStatus; error: string | null } {
  const link = links.get(server.id);
  if (link) return { status: link.status, error: link.error };
  const { lastError: error } = server;
  if (server.needsReauth) return { status: "needs_reauth", error };
  if (staysConnected) return { status: "connecting", error: null };
  return { status: error === null ? "connected" : "error", error };
}

function factsOf({ name, transport, command, args, url }: PinnedServer): ServerFacts {
  return { name, transport, command, args, url };
}

function toHeldBack({ name, approved, held, listed }: McpTool): HeldBack[] {
  if (!held || !listed) return [];
  const { definition, hash }: McpVersion = held;
  return [{ name, hash, approved: approved?.definition ?? null, now: definition }];
}
