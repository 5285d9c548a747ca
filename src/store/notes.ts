/** Notes: making, changing and removing them, with the images that they show. Lists are in notes-list.ts. */
import type { InStatement, InValue } from "@libsql/client/web";
import { createId } from "../core/id.ts";
import { imagesNamed, type NoteDraft, type Notes } from "../core/notes.ts";
import { AppError } from "../errors.ts";
import { failedStatement, isConstraint } from "./faults.ts";
import { createNoteList } from "./notes-list.ts";
import { NOTE_COLUMNS, toNote } from "./notes-rows.ts";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

const BY_ID = `SELECT ${NOTE_COLUMNS} FROM notes WHERE id = ? AND owner = ?`;
const INSERT = `INSERT INTO notes (id, owner, title, category, version, created_at, updated_at, size, content)
  VALUES (?, ?, ?, ?, 1, ?, ?, octet_length(?), ?) RETURNING ${NOTE_COLUMNS}`;
/** Matches only a note with another version, and sets what may not be NULL: the whole batch is undone. */
const ONLY_VERSION = "UPDATE notes SET version = NULL WHERE id = ? AND owner = ? AND version <> ?";
const UPDATE = `UPDATE notes SET title = coalesce(?, title), category = coalesce(?, category),
  version = version + 1, updated_at = max(?, updated_at), size = octet_length(coalesce(?, content)),
  content = coalesce(?, content) WHERE id = ? AND owner = ? RETURNING ${NOTE_COLUMNS}`;
const DELETE = "DELETE FROM notes WHERE id = ? AND owner = ?";

const OWN_NOTE = "(SELECT id FROM notes WHERE id = ? AND owner = ?)";
/** Images that this note shows and no other does. */
const FREE_IMAGES = `UPDATE images SET unused_since = ? WHERE id IN
  (SELECT image_id FROM note_images WHERE note_id = ${OWN_NOTE})
  AND NOT EXISTS (SELECT 1 FROM note_images WHERE image_id = images.id AND note_id <> ?)`;
const FORGET_IMAGES = `DELETE FROM note_images WHERE note_id = ${OWN_NOTE}`;
const SHOW_IMAGES = `INSERT INTO note_images (owner, note_id, image_id) SELECT notes.owner, notes.id, images.id
  FROM json_each(?) JOIN images ON images.id = json_each.value JOIN notes ON notes.id = ?
  WHERE notes.owner = ? AND images.owner = notes.owner AND images.state = 'ready'`;
const USE_IMAGES = `UPDATE images SET unused_since = NULL WHERE id IN
  (SELECT image_id FROM note_images WHERE note_id = ${OWN_NOTE})`;

export function createNotes(reader: Reader, writer: WriteQueue, now: () => Date): Notes {
  /** The results behind the check of the version. */
  async function change(id: string, owner: string, ifVersion: number | undefined, statements: InStatement[]) {
    const checks = ifVersion === undefined ? [] : [{ sql: ONLY_VERSION, args: [id, owner, ifVersion] }];
    try {
      return (await writer.batch([...checks, ...statements])).slice(checks.length);
    } catch (error) {
      if (checks.length > 0 && isConstraint(error) && failedStatement(error) === 0) throw otherVersion();
      throw error;
    }
  }

  return {
    ...createNoteList(reader),

    async create(owner, { title, category, content }) {
      const id = createId("note");
      const at = now().getTime();
      const args = [id, owner, toStorable(title), toStorable(category), at, at];
      const text = toStorable(content);
      const insert = { sql: INSERT, args: [...args, text, text] };
      const [result] = await writer.batch([insert, ...showImages(id, owner, imagesNamed(text))]);
      return toNote(result!.rows[0]!);
    },

    async get(owner, id) {
      const [row] = await reader.rows({ sql: BY_ID, args: [toStorable(id), owner] });
      if (!row) throw noNote();
      return toNote(row);
    },

    async update(owner, noteId, draft, ifVersion) {
      const id = toStorable(noteId);
      const at = now().getTime();
      const { title, category, content } = textsOf(draft);
      const update: InStatement = {
        sql: UPDATE,
        args: [title, category, at, content, content, id, owner],
      };
      const images =
        content === null
          ? []
          : [...freeImages(id, owner, at), ...showImages(id, owner, imagesNamed(content))];
      const [result] = await change(id, owner, ifVersion, [update, ...images]);
      const row = result?.rows[0];
      if (!row) throw noNote();
      return toNote(row);
    },

    async delete(owner, noteId, ifVersion) {
      const id = toStorable(noteId);
      const results = await change(id, owner, ifVersion, [
        ...freeImages(id, owner, now().getTime()),
        { sql: DELETE, args: [id, owner] },
      ]);
      if (results.at(-1)?.rowsAffected === 0) throw noNote();
    },
  };
}

function textsOf({ title, category, content }: Partial<NoteDraft>) {
  const text = (value: string | undefined) => (value === undefined ? null : toStorable(value));
  return { title: text(title), category: text(category), content: text(content) };
}

function freeImages(id: string, owner: string, at: number): InStatement[] {
  const own: InValue[] = [id, owner];
  return [
    { sql: FREE_IMAGES, args: [at, ...own, id] },
    { sql: FORGET_IMAGES, args: own },
  ];
}

function showImages(id: string, owner: string, images: string[]): InStatement[] {
  if (images.length === 0) return [];
  return [
    { sql: SHOW_IMAGES, args: [JSON.stringify(images), id, owner] },
    { sql: USE_IMAGES, args: [id, owner] },
  ];
}

function noNote(): AppError {
  return new AppError("not_found", "There is no note with this id. GET /api/notes lists those there are.");
}

function otherVersion(): AppError {
  return new AppError(
    "conflict",
    "The note has been changed since the version that If-Match names, and nothing was done. Read it again, and put your change on top of that.",
    { status: 412, param: "If-Match" },
  );
}
