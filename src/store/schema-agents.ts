/** The table of named agents; see schema.ts for the rules. */
import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

export const agents = sqliteTable(
  "agents",
  {
    id: text("id").primaryKey(),
    owner: text("owner").notNull(),
    name: text("name").notNull(),
    description: text("description").notNull(),
    instructions: text("instructions").notNull(),
    provider: text("provider"),
    model: text("model"),
    /** A JSON array of names and globs; null: all. */
    tools: text("tools"),
    /** A JSON array of core PolicyRules. */
    policy: text("policy").notNull(),
    /** A JSON array of names. */
    subAgents: text("sub_agents").notNull(),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
  },
  (table) => [
    uniqueIndex("agents_name").on(table.owner, table.name),
    index("agents_time").on(table.owner, table.createdAt, table.id),
  ],
);
