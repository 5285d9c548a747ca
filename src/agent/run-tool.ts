/** One tool call from argument text to result. Whatever goes wrong is a result that the model can act on. */
import type { Log } from "../core/platform.ts";
import type { Tool, ToolContext, ToolOutput } from "../core/tool.ts";
import { AppError } from "../errors.ts";

/**
 * Runs `tool` with the arguments as the model wrote them. `refuse` sees the parsed arguments and answers with the
 * reason why the call may not run, or null. Never throws.
 */
export async function runTool(
  tool: Tool,
  argsText: string,
  context: ToolContext,
  log: Log,
  refuse: (args: Record<string, unknown>) => string | null = () => null,
): Promise<ToolOutput> {
  let raw: unknown;
  try {
    raw = argsText.trim() === "" ? {} : JSON.parse(argsText);
  } catch (error) {
    return failure(
      `Not run: the arguments of ${tool.name} are not valid JSON (${(error as Error).message}). Send them again.`,
    );
  }
  let parsed = tool.args.safeParse(raw);
  // Models write null for what they leave out; where a tool means null itself, the first look has accepted it.
  if (!parsed.success) parsed = tool.args.safeParse(withoutNulls(raw));
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      ({ path, message }) => `${path.join(".") || "arguments"}: ${message}`,
    );
    return failure(
      `Not run: wrong arguments for ${tool.name}. ${problems.join("; ")}. Correct them and call it again.`,
    );
  }
  const reason = refuse(parsed.data as Record<string, unknown>);
  if (reason !== null) return failure(reason);
  try {
    return await tool.run(parsed.data, context);
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
