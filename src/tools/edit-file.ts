/** `edit_file`: one exact text in place of another; byte order mark, line ends and all else stay as they are. */
import * as z from "zod";
import { defineTool } from "../core/tool.ts";
import { withFileLock } from "./file-lock.ts";
import { answer, count, isBinary, refusal } from "./result.ts";

const MAX_TEXT_BYTES = 16 * 1024 * 1024;
/** Places named when a text is there more than once. */
const MAX_PLACES = 10;

export const editFile = defineTool({
  name: "edit_file",
  description:
    "Replaces a piece of text in a file. old_text has to be in the file exactly once, with its indentation; take " +
    "in some lines around it to make it unique, or set replace_all. Read the file first.",
  args: z.strictObject({
    path: z.string().min(1).describe("Path of the file, relative to the workspace."),
    old_text: z.string().min(1).describe("The text to replace, exactly as it is in the file."),
    new_text: z.string().describe("What to put in its place; empty to delete it."),
    replace_all: z.boolean().optional().describe("Replace every occurrence. Default false."),
  }),
  needs: ["files"],
  risk: "write",
  async run({ path, old_text, new_text, replace_all = false }, { files }) {
    if (old_text === new_text) return refusal("old_text and new_text are the same; nothing was changed.");
    return await withFileLock(files, path, async () => {
      const entry = await files.stat(path);
      if (entry.directory) return refusal(`${path} is a directory, not a file.`);
      if (entry.size > MAX_TEXT_BYTES) return refusal(`${path} is too large to edit here; use a terminal.`);
      const text = decode(await files.read(path));
      if (text === null) return refusal(`${path} is not UTF-8 text; change it with a program in a terminal.`);
      const [old, replacement] = withLineEndsOf(text, old_text, new_text);
      const places = find(text, old);
      if (places.length === 0) return refusal(notThere(text, old_text, path));
      if (places.length > 1 && !replace_all) return refusal(notUnique(text, places, path));
      const bytes = new TextEncoder().encode(text.split(old).join(replacement));
      const written = await files.write(path, bytes);
      const where = count(places.length, "place");
      return answer(`Edited ${written.path} in ${where}, first at line ${lineAt(text, places[0]!)}.`);
    });
  },
});

/** null for what would not come back the same when it is encoded again. */
function decode(bytes: Uint8Array): string | null {
  if (isBinary(bytes)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Models write `\n`. In a file that ends its lines with CRLF, both texts get CRLF. */
function withLineEndsOf(text: string, old: string, replacement: string): [string, string] {
  if (!text.includes("\r\n") || text.includes(old)) {
    const allCrlf = text.includes("\r\n") && !/(^|[^\r])\n/.test(text);
    return [old, allCrlf ? toCrlf(replacement) : replacement];
  }
  return [toCrlf(old), toCrlf(replacement)];
}

function toCrlf(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll("\n", "\r\n");
}

function find(text: string, old: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(old); at !== -1; at = text.indexOf(old, at + old.length)) places.push(at);
  return places;
}

function lineAt(text: string, place: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < place; at = text.indexOf("\n", at + 1)) line++;
  return line;
}

function notUnique(text: string, places: number[], path: string): string {
  const lines = places.slice(0, MAX_PLACES).map((place) => lineAt(text, place));
  const more = places.length > MAX_PLACES ? ", …" : "";
  return (
    `Nothing was changed: old_text is ${places.length} times in ${path} (lines ${lines.join(", ")}${more}). ` +
    "Take in more of the lines around it so that it is unique, or set replace_all."
  );
}

function notThere(text: string, old: string, path: string): string {
  const start = `Nothing was changed: old_text is not in ${path}. `;
  const squeeze = (value: string) => value.replaceAll(/\s+/g, " ").trim();
  const squeezed = squeeze(old);
  if (squeezed !== "" && squeeze(text).includes(squeezed)) {
    return `${start}The same words are there with other spaces or line breaks: read the file again and copy them exactly.`;
  }
  const first = old.split("\n").find((line) => line.trim() !== "");
  const place = first === undefined ? -1 : text.indexOf(first.trim());
  if (place !== -1) {
    return `${start}Its first line is at line ${lineAt(text, place)}, but what follows differs: read the file from there.`;
  }
  return `${start}Read the file again and copy the text from it.`;
}
