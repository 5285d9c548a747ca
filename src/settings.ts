/**
 * Every setting that Dragoman has: its name, its default, what it means and what it may be, each area in a file of its own.
 * `config.ts` reads the environment through this table, and the table in the README is this one.
 */
import { ACCESS } from "./settings/access.ts";
import type { Setting } from "./settings/kinds.ts";
import { IMAGES, MEMORY } from "./settings/knowledge.ts";
import { MODELS, PROVIDER, SPEECH, UPSTREAM } from "./settings/providers.ts";
import { RUNS } from "./settings/runs.ts";
import { REQUESTS, SERVICE } from "./settings/service.ts";
import { SEARCH, TERMINAL_AND_MCP } from "./settings/tools.ts";

/** In the order of the README. */
export const SETTINGS_TABLE = {
  ...SERVICE,
  ...TERMINAL_AND_MCP,
  ...PROVIDER,
  ...SEARCH,
  ...MODELS,
  ...ACCESS,
  ...RUNS,
  ...MEMORY,
  ...SPEECH,
  ...UPSTREAM,
  ...IMAGES,
  ...REQUESTS,
};

export type SettingName = keyof typeof SETTINGS_TABLE;
export type Values = {
  [K in SettingName]: (typeof SETTINGS_TABLE)[K] extends Setting<infer T> ? T : never;
};

/** The table as the README shows it. */
export const SETTINGS: { name: string; default: string; description: string }[] = Object.entries(
  SETTINGS_TABLE,
).map(([name, entry]) => ({ name, default: entry.default, description: entry.description }));

/** Reads every setting. A wrong one is a sentence in `problems` and missing in `values`. */
export function readSettings(env: Record<string, string | undefined>): {
  values: Values;
  problems: string[];
} {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, entry] of Object.entries(SETTINGS_TABLE) as [SettingName, Setting][]) {
    const raw = env[name]?.trim();
    if (!raw) {
      values[name] = entry.fallback;
      continue;
    }
    const parsed = entry.parse.safeParse(raw);
    if (parsed.success) values[name] = parsed.data;
    else
      problems.push(
        `${name} has to be ${entry.allowed}${entry.secret ? "" : `, not '${raw.slice(0, 80)}'`}.`,
      );
  }
  return { values: values as Values, problems };
}
