/** What the service says when it has started: where it is, where its data are, and what it found in its settings. */
import type { Config } from "../config.ts";
import { PROVIDERS } from "../core/message.ts";

/** Names of what was found, never values. `url` is where it listens, `database` where its rows are. */
export function banner(config: Config, url: string, database: string, workspace: string): string {
  const lines: [string, string][] = [
    ["listens", url],
    ["data", database],
    ["workspace", workspace],
    ["terminal", config.terminal],
    ["keys", keysOf(config)],
    ["approval", approvalOf(config)],
    ["access", accessOf(config)],
    ["runtime", config.runtime],
  ];
  return `\n  dragoman\n${lines.map(([name, value]) => `  ${name.padEnd(10)} ${value}\n`).join("")}\n`;
}

function keysOf(config: Config): string {
  const found = PROVIDERS.filter((provider) => config.providers[provider].apiKey !== undefined);
  const moved = PROVIDERS.filter((provider) => config.providers[provider].baseUrl !== undefined);
  const keys = found.length === 0 ? "none: every request brings its own" : found.join(", ");
  return moved.length === 0 ? keys : `${keys} (own base URL: ${moved.join(", ")})`;
}

function approvalOf({ approval }: Config): string {
  const rules = approval.rules.length;
  if (rules === 0) return approval.default;
  return `${approval.default}, with ${rules} rule${rules === 1 ? "" : "s"}${approval.source ? ` of ${approval.source}` : ""}`;
}

function accessOf({ access }: Config): string {
  if (access.mode === "open") return "this machine only, no token";
  if (access.mode === "key") return "by provider key";
  return `by token: ${[...new Set(access.tokens.map(({ owner }) => owner))].join(", ")}`;
}
