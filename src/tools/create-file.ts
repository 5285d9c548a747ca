/** `create_file`: a file with the given content, in place of what was there. */
import * as z from "zod";
import { defineTool } from "../core/tool.ts";
import { AppError } from "../errors.ts";
import { withFileLock } from "./file-lock.ts";
import { answer, count, countLines } from "./result.ts";

export const createFile = defineTool({
  name: "create_file",
  description:
    "Creates a text file, or replaces the whole content of an existing one. Missing directories are made. To " +
    "change a part of a file use edit_file.",
  args: z.strictObject({
    path: z.string().min(1).describe("Path of the file, relative to the workspace."),
    content: z.string().describe("The complete content, exactly as it shall be in the file."),
  }),
  needs: ["files"],
  risk: "write",
  async run({ path, content }, { files }) {
    const bytes = new TextEncoder().encode(content);
    return await withFileLock(files, path, async () => {
      const replaced = await exists();
      const entry = await files.write(path, bytes);
      const verb = replaced ? "Replaced" : "Created";
      return answer(
        `${verb} ${entry.path}: ${count(bytes.length, "byte")}, ${count(countLines(content), "line")}.`,
      );
    });

    async function exists(): Promise<boolean> {
      try {
        await files.stat(path);
        return true;
      } catch (error) {
        if (error instanceof AppError && error.code === "not_found") return false;
        throw error;
      }
    }
  },
});
