/** Tables of the terminal; see schema.ts. */
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import { sessions } from "./schema.ts";

export const sessionDirectories = sqliteTable("session_directories", {
  sessionId: text("session_id")
    .primaryKey()
    .references(() => sessions.id, { onDelete: "cascade" }),
  owner: text("owner").notNull(),
  /** Workspace path where the next command starts. */
  path: text("path").notNull(),
});
