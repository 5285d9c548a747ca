/** `stop_terminal_command`: ends a background command with all that it has started. */
import * as z from "zod";
import { defineTool, type Tool } from "../core/tool.ts";
import type { BackgroundCommands } from "./background-commands.ts";
import { newsOf } from "./read-terminal-output.ts";
import { answer } from "./result.ts";

export function createStopTerminalCommand(commands: BackgroundCommands): Tool {
  return defineTool({
    name: "stop_terminal_command",
    description: "Ends a background command and returns the rest of its output.",
    args: z.strictObject({
      handle: z.string().max(100).describe("The handle that run_terminal_command gave."),
    }),
    needs: ["terminal"],
    // It takes back what its owner's own call has begun: nobody needs to be asked, and to do it twice does no harm.
    risk: "read",
    outside: true,
    async run({ handle }, { owner }) {
      const command = commands.get(owner, handle);
      command.stop();
      await command.ended;
      return answer(newsOf(command));
    },
  });
}
