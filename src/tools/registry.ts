/** The agent's own tools, in the order in which models see them. */
import type { Capability, Tool } from "../core/tool.ts";
import { createFile } from "./create-file.ts";
import { editFile } from "./edit-file.ts";
import { listFiles } from "./list-files.ts";
import { readFile } from "./read-file.ts";
import { runTerminalCommand } from "./run-terminal-command.ts";
import { searchFiles } from "./search-files.ts";

export const tools: Tool[] = [runTerminalCommand, createFile, readFile, editFile, listFiles, searchFiles];

/** The tools whose needs the platform meets; a tool that cannot work is not offered. */
export function offeredTools(available: ReadonlySet<Capability>): Tool[] {
  return tools.filter((tool) => tool.needs.every((need) => available.has(need)));
}
