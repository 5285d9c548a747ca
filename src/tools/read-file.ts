/** `read_file`: lines of a text file, or an image as the model can see it. */
import * as z from "zod";
import { imageType } from "../core/image-format.ts";
import type { ToolOutput } from "../core/tool.ts";
import { defineTool } from "../core/tool.ts";
import { answer, count, cutLine, isBinary, MAX_RESULT_CHARS, refusal } from "./result.ts";

const DEFAULT_LINES = 2_000;
const MAX_LINES = 10_000;
const MAX_OFFSET = 100_000_000;
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
const MAX_IMAGE_BYTES = 5 * 1024 * 1024;

export const readFile = defineTool({
  name: "read_file",
  description:
    "Reads a text file of the workspace: a header that says which lines follow, then the lines as they are in " +
    "the file. Long files come in parts: go on with offset. Images (png, jpeg, gif, webp) are shown to you.",
  args: z.strictObject({
    path: z.string().min(1).describe("Path of the file, relative to the workspace."),
    offset: z.int().min(1).max(MAX_OFFSET).optional().describe("First line to read, from 1. Default 1."),
    limit: z
      .int()
      .min(1)
      .max(MAX_LINES)
      .optional()
      .describe(`How many lines to read at most. Default ${DEFAULT_LINES}.`),
  }),
  needs: ["files"],
  risk: "read",
  outside: true,
  async run({ path, offset = 1, limit = DEFAULT_LINES }, { files }) {
    const entry = await files.stat(path);
    if (entry.directory) return refusal(`${path} is a directory. Use list_files to see what is in it.`);
    if (entry.size > MAX_TEXT_BYTES) {
      return refusal(
        `${entry.path} has ${count(entry.size, "byte")}, too many to read at once (${MAX_TEXT_BYTES}). ` +
          "Use search_files, or head, tail or sed in a terminal.",
      );
    }
    const bytes = await files.read(path);
    const mediaType = imageType(bytes);
    if (mediaType !== null) return image(entry.path, bytes, mediaType);
    if (isBinary(bytes)) {
      return refusal(
        `${entry.path} is a binary file of ${count(bytes.length, "byte")}; it has no text to read.`,
      );
    }
    return answer(excerpt(entry.path, new TextDecoder().decode(bytes), offset, limit));
  },
});

function excerpt(path: string, text: string, offset: number, limit: number): string {
  if (text === "") return `[${path} is empty]`;
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  if (offset > lines.length)
    return `[${path} has ${count(lines.length, "line")}; there is no line ${offset}]`;
  const shown: string[] = [];
  let size = 0;
  for (let i = offset - 1; i < lines.length && shown.length < limit; i++) {
    const line = cutLine(lines[i]!.endsWith("\r") ? lines[i]!.slice(0, -1) : lines[i]!);
    if (shown.length > 0 && size + line.length + 1 > MAX_RESULT_CHARS) break;
    shown.push(line);
    size += line.length + 1;
  }
  const last = offset + shown.length - 1;
  const ends = text.includes("\r\n") ? ", CRLF line ends" : "";
  const header = `[${path}: lines ${offset} to ${last} of ${lines.length}${ends}]`;
  const more = last < lines.length ? `\n[more lines: read on with offset ${last + 1}]` : "";
  return `${header}\n${shown.join("\n")}${more}`;
}

function image(path: string, bytes: Uint8Array, mediaType: string): ToolOutput {
  if (bytes.length > MAX_IMAGE_BYTES) {
    return refusal(
      `${path} is an image of ${count(bytes.length, "byte")}; at most ${MAX_IMAGE_BYTES} can be shown. ` +
        "Make a smaller copy of it first.",
    );
  }
  return {
    content: [
      { type: "text", text: `[${path}: ${mediaType}, ${count(bytes.length, "byte")}]` },
      { type: "image", source: { kind: "data", mediaType, data: toBase64(bytes) } },
    ],
  };
}

export function toBase64(bytes: Uint8Array): string {
  // A multiple of three, so that the parts join without padding in between.
  const step = 24_576;
  let out = "";
  for (let i = 0; i < bytes.length; i += step) {
    out += btoa(String.fromCharCode(...bytes.subarray(i, i + step)));
  }
  return out;
}
