/** The tables of the virtual workspace; see schema.ts for the rules. */
import { blob, foreignKey, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const files = sqliteTable(
  "files",
  {
    owner: text("owner").notNull(),
    path: text("path").notNull(),
    /** The directory it is in; empty for the root. */
    parent: text("parent").notNull(),
    /** 0 or 1. */
    directory: integer("directory").notNull(),
    size: integer("size").notNull(),
    mode: integer("mode").notNull(),
    /** Changes with every write, so that a reader of several chunks knows that they belong together. */
    revision: text("revision").notNull(),
    modifiedAt: integer("modified_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.path] }),
    index("files_parent").on(table.owner, table.parent),
    /** Lets the sum of an owner's sizes be read from the index alone. */
    index("files_size").on(table.owner, table.size),
  ],
);

/** The bytes of files, apart from their rows so that listings never read them. Numbered from 0. */
export const fileChunks = sqliteTable(
  "file_chunks",
  {
    owner: text("owner").notNull(),
    path: text("path").notNull(),
    chunk: integer("chunk").notNull(),
    bytes: blob("bytes", { mode: "buffer" }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.path, table.chunk] }),
    foreignKey({ columns: [table.owner, table.path], foreignColumns: [files.owner, files.path] }).onDelete(
      "cascade",
    ),
  ],
);
