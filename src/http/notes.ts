/** `/api/notes`: what the user and the agent write down. Images of notes are in images.ts. */
import { type Context, Hono } from "hono";
import * as z from "zod";
import {
  CONTENT_LIMIT,
  DEFAULT_CATEGORY,
  type FoundNote,
  noteCategory,
  noteContent,
  noteTitle,
} from "../core/notes.ts";
import { AppError } from "../errors.ts";
import type { Services } from "../services.ts";
import { matches } from "./byte-range.ts";
import type { AppEnv } from "./env.ts";
import { serveImage, uploadImage } from "./images.ts";
import { pageOf, readBody } from "./validate.ts";

/** Characters of a search. */
const QUERY_LIMIT = 500;

const LONG = `At most ${CONTENT_LIMIT / 1024 / 1024} MiB of UTF-8, within what API_BODY_LIMIT lets through.`;

export const noteRequest = z
  .looseObject({
    title: noteTitle,
    content: noteContent.describe(`Markdown, kept byte for byte. ${LONG}`),
    category: noteCategory.nullish().describe(`Default \`${DEFAULT_CATEGORY}\`.`),
  })
  .meta({ id: "NoteRequest" });

export const noteChange = z
  .looseObject({
    title: noteTitle.optional(),
    content: noteContent.optional(),
    category: noteCategory.optional(),
  })
  .refine(
    ({ title, content, category }) => title !== undefined || content !== undefined || category !== undefined,
    { params: { wants: "have a title, a content or a category to change" } },
  )
  .meta({ id: "NoteChange", description: "What is absent stays as it is." });

export const noteView = z
  .object({
    id: z.string(),
    title: z.string(),
    content: z.string().describe("Markdown, as it was written."),
    category: z.string(),
    version: z.int().describe("Counts its changes; in quotes it is the note's `etag`."),
    created_at: z.string(),
    updated_at: z.string(),
    snippet: z
      .string()
      .optional()
      .describe("In searches: where the first of the words stands in the content."),
  })
  .meta({ id: "Note" });

export const noteList = z
  .object({ notes: z.array(noteView), next_cursor: z.string().nullable() })
  .meta({ id: "NoteList" });

export const noteSaved = z
  .object({ status: z.enum(["created", "updated"]), note_id: z.string(), note: noteView })
  .meta({ id: "NoteSaved" });

export const noteCategories = z
  .object({ categories: z.array(z.object({ category: z.string(), notes: z.int() })) })
  .meta({ id: "NoteCategories" });

export function noteRoutes(services: Services): Hono<AppEnv> {
  const { config } = services;
  const { notes } = services.store;
  const limits = { limit: config.body.apiLimit, timeoutMs: config.body.timeoutMs };

  return (
    new Hono<AppEnv>()
      .get("/", async (c) => {
        const query = c.req.query("q")?.trim().slice(0, QUERY_LIMIT) || undefined;
        const category = c.req.query("category")?.trim() || undefined;
        const page = await notes.list(c.get("owner"), { ...pageOf(c), query, category });
        return c.json({ notes: page.notes.map(encodeNote), next_cursor: page.next });
      })
      .post("/", async (c) => {
        const { title, content, category } = await readBody(c, noteRequest, limits);
        const draft = { title, content, category: category ?? DEFAULT_CATEGORY };
        const note = await notes.create(c.get("owner"), draft);
        return c.json({ status: "created", note_id: note.id, note: encodeNote(note) }, 201, {
          etag: etagOf(note.version),
          location: `/api/notes/${note.id}`,
        });
      })
      // Before the routes with an id.
      .get("/categories", async (c) => c.json({ categories: await notes.categories(c.get("owner")) }))
      .post("/upload", (c) => uploadImage(c, services))
      .get("/images/:id", (c) => serveImage(c, services))
      .get("/:id", async (c) => {
        const note = await notes.get(c.get("owner"), c.req.param("id"));
        const etag = etagOf(note.version);
        const headers = { etag, "cache-control": "private, no-cache" };
        if (matches(c.req.header("if-none-match") ?? null, etag)) return c.body(null, 304, headers);
        return c.json(encodeNote(note), 200, headers);
      })
      .put("/:id", async (c) => {
        const ifVersion = versionOf(c);
        const { title, content, category } = await readBody(c, noteChange, limits);
        const id = c.req.param("id");
        const note = await notes.update(c.get("owner"), id, { title, content, category }, ifVersion);
        return c.json({ status: "updated", note_id: note.id, note: encodeNote(note) }, 200, {
          etag: etagOf(note.version),
        });
      })
      .delete("/:id", async (c) => {
        await notes.delete(c.get("owner"), c.req.param("id"), versionOf(c));
        return c.json({ status: "deleted", deleted: 1 });
      })
  );
}

export function encodeNote(note: FoundNote): z.output<typeof noteView> {
  const { id, title, content, category, version, snippet } = note;
  return {
    ...{ id, title, content, category, version },
    created_at: note.createdAt.toISOString(),
    updated_at: note.updatedAt.toISOString(),
    ...(snippet === undefined ? {} : { snippet }),
  };
}

function etagOf(version: number): string {
  return `"${version}"`;
}

/**
 * The version that `If-Match` wants; undefined where it is absent or `*`, which every note that is there meets. A tag that
 * is none of ours is one that no note has: 0.
 */
function versionOf(c: Context<AppEnv>): number | undefined {
  const tag = c.req.header("if-match")?.trim();
  if (tag === undefined || tag === "*") return undefined;
  if (tag.includes(","))
    throw new AppError("invalid_request", "If-Match: name one version here, the `etag` that you have read.", {
      param: "If-Match",
    });
  const version = /^"(\d{1,15})"$/.exec(tag)?.[1];
  return version === undefined ? 0 : Number(version);
}
