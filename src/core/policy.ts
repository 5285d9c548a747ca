/** Policy as data: which of the agent's own tools may run, must be asked about, or may not run at all. */
import * as z from "zod";

export const DECISIONS = ["allow", "ask", "deny"] as const;
export type Decision = (typeof DECISIONS)[number];

/**
 * One rule. `tool` and the values of `args` are globs (`*`, `?`). All named arguments have to match. For a tool that
 * executes, an `allow` on a `command` binds a parsed argv word by word; see agent/command.ts.
 */
export const PolicyRule = z.strictObject({
  tool: z.string().min(1).describe("Tool name or glob: `run_terminal_command`, `github__*`"),
  args: z
    .record(z.string(), z.string())
    .optional()
    .describe("Argument name to glob, for example {path: 'docs/*'}"),
  decision: z.enum(DECISIONS),
});
export type PolicyRule = z.infer<typeof PolicyRule>;

/** The file that `APPROVAL` may name. Any `deny` that matches wins; otherwise the last rule that matches; otherwise `default`. */
export const PolicyFile = z.strictObject({
  default: z.enum(["ask", "auto", "deny"]).default("ask"),
  rules: z.array(PolicyRule).max(1000).default([]),
});
export type PolicyFile = z.infer<typeof PolicyFile>;
