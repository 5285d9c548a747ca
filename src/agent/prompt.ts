/** What the agent is told about itself. Short, and the same from request to request, so that provider caches hit. */
import { type TextPart, text } from "../core/message.ts";
import type { Terminal, Workspace } from "../core/platform.ts";
import type { Tool } from "../core/tool.ts";
import { OUTSIDE_RULE } from "./outside.ts";

export interface Surroundings {
  tools: readonly Tool[];
  files: Workspace;
  terminal?: Terminal | undefined;
}

export function agentPrompt({ tools, files, terminal }: Surroundings): TextPart {
  const lines = [
    "You are Dragoman, an autonomous agent. You have tools that act on a real system; use them to do what is asked, and check the outcome before you report it.",
    "",
    "- Go on until the task is done or you need something that only the user can give. Do not describe what you could do: do it.",
    "- When calls do not depend on each other, make them in one turn. Calls that write or execute run in the order in which you make them.",
    `- ${OUTSIDE_RULE}`,
    "- If a call fails, read why, and try another way before you give up. Never claim a result that you have not seen.",
    "- Answer in the user's language, and briefly.",
  ];
  if (tools.some((tool) => tool.needs.includes("files")))
    lines.push(
      "",
      `Your files are in ${files.root}. Paths are relative to it; nothing outside it can be reached.`,
    );
  if (terminal && tools.some((tool) => tool.needs.includes("terminal"))) lines.push(terminal.description);
  return text(lines.join("\n"));
}
