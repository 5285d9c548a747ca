/** `watch`: something that the agent does by itself when something happens. */
import * as z from "zod";
import type { Runs } from "../core/run.ts";
import { defineTool, type Tool } from "../core/tool.ts";
import { EXPECT_ON, type Watcher } from "../core/watch.ts";
import { answer, refusal } from "./result.ts";

/** Characters. */
const ACTION_LIMIT = 20_000;
/** Seconds. */
const WEEK = 7 * 24 * 3_600;

export function createWatch(watcher: Pick<Watcher, "create">, runs: Pick<Runs, "get">): Tool {
  return defineTool({
    name: "watch",
    description:
      "Has a task done each time that something happens: files below a directory are made, changed or deleted, or a url's " +
      "answer or a command's output changes or is as expected. Give exactly one of directory, url and command. The task is " +
      "done in a run of its own in which nobody can be asked; action has to say everything, since that run knows nothing " +
      "of this conversation, and allowed_tools has to name those of your own tools that it needs beyond reading.",
    args: z.strictObject({
      action: z.string().trim().min(1).max(ACTION_LIMIT).describe("What is to be done, in full."),
      name: z.string().trim().min(1).max(200).optional(),
      directory: z.string().min(1).max(4_096).optional().describe("Of the workspace; `.` is all of it."),
      pattern: z.string().max(500).optional().describe("A glob that narrows the directory."),
      url: z.string().max(2_000).optional(),
      command: z
        .string()
        .max(ACTION_LIMIT)
        .optional()
        .describe("Run at each check. Needs run_terminal_command in allowed_tools, unless policy allows it."),
      expect: z
        .strictObject({
          status: z.int().min(100).max(599).optional(),
          exit_code: z.int().min(0).optional(),
          body: z.string().min(1).max(10_000).optional().describe("A text that is in it."),
          regex: z.string().min(1).max(1_000).optional().describe("An RE2 expression."),
          json_path: z.string().min(1).max(1_000).optional().describe("For example $.items[0].name."),
          equals: z.union([z.string(), z.number(), z.boolean(), z.null()]).optional(),
          on: z
            .enum(EXPECT_ON)
            .optional()
            .describe("When it fires. Default change: begins or ceases to hold."),
        })
        .optional()
        .describe("Of a url or a command. Default: any change."),
      interval_seconds: z.int().min(5).max(WEEK).optional().describe("Between checks. Default 60."),
      cooldown_seconds: z.int().min(0).max(WEEK).optional().describe("From one time to the next. Default 0."),
      allowed_tools: z
        .array(z.string().min(1))
        .max(100)
        .optional()
        .describe("Only these are there, and they run unasked. Default: all that need no approval."),
      max_runs: z.int().min(1).optional(),
    }),
    needs: [],
    risk: "write",
    consent: "ask",
    async run({ action, name, allowed_tools, max_runs, ...watched }, { owner, runId }) {
      const run = await runs.get(owner, runId);
      if (!run) return refusal("Not watching: this conversation is not kept, so nobody could say who asked.");
      // The key that this run has goes along, and so does what it belongs to: its model, its agent, its tools.
      const { provider, agent, tools, request, callersKey } = run.spec;
      if (callersKey && run.sealedKey === null)
        return refusal(
          "Not watching: the user's provider key cannot be kept for later, since the server has no secret to encrypt it under. Somebody has to set SECRET_KEY.",
        );
      const belongs = { provider, model: request.model, agent_name: agent ?? undefined };
      const job = { command: action, name, allowed_tools, max_runs, ...belongs };
      const source = { sealedKey: run.sealedKey ?? undefined, within: tools };
      const { job: made, created } = await watcher.create(owner, { ...watched, job }, source);
      return answer(
        created
          ? `Watching as ${made.id} (${made.name}). What is there now is what later checks are compared with.`
          : `There is the same already: ${made.id} (${made.name}), ${made.status}.`,
      );
    },
  });
}
