/** `/api/notes`, and the images in notes. */
import * as z from "zod";
import { IMAGE_TYPES } from "../../core/notes.ts";
import { imageView } from "../images.ts";
import { noteCategories, noteChange, noteList, noteRequest, noteSaved, noteView } from "../notes.ts";
import type { Operation } from "./operation.ts";
import { idempotency, paging } from "./parameters.ts";
import { deleted } from "./session-routes.ts";

const noteId = z.object({ id: z.string().meta({ examples: ["note_example"] }) });
const imageId = z.object({ id: z.string().meta({ examples: ["img_example"] }) });
const ifMatch = z.object({
  "if-match": z
    .string()
    .optional()
    .describe(
      'The etag that you have read, `"3"`: if the note has another one by now, nothing is done and it is 412.',
    ),
});

const NOTE = {
  id: "note_example",
  title: "Rye bread",
  content: "# Rye bread\n\n500 g flour, 350 g water.\n",
  category: "Recipes",
  version: 1,
  created_at: "2026-11-20T10:00:00.000Z",
  updated_at: "2026-11-20T10:00:00.000Z",
};
const SECOND = { ...NOTE, version: 2, category: "Bread", updated_at: "2026-11-20T11:00:00.000Z" };
const saved = (status: string, note: typeof NOTE) => ({ status, note_id: note.id, note });

export const NOTE_ROUTES = [
  {
    id: "listNotes",
    method: "get",
    path: "/api/notes",
    tag: "Notes",
    summary: "List or search notes",
    description:
      "Newest change first; with `q` the best match first. A page whose contents are more than a mebibyte ends early.",
    family: "api",
    query: z.object({
      q: z
        .string()
        .optional()
        .describe("Words of the title or the text. All have to be there; the last may be unfinished."),
      category: z.string().optional(),
      ...paging,
    }),
    replies: {
      200: {
        description: "A page of notes.",
        json: {
          schema: noteList,
          examples: {
            Page: { notes: [NOTE], next_cursor: null },
            Search: {
              notes: [{ ...NOTE, snippet: "# Rye bread 500 g flour, 350 g water." }],
              next_cursor: null,
            },
          },
        },
      },
    },
    faults: [400],
  },
  {
    id: "createNote",
    method: "post",
    path: "/api/notes",
    tag: "Notes",
    summary: "Write a note",
    family: "api",
    headers: idempotency,
    body: {
      schema: noteRequest,
      examples: {
        Note: { title: NOTE.title, content: NOTE.content, category: NOTE.category },
        "Without a category": { title: "Idea", content: "" },
      },
    },
    replies: {
      201: {
        description: "It is written.",
        headers: ["etag", "idempotency-replayed"],
        json: { schema: noteSaved, examples: { Created: saved("created", NOTE) } },
      },
    },
    faults: [409, 422, 507],
  },
  {
    id: "listNoteCategories",
    method: "get",
    path: "/api/notes/categories",
    tag: "Notes",
    summary: "List the categories",
    family: "api",
    replies: {
      200: {
        description: "By name, with how many notes each has.",
        json: {
          schema: noteCategories,
          examples: { Categories: { categories: [{ category: "Recipes", notes: 1 }] } },
        },
      },
    },
  },
  {
    id: "getNote",
    method: "get",
    path: "/api/notes/{id}",
    tag: "Notes",
    summary: "Read a note",
    family: "api",
    params: noteId,
    headers: z.object({
      "if-none-match": z.string().optional().describe("The etag that you have already."),
    }),
    replies: {
      200: {
        description: "The note.",
        headers: ["etag"],
        json: { schema: noteView, examples: { Note: NOTE } },
      },
      304: { description: "You have it already.", headers: ["etag"] },
    },
    faults: [404],
  },
  {
    id: "updateNote",
    method: "put",
    path: "/api/notes/{id}",
    tag: "Notes",
    summary: "Change a note",
    description:
      "With `if-match` only the version that you have read; without it the last one to write wins.",
    family: "api",
    params: noteId,
    headers: ifMatch,
    body: { schema: noteChange, examples: { "Another category": { category: "Bread" } } },
    replies: {
      200: {
        description: "It is changed.",
        headers: ["etag"],
        json: { schema: noteSaved, examples: { Updated: saved("updated", SECOND) } },
      },
    },
    faults: [404, 412, 507],
  },
  {
    id: "deleteNote",
    method: "delete",
    path: "/api/notes/{id}",
    tag: "Notes",
    summary: "Delete a note",
    description: "Images that no other note shows go a day later.",
    family: "api",
    params: noteId,
    headers: ifMatch,
    replies: {
      200: {
        description: "It is gone.",
        json: { schema: deleted, examples: { Deleted: { status: "deleted", deleted: 1 } } },
      },
    },
    faults: [400, 404, 412],
  },
  {
    id: "uploadNoteImage",
    method: "post",
    path: "/api/notes/upload",
    tag: "Notes",
    summary: "Upload an image for notes",
    description:
      "A form with one file, in the field `file`: PNG, JPEG, WebP or GIF by its bytes, whole, at most 10 MiB and 40 megapixels. An image that no note shows for a day is removed.",
    family: "api",
    headers: idempotency,
    upload: { type: "multipart/form-data", files: ["file"] },
    replies: {
      201: {
        description: "It is stored.",
        headers: ["idempotency-replayed"],
        json: {
          schema: imageView,
          examples: {
            Image: {
              id: "img_example",
              url: "http://127.0.0.1:8000/api/notes/images/img_example",
              content_type: "image/png",
              size: 20480,
              width: 640,
              height: 480,
              created_at: "2026-11-20T10:00:00.000Z",
            },
          },
        },
      },
    },
    faults: [400, 408, 409, 413, 415, 422, 507],
  },
  {
    id: "getNoteImage",
    method: "get",
    path: "/api/notes/images/{id}",
    tag: "Notes",
    summary: "See an image",
    description:
      "For its owner. Where access tokens are wanted, the `url` of an upload carries a signature, which is the permission to see that one image: whoever has it gets it, without a token or with anybody's. Without a valid signature another owner's image is a 404.",
    family: "api",
    params: imageId,
    query: z.object({
      signature: z.string().optional().describe("As it stands in the `url` of the upload."),
    }),
    headers: z.object({
      range: z.string().optional().describe("`bytes=0-1023`, `bytes=1024-`, `bytes=-512`."),
      "if-range": z.string().optional().describe("The etag that `range` is meant for."),
      "if-none-match": z.string().optional().describe("The etag that you have already."),
    }),
    replies: {
      200: { description: "The image.", bytes: IMAGE_TYPES, headers: ["etag"] },
      206: {
        description: "The bytes that were asked for.",
        bytes: IMAGE_TYPES,
        headers: ["etag", "content-range"],
      },
      304: { description: "You have it already.", headers: ["etag"] },
    },
    faults: [404, 416],
  },
] as const satisfies readonly Operation[];
