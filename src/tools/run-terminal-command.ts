/** `run_terminal_command`: a shell command in the workspace, with its exit code and the end of its output. */
import * as z from "zod";
import type { CommandResult, Terminal } from "../core/platform.ts";
import { defineTool, type Tool, type ToolContext, type ToolOutput } from "../core/tool.ts";
import { AppError } from "../errors.ts";
import type { BackgroundCommands } from "./background-commands.ts";
import { answer, count, MAX_RESULT_CHARS } from "./result.ts";

const DEFAULT_TIMEOUT_SECONDS = 120;
const MAX_TIMEOUT_SECONDS = 600;
/** Characters of output shown while the command runs; the result has the end of all of it. */
const MAX_PROGRESS_CHARS = 64_000;
const MAX_COMMAND_CHARS = 100_000;

const DESCRIPTION =
  "Runs a shell command in the workspace and returns its exit code and its output (stdout and stderr; of long " +
  "output the end). Use it to build, test, run programs, inspect the system and move or delete files. Every " +
  "command gets a new shell without input, in the directory where the one before it ended (`cd` carries over, " +
  "variables do not). Prefer read_file, edit_file, create_file, list_files and search_files for what they do.";
const BACKGROUND =
  " With background: true it goes on beside you, for servers and watchers: the answer is a handle for " +
  "read_terminal_output and stop_terminal_command.";

const args = {
  command: z.string().min(1).max(MAX_COMMAND_CHARS).describe("The command line, as for bash -c."),
  cwd: z
    .string()
    .optional()
    .describe(
      "Directory to run this one command in, relative to the workspace. Default: where the last one ended, at first the workspace itself.",
    ),
  timeout_seconds: z
    .int()
    .min(1)
    .max(MAX_TIMEOUT_SECONDS)
    .optional()
    .describe(`Seconds until the command is killed. Default ${DEFAULT_TIMEOUT_SECONDS}.`),
};
const background = z
  .boolean()
  .optional()
  .describe("Start it, return a handle at once and let it run; timeout_seconds does not count then.");

type Args = z.infer<z.ZodObject<typeof args>> & { background?: boolean | undefined };

/** @param commands where commands can go on beside the agent's turns. */
export function createRunTerminalCommand(commands?: BackgroundCommands): Tool {
  return defineTool<Args>({
    name: "run_terminal_command",
    description: commands ? DESCRIPTION + BACKGROUND : DESCRIPTION,
    args: commands ? z.strictObject({ ...args, background }) : z.strictObject(args),
    needs: ["terminal", "files"],
    risk: "execute",
    outside: true,
    run: (given, context) =>
      commands && given.background ? runBeside(given, context, commands) : runAndWait(given, context),
  });
}

async function runAndWait(
  { command, cwd, timeout_seconds }: Args,
  context: ToolContext,
): Promise<ToolOutput> {
  const start = await startOf(cwd, context);
  const seconds = timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS;
  const result = await terminalOf(context).run(command, {
    cwd: start,
    timeoutMs: seconds * 1_000,
    outputLimit: MAX_RESULT_CHARS,
    signal: context.signal,
    onOutput: limited(context.progress),
  });
  const lines = [outcome(result, seconds)];
  if (cwd === undefined) lines.push(...(await moved(start, result.directory, context)));
  return { content: [{ type: "text", text: report(result, lines) }], failed: result.exitCode !== 0 };
}

async function runBeside(
  { command, cwd }: Args,
  context: ToolContext,
  commands: BackgroundCommands,
): Promise<ToolOutput> {
  const { owner, runId, sessionId } = context;
  const origin = { owner, runId, sessionId, command, cwd: await startOf(cwd, context) };
  const { handle } = await commands.start(terminalOf(context), origin);
  return answer(
    `Started in the background as ${handle}. Read its output with read_terminal_output, end it with stop_terminal_command.`,
  );
}

function terminalOf({ terminal }: ToolContext): Terminal {
  if (terminal) return terminal;
  throw new AppError("unavailable", "There is no terminal here. Use the file tools.");
}

/** Where the command starts. What was meant for a directory that is gone is not run in another one. */
async function startOf(cwd: string | undefined, { workingDirectory, files }: ToolContext): Promise<string> {
  if (cwd !== undefined) return cwd;
  const path = (await workingDirectory?.read()) ?? "";
  if (path === "") return path;
  const found = await files.stat(path).catch((error: unknown) => {
    if (error instanceof AppError && error.code !== "unavailable") return undefined;
    throw error;
  });
  if (found?.directory) return path;
  await workingDirectory?.move("");
  throw new AppError(
    "not_found",
    `Not run: the working directory ${path} is no longer there. Commands start in the workspace itself from here on.`,
  );
}

/** Keeps where the shell ended for the next command. What it says is where that one starts, if that is not the root. */
async function moved(
  start: string,
  end: CommandResult["directory"],
  { workingDirectory }: ToolContext,
): Promise<string[]> {
  const next = end === undefined ? start : (end ?? "");
  await workingDirectory?.move(next);
  if (end === null)
    return ["[The command ended outside the workspace; the next one starts in the workspace itself]"];
  return next === "" ? [] : [`Working directory: ${next}`];
}

function report(result: CommandResult, lines: string[]): string {
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
