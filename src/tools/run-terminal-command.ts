/** `run_terminal_command`: a shell command in the workspace, with its exit code and the end of its output. */
import * as z from "zod";
import type { CommandResult } from "../core/platform.ts";
import { defineTool } from "../core/tool.ts";
import { AppError } from "../errors.ts";
import { count, MAX_RESULT_CHARS } from "./result.ts";

const DEFAULT_TIMEOUT_SECONDS = 120;
const MAX_TIMEOUT_SECONDS = 600;
/** Characters of output shown while the command runs; the result has the end of all of it. */
const MAX_PROGRESS_CHARS = 64_000;
const MAX_COMMAND_CHARS = 100_000;

export const runTerminalCommand = defineTool({
  name: "run_terminal_command",
  description:
    "Runs a shell command in the workspace and returns its exit code and its output (stdout and stderr; of long " +
    "output the end). Use it to build, test, run programs, inspect the system and move or delete files. Every " +
    "command gets a new shell without input. Prefer read_file, edit_file, create_file, list_files and " +
    "search_files for what they do.",
  args: z.strictObject({
    command: z.string().min(1).max(MAX_COMMAND_CHARS).describe("The command line, as for bash -c."),
    cwd: z
      .string()
      .optional()
      .describe("Directory to run in, relative to the workspace. Default: the workspace itself."),
    timeout_seconds: z
      .int()
      .min(1)
      .max(MAX_TIMEOUT_SECONDS)
      .optional()
      .describe(`Seconds until the command is killed. Default ${DEFAULT_TIMEOUT_SECONDS}.`),
  }),
  needs: ["terminal", "files"],
  risk: "execute",
  async run({ command, cwd, timeout_seconds }, context) {
    if (context.terminal === undefined) {
      throw new AppError("unavailable", "There is no terminal here. Use the file tools.");
    }
    const seconds = timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS;
    const result = await context.terminal.run(command, {
      ...(cwd === undefined ? {} : { cwd }),
      timeoutMs: seconds * 1_000,
      outputLimit: MAX_RESULT_CHARS,
      signal: context.signal,
      onOutput: limited(context.progress),
    });
    return {
      content: [{ type: "text", text: report(result, seconds) }],
      failed: result.exitCode !== 0,
    };
  },
});

function report(result: CommandResult, seconds: number): string {
  const lines = [outcome(result, seconds)];
  if (result.dropped > 0) {
    lines.push(`[${count(result.dropped, "character")} at the start of the output left out]`);
  }
  lines.push(result.output === "" ? "[no output]" : result.output);
  return lines.join("\n");
}

function outcome(result: CommandResult, seconds: number): string {
  if (result.timedOut) {
    return `Killed after ${count(seconds, "second")} (timeout_seconds). What it had done until then stays.`;
  }
  if (result.cancelled) return "Killed: the run was stopped.";
  return result.exitCode === null ? "Ended by a signal." : `Exit code: ${result.exitCode}`;
}

/** Lets the first part of a flood through and says so once. */
function limited(progress: (delta: string) => void): (delta: string) => void {
  let left = MAX_PROGRESS_CHARS;
  return (delta) => {
    if (left <= 0) return;
    progress(
      delta.length <= left ? delta : `${delta.slice(0, left)}\n[more output is not shown while it runs]\n`,
    );
    left -= delta.length;
  };
}
