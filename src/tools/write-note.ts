/** `write_note`: a new note, or another version of one that the model has read. */
import * as z from "zod";
import { DEFAULT_CATEGORY, type Notes, noteCategory, noteContent, noteTitle } from "../core/notes.ts";
import { defineTool, type Tool } from "../core/tool.ts";
import { AppError } from "../errors.ts";
import { answer, refusal } from "./result.ts";

export function createWriteNote(notes: Notes): Tool {
  return defineTool({
    name: "write_note",
    description:
      "Writes a note for the user: a new one, or, with note_id and the version that read_note showed, a change of one. " +
      "content is the whole Markdown of the note, not only what is new; what is left out stays as it is.",
    args: z.strictObject({
      note_id: z.string().min(1).optional().describe("The note to change. Absent: a new one."),
      version: z.int().min(1).optional().describe("The version that you have read. Needed with note_id."),
      title: noteTitle.optional().describe("Needed for a new note."),
      content: noteContent.optional().describe("The whole Markdown. Needed for a new note."),
      category: noteCategory.optional().describe(`Default for a new note: ${DEFAULT_CATEGORY}.`),
    }),
    needs: [],
    risk: "write",
    consent: "ask",
    async run({ note_id, version, title, content, category }, { owner }) {
      if (note_id === undefined) {
        if (title === undefined || content === undefined)
          return refusal("Nothing was written: a new note needs a title and a content.");
        const note = await notes.create(owner, { title, content, category: category ?? DEFAULT_CATEGORY });
        return answer(`Created ${note.id} (${note.title}), version ${note.version}.`);
      }
      if (version === undefined)
        return refusal(
          "Nothing was written: read the note first, and give the version that read_note shows.",
        );
      if (title === undefined && content === undefined && category === undefined)
        return refusal("Nothing was written: give a title, a content or a category to change.");
      try {
        const note = await notes.update(owner, note_id, { title, content, category }, version);
        return answer(`Changed ${note.id} (${note.title}), now version ${note.version}.`);
      } catch (error) {
        if (!(error instanceof AppError && error.status === 412)) throw error;
        return refusal(
          `Nothing was written: the note is not at version ${version} any more, since somebody else has changed it. ` +
            "Read it again, and put your change on top of that.",
        );
      }
    },
  });
}
