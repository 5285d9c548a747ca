/** One tool call from argument text to result. Whatever goes wrong is a result that the model can act on. */
import type { Log } from "../core/platform.ts";
import type { Tool, ToolContext, ToolOutput } from "../core/tool.ts";
import { AppError } from "../errors.ts";

export type ReadArgs = { args: Record<string, unknown>; problem?: undefined } | { problem: string };

/** The arguments as the tool takes them, or a sentence for the model that says what is wrong with them. */
export function readArgs(tool: Tool, argsText: string): ReadArgs {
  let raw: unknown;
  try {
    raw = argsText.trim() === "" ? {} : JSON.parse(argsText);
  } catch (error) {
    const reason = (error as Error).message;
    return {
      problem: `Not run: the arguments of ${tool.name} are not valid JSON (${reason}). Send them again.`,
    };
  }
  let parsed = tool.args.safeParse(raw);
  // Models write null for what they leave out; where a tool means null itself, the first look has accepted it.
  if (!parsed.success) parsed = tool.args.safeParse(withoutNulls(raw));
  if (parsed.success) return { args: parsed.data as Record<string, unknown> };
  const problems = parsed.error.issues.map(
    ({ path, message }) => `${path.join(".") || "arguments"}: ${message}`,
  );
  return {
    problem: `Not run: wrong arguments for ${tool.name}. ${problems.join("; ")}. Correct them and call it again.`,
  };
}

/** Runs `tool` with the arguments as the model wrote them. Never throws. */
export async function runTool(
  tool: Tool,
  argsText: string,
  context: ToolContext,
  log: Log,
): Promise<ToolOutput> {
  const read = readArgs(tool, argsText);
  if (read.problem !== undefined) return failure(read.problem);
  if (context.signal.aborted) return failure("Not run: the request was cancelled.");
  try {
    return await tool.run(read.args, context);
  } catch (error) {
    if (context.signal.aborted) return failure("Cancelled before it was finished.");
    if (error instanceof AppError) return failure(error.message);
    log("error", "tool failed", {
      tool: tool.name,
      run_id: context.runId,
      error: String((error as Error)?.stack ?? error),
    });
    return failure(`${tool.name} failed inside the service. Try another way, or tell the user.`);
  }
}

function withoutNulls(args: unknown): unknown {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return args;
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
}

function failure(sentence: string): ToolOutput {
  return { content: [{ type: "text", text: sentence }], failed: true };
}
