/** The tables of MCP servers and of the definitions of their tools; see schema.ts for the rules. */
import { sql } from "drizzle-orm";
import { foreignKey, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** One row for each owner who ever had a server: what changes gets the highest revision of all. */
export const mcpOwners = sqliteTable(
  "mcp_owners",
  {
    owner: text("owner").primaryKey(),
    revision: integer("revision").notNull(),
  },
  (table) => [uniqueIndex("mcp_owners_revision").on(table.revision)],
);

export const mcpServers = sqliteTable(
  "mcp_servers",
  {
    owner: text("owner").notNull(),
    id: text("id").notNull(),
    name: text("name").notNull(),
    transport: text("transport").notNull(),
    command: text("command"),
    /** A JSON array of texts. */
    args: text("args").notNull(),
    url: text("url"),
    /** Globs as JSON: `{include, exclude}`. */
    tools: text("tools").notNull(),
    /** Variables and headers as JSON, sealed. */
    sealed: text("sealed"),
    /** What OAuth keeps, sealed. */
    oauth: text("oauth"),
    /** Hash of the state of a flow under way. */
    oauthState: text("oauth_state"),
    /** Who refreshes the tokens. */
    leaseHolder: text("lease_holder"),
    leaseUntil: integer("lease_until"),
    active: integer("active").notNull(),
    lastError: text("last_error"),
    needsReauth: integer("needs_reauth").notNull(),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.id] }),
    uniqueIndex("mcp_servers_oauth_state").on(table.oauthState).where(sql`oauth_state IS NOT NULL`),
  ],
);

export const mcpTools = sqliteTable(
  "mcp_tools",
  {
    owner: text("owner").notNull(),
    serverId: text("server_id").notNull(),
    name: text("name").notNull(),
    /** In the server's order. */
    position: integer("position").notNull(),
    /** What was approved, as JSON; null for a tool that came later. */
    definition: text("definition"),
    hash: text("hash"),
    /** What the server says now, where that is something else. */
    held: text("held"),
    heldHash: text("held_hash"),
    /** 0 when the server no longer lists it. */
    listed: integer("listed").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.serverId, table.name] }),
    foreignKey({
      columns: [table.owner, table.serverId],
      foreignColumns: [mcpServers.owner, mcpServers.id],
    }).onDelete("cascade"),
  ],
);
