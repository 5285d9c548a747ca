/** The policy that decides about each call of the agent's own tools. Pure: data in, a decision out. */
import { matchGlob } from "../core/glob.ts";
import type { Decision, PolicyFile, PolicyRule } from "../core/policy.ts";
import type { Tool } from "../core/tool.ts";
import { parseArgv } from "./command.ts";

/** What policy knows of a tool. */
export type Judged = Pick<Tool, "name" | "risk" | "consent">;

export interface Policy {
  /** The decision on one call. `outside`: the model has read content from outside before it made the call (E4). */
  decide(tool: Judged, args: Record<string, unknown>, outside?: boolean): Decision;
  /** Whether some call of the tool could be allowed without asking: only then is it worth offering where nobody can be asked. */
  mayAllow(tool: Judged): boolean;
  /** Whether the decision may differ from call to call. */
  varies(tool: Judged): boolean;
}

export function createPolicy(file: PolicyFile): Policy {
  const rulesOf = (tool: Judged) => file.rules.filter((rule) => matchGlob(rule.tool, tool.name));
  const fallback = (tool: Judged, outside: boolean): Decision => {
    if (file.default === "auto" || isFree(tool, outside)) return "allow";
    return file.default === "deny" ? "deny" : "ask";
  };
  return {
    decide(tool, args, outside = false) {
      let decision = fallback(tool, outside);
      for (const rule of rulesOf(tool)) {
        if (!argsMatch(rule, tool, args)) continue;
        if (rule.decision === "deny") return "deny";
        decision = rule.decision;
      }
      return decision;
    },
    mayAllow(tool) {
      let possible = fallback(tool, false) === "allow";
      for (const rule of rulesOf(tool)) {
        if (rule.args === undefined) {
          if (rule.decision === "deny") return false;
          possible = rule.decision === "allow";
        } else if (rule.decision === "allow") {
          possible = true;
        }
      }
      return possible;
    },
    varies(tool) {
      if (rulesOf(tool).some((rule) => rule.args !== undefined)) return true;
      return this.decide(tool, {}, true) !== this.decide(tool, {});
    },
  };
}

/** What needs nobody's consent where no rule speaks. */
function isFree({ risk, consent }: Judged, outside: boolean): boolean {
  if (consent === "after-outside") return !outside;
  return consent === undefined && (risk === "read" || risk === "network");
}

function argsMatch(rule: PolicyRule, tool: Judged, args: Record<string, unknown>): boolean {
  for (const [name, pattern] of Object.entries(rule.args ?? {})) {
    const value = args[name];
    if (rule.decision !== "allow") {
      // Forbidding may catch too much; allowing must not.
      if (!textsOf(value).some((text) => matchGlob(pattern, text))) return false;
    } else if (typeof value !== "string") {
      return false;
    } else if (tool.risk === "execute") {
      if (!argvMatches(pattern, value)) return false;
    } else if (value.split(/[\\/]/).includes("..") || !matchGlob(pattern, value)) {
      return false;
    }
  }
  return true;
}

/** Characters of the longest path. */
const PATH_LIMIT = 4_096;

/** All texts of a value, paths in other spellings of the same place too: a tool may take any of them. */
function textsOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (typeof value === "object") return Object.values(value).flatMap(textsOf);
  const text = String(value);
  if (text.length > PATH_LIMIT || !/[\\/]/.test(text)) return [text];
  const parts: string[] = [];
  for (const part of text.split(/[\\/]+/)) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  // Where the rule's own folder is, it does not say: it may be any of those above.
  const below = /^([\\/]|[A-Za-z]:)/.test(text) ? parts.map((_, i) => parts.slice(i).join("/")) : [];
  return [text, parts.join("/"), `/${parts.join("/")}`, ...below];
}

/** Word by word; a last word `*` stands for any number of further words. */
function argvMatches(pattern: string, command: string): boolean {
  const argv = parseArgv(command);
  if (!argv) return false;
  const wanted = pattern.split(" ").filter((word) => word !== "");
  const open = wanted.at(-1) === "*";
  if (open) wanted.pop();
  if (open ? argv.length < wanted.length : argv.length !== wanted.length) return false;
  return wanted.every((word, i) => matchGlob(word, argv[i] as string));
}
