/** A note's own row. */
import type { Row } from "@libsql/client/web";
import type { Note } from "../core/notes.ts";

export const NOTE_COLUMNS = "id, title, category, version, created_at, updated_at, content";

export function toNote(row: Row): Note {
  return {
    id: row.id as string,
    title: row.title as string,
    content: row.content as string,
    category: row.category as string,
    version: row.version as number,
    createdAt: new Date(row.created_at as number),
    updatedAt: new Date(row.updated_at as number),
  };
}
