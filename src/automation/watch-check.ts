/** One look of a watchdog at what it watches. */
import { narrowed } from "../agent/narrow.ts";
import { createPolicy } from "../agent/policy.ts";
import type { AgentServices } from "../agent/turn.ts";
import type { JobSpec } from "../core/jobs.ts";
import type { Terminal } from "../core/platform.ts";
import type { PolicyFile, PolicyRule } from "../core/policy.ts";
import type { Look, WatchTarget } from "../core/watch.ts";
import { AppError } from "../errors.ts";
import { wrong } from "./cron-change.ts";
import { isPlainUrl } from "./plain-url.ts";
import { lookAtCommand, lookAtUrl } from "./watch-answer.ts";
import { checkDirectory, lookAtDirectory } from "./watch-directory.ts";
import { type CompileRegex, checkExpectation } from "./watch-expect.ts";

/** Patterns on a linear-time engine (E6). They throw AppError for what is no pattern. */
export interface Patterns {
  regex: CompileRegex;
  glob(pattern: string): (path: string) => boolean;
}

export interface CheckParts {
  agent: Pick<AgentServices, "platform"> & { approval: PolicyFile };
  patterns: Patterns;
  /** Milliseconds. */
  timeoutMs: number;
}

/** What a check of a command is to policy. */
export const TOOL = "run_terminal_command";
const KINDS = ["directory", "url", "command"] as const;

/** `rules`: those of the agent that the watchdog belongs to. */
type Watched = Pick<JobSpec, "allowedTools"> & { owner: string; rules: readonly PolicyRule[] };

/** Throws AppError `invalid_request`, with the field at fault, for what could never be looked at. */
export async function checkTarget(parts: CheckParts, target: WatchTarget, job: Watched): Promise<void> {
  const given = KINDS.filter((kind) => target[kind] !== undefined);
  if (given.length !== 1)
    throw wrong(given[1] ?? "directory", "give exactly one of directory, url and command.");
  const { directory, url, command, pattern, expect } = target;
  if (pattern !== undefined) {
    if (directory === undefined) throw wrong("pattern", "it narrows a directory, and there is none.");
    try {
      parts.patterns.glob(pattern);
    } catch (error) {
      throw wrong("pattern", (error as Error).message);
    }
  }
  if (expect && directory !== undefined)
    throw wrong("expect", "it is about a url or a command. A directory is narrowed with pattern.");
  if (expect) checkExpectation(expect, url === undefined ? "command" : "url", parts.patterns.regex);
  if (directory !== undefined) await checkDirectory(parts.agent.platform.files(job.owner), directory);
  if (url !== undefined && !isPlainUrl(url))
    throw wrong("url", "it has to be an http or https URL without a user name or password.");
  if (command !== undefined) {
    try {
      terminalFor(parts, command, job);
    } catch (error) {
      throw error instanceof AppError ? wrong("command", error.message) : error;
    }
  }
}

/** Throws AppError with a sentence when it cannot look. */
export async function lookAt(
  parts: CheckParts,
  target: WatchTarget,
  job: Watched,
  kept: Record<string, unknown> | null,
): Promise<Look> {
  const { agent, patterns, timeoutMs } = parts;
  const { platform } = agent;
  const { digest } = platform;
  const { directory, url, command, pattern, expect } = target;
  // AbortSignal.timeout would keep its timer until then, and costs more.
  const ending = new AbortController();
  const { signal } = ending;
  const timer = setTimeout(() => ending.abort(), timeoutMs);
  const answer = { expect, digest, compile: patterns.regex, kept, timeoutMs, signal };
  try {
    if (url !== undefined) return await lookAtUrl(platform.fetch, url, answer);
    if (command !== undefined) return await lookAtCommand(terminalFor(parts, command, job), command, answer);
    const matches = pattern === undefined ? () => true : patterns.glob(pattern);
    return await lookAtDirectory(platform.files(job.owner), directory ?? "", matches, kept, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new AppError("unreachable", `The check was not over within ${timeoutMs / 1_000} seconds.`);
  } finally {
    clearTimeout(timer);
  }
}

/** A check is a command that nobody is asked about, so it may only be one that needs nobody's consent. */
function terminalFor(
  { agent }: CheckParts,
  command: string,
  { allowedTools, owner, rules }: Watched,
): Terminal {
  const terminal = agent.platform.terminal?.(owner);
  if (!terminal)
    throw new AppError("unavailable", "there is no terminal here. Watch a directory or a url instead.");
  const { approval } = agent;
  const allow = allowedTools?.includes(TOOL) ? [{ tool: TOOL, decision: "allow" as const }] : [];
  const operators = createPolicy({ ...approval, rules: [...approval.rules, ...allow] });
  const policy = narrowed(operators, rules, allow);
  if (policy.decide({ name: TOOL, risk: "execute" }, { command }) === "allow") return terminal;
  throw new AppError(
    "forbidden",
    `policy does not let it run without asking, and nobody can be asked at a check. Name ${TOOL} in allowed_tools, if policy does not deny it.`,
  );
}
