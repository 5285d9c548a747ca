/** What an answer says of a job whose `allowed_tools` has names without a tool: mistyped, or of a server that is not connected. */
import * as z from "zod";
import type { Job } from "../core/jobs.ts";
import type { Services } from "../services.ts";

export const unavailableTools = {
  unavailable_tools: z
    .array(z.string())
    .optional()
    .describe("Names in `allowed_tools` of which there is no tool now, where there are any."),
};

export async function findUnavailable(
  { agent }: Pick<Services, "agent">,
  { owner, allowedTools }: Job,
): Promise<{ unavailable_tools?: string[] }> {
  if (allowedTools === null) return {};
  const there = new Set((await agent.tools.of(owner)).map(({ name }) => name));
  const missing = allowedTools.filter((name) => !there.has(name));
  return missing.length === 0 ? {} : { unavailable_tools: missing };
}
