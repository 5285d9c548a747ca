/** `read_terminal_output`: what a background command has said since it was last read, and how it stands. */
import * as z from "zod";
import { defineTool, type Tool } from "../core/tool.ts";
import { type BackgroundCommand, type BackgroundCommands, statusOf } from "./background-commands.ts";
import { answer, count } from "./result.ts";

const DEFAULT_WAIT_SECONDS = 5;
const MAX_WAIT_SECONDS = 120;

export function createReadTerminalOutput(commands: BackgroundCommands): Tool {
  return defineTool({
    name: "read_terminal_output",
    description:
      "Returns the output of a background command that has not been read yet (of much output the end), and its exit " +
      "code once it has ended. Waits for output while there is none. Each piece of output is given once.",
    args: z.strictObject({
      handle: z.string().max(100).describe("The handle that run_terminal_command gave."),
      wait_seconds: z
        .int()
        .min(0)
        .max(MAX_WAIT_SECONDS)
        .optional()
        .describe(
          `Seconds to wait for output or the end while there is nothing new. Default ${DEFAULT_WAIT_SECONDS}.`,
        ),
    }),
    needs: ["terminal"],
    risk: "read",
    outside: true,
    async run({ handle, wait_seconds = DEFAULT_WAIT_SECONDS }, { owner, signal }) {
      const command = commands.get(owner, handle);
      await command.output.news(wait_seconds * 1_000, signal);
      return answer(newsOf(command));
    },
  });
}

/** How a command stands, and its output since the last time. */
export function newsOf(command: BackgroundCommand): string {
  const { text, dropped } = command.output.take();
  const lines = [statusOf(command)];
  if (dropped > 0) lines.push(`[${count(dropped, "character")} before this left out]`);
  lines.push(text === "" ? "[no new output]" : text);
  return lines.join("\n");
}
