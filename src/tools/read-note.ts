/** `read_note`: a note as it was written, with its images for a model that can see. */
import * as z from "zod";
import type { ResultPart } from "../core/message.ts";
import { type ImageRecord, type Images, imagesNamed, type Notes } from "../core/notes.ts";
import { defineTool, type Tool } from "../core/tool.ts";
import { toBase64 } from "./read-file.ts";
import { count, MAX_RESULT_CHARS } from "./result.ts";

const MAX_OFFSET = 10_000_000;

export function createReadNote(notes: Notes, images: Pick<Images, "seen" | "read">): Tool {
  return defineTool({
    name: "read_note",
    description:
      "Reads a note of the user: a header with its title, category and version, then its Markdown. Long notes come in " +
      "parts: go on with offset. Images of the note are shown to you with its first part.",
    args: z.strictObject({
      note_id: z.string().min(1).describe("The id that search_notes shows: note_…"),
      offset: z
        .int()
        .min(0)
        .max(MAX_OFFSET)
        .optional()
        .describe("Characters to leave out at the beginning. Default 0."),
    }),
    needs: [],
    risk: "read",
    outside: true,
    async run({ note_id, offset = 0 }, { owner, signal }) {
      const note = await notes.get(owner, note_id);
      const end = partEnd(note.content, offset);
      const length = note.content.length;
      const where =
        offset === 0 && end === length
          ? ""
          : `, characters ${Math.min(offset, length)} to ${end} of ${length}`;
      const head = `[${note.id}: ${note.title} (${note.category}), version ${note.version}${where}]`;
      const more = end < length ? `\n[more: read on with offset ${end}]` : "";
      const content: ResultPart[] = [
        { type: "text", text: `${head}\n${note.content.slice(offset, end)}${more}` },
      ];
      if (offset > 0) return { content };
      const { images: seen, left } = await images.seen(owner, imagesNamed(note.content));
      for (const image of seen) {
        signal.throwIfAborted();
        content.push(
          { type: "text", text: `[${image.id}: ${image.type}, ${image.width} × ${image.height}]` },
          await shown(image),
        );
      }
      if (left > 0)
        content.push({ type: "text", text: `[${count(left, "more image")}: too many or too large to show]` });
      return { content };
    },
  });

  async function shown(image: ImageRecord): Promise<ResultPart> {
    const bytes = new Uint8Array(image.size);
    let at = 0;
    for await (const piece of images.read(image) as unknown as AsyncIterable<Uint8Array>) {
      bytes.set(piece, at);
      at += piece.length;
    }
    return { type: "image", source: { kind: "data", mediaType: image.type, data: toBase64(bytes) } };
  }
}

/** Not inside a surrogate pair. */
function partEnd(text: string, offset: number): number {
  const end = Math.min(text.length, offset + MAX_RESULT_CHARS);
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}
