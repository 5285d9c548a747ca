/** `list_files`: what is in a directory, a few levels deep. */
import * as z from "zod";
import type { FileEntry, Workspace } from "../core/platform.ts";
import { defineTool } from "../core/tool.ts";
import { answer, count, MAX_RESULT_CHARS, refusal } from "./result.ts";

const PAGE = 1_000;
const DEFAULT_DEPTH = 2;
const MAX_DEPTH = 5;
const MAX_OFFSET = 1_000_000;
/** Shown by name only: large, and seldom what is looked for. */
const NOT_OPENED: ReadonlySet<string> = new Set([".git", "node_modules"]);

export const listFiles = defineTool({
  name: "list_files",
  description:
    "Lists the files and directories of the workspace, directories with a slash at the end and files with their " +
    "size. .git and node_modules are named but not opened. To find text in files use search_files.",
  args: z.strictObject({
    path: z.string().optional().describe("Directory to list, relative to the workspace. Default: all of it."),
    depth: z
      .int()
      .min(1)
      .max(MAX_DEPTH)
      .optional()
      .describe(`How many levels deep, 1 to ${MAX_DEPTH}. Default ${DEFAULT_DEPTH}.`),
    offset: z
      .int()
      .min(1)
      .max(MAX_OFFSET)
      .optional()
      .describe("First entry to show, from 1, where an earlier list was cut."),
  }),
  needs: ["files"],
  risk: "read",
  outside: true,
  async run({ path = "", depth = DEFAULT_DEPTH, offset = 1 }, { files, signal }) {
    const start = await files.stat(path);
    if (!start.directory) return refusal(`${start.path} is a file. Use read_file to see what is in it.`);
    const lines: string[] = [];
    let seen = 0;
    let size = 0;
    let more = false;
    for await (const entry of entries(files, start.path, depth)) {
      signal.throwIfAborted();
      if (++seen < offset) continue;
      const line = entry.directory ? `${entry.path}/` : `${entry.path}  (${count(entry.size, "byte")})`;
      size += line.length + 1;
      more = lines.length === PAGE || size > MAX_RESULT_CHARS;
      if (more) break;
      lines.push(line);
    }
    const shown = start.path === "" ? "The workspace" : start.path;
    if (seen === 0) return answer(`${shown} is empty.`);
    if (lines.length === 0) return answer(`${shown} has no more than ${seen} entries.`);
    if (more) lines.push(`[there are more: list on with offset ${offset + lines.length}]`);
    return answer(lines.join("\n"));
  },
});

async function* entries(
  files: Workspace,
  path: string,
  depth: number,
): AsyncGenerator<FileEntry, void, void> {
  for (const entry of await files.list(path)) {
    yield entry;
    if (entry.directory && depth > 1 && !NOT_OPENED.has(entry.name)) {
      yield* entries(files, entry.path, depth - 1);
    }
  }
}
