/** The agent's own tools, in the order in which models see them. */
import type { Config } from "../config.ts";
import type { Tool } from "../core/tool.ts";
import { BackgroundCommands } from "./background-commands.ts";
import { createFile } from "./create-file.ts";
import { editFile } from "./edit-file.ts";
import { listFiles } from "./list-files.ts";
import { readFile } from "./read-file.ts";
import { createReadTerminalOutput } from "./read-terminal-output.ts";
import { createReadWebPage } from "./read-web-page.ts";
import { createRunTerminalCommand } from "./run-terminal-command.ts";
import { searchFiles } from "./search-files.ts";
import { createSearchWeb } from "./search-web.ts";
import { createStopTerminalCommand } from "./stop-terminal-command.ts";

/** All that come with Dragoman. What the platform cannot run is left out where tools are offered. */
export function createTools(
  { terminal, search }: Pick<Config, "terminal" | "search">,
  commands = new BackgroundCommands(),
): readonly Tool[] {
  // The virtual shell runs one command at a time, and none beside a request.
  const beside = terminal === "virtual" ? undefined : commands;
  return [
    createRunTerminalCommand(beside),
    ...(beside ? [createReadTerminalOutput(beside), createStopTerminalCommand(beside)] : []),
    createFile,
    readFile,
    editFile,
    listFiles,
    searchFiles,
    createSearchWeb(search),
    createReadWebPage(),
  ];
}
