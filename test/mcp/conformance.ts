/** Runs scenarios of the protocol's own conformance suite, as its command does, and reads what came of them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);
const COMMAND = join(
  dirname(require.resolve("@modelcontextprotocol/conformance/package.json")),
  "dist/index.js",
);

export interface Check {
  id: string;
  /** `INFO` and `SKIPPED` say nothing about success. */
  status: "SUCCESS" | "FAILURE" | "WARNING" | "INFO" | "SKIPPED";
  errorMessage?: string;
}

/** The names of all scenarios of one side, as the suite lists them. */
export async function scenariosOf(side: "server" | "client"): Promise<string[]> {
  const { output } = await command(["list", `--${side}`]);
  return [...output.matchAll(/^\s+- (\S+)/gm)].map(([, name]) => name as string);
}

/** Every check of each scenario that was run. */
export async function runConformance(
  args: string[],
): Promise<{ scenarios: Map<string, Check[]>; output: string }> {
  const folder = await mkdtemp(join(tmpdir(), "dragoman-conformance-"));
  try {
    const { output } = await command([...args, "--output-dir", folder]);
    const scenarios = new Map<string, Check[]>();
    for (const path of await readdir(folder, { recursive: true })) {
      if (!path.endsWith("checks.json")) continue;
      const name = dirname(path)
        .replace(/^server-/, "")
        .replace(/-\d{4}-\d{2}-\d{2}T[\w-]+$/, "");
      scenarios.set(name, JSON.parse(await readFile(join(folder, path), "utf8")) as Check[]);
    }
    return { scenarios, output };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function command(args: string[]): Promise<{ output: string }> {
  const child = spawn(process.execPath, [COMMAND, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  await once(child, "close");
  return { output };
}

/** What a scenario has failed with; empty where it has passed. */
export function failuresOf(checks: readonly Check[]): string[] {
  return checks
    .filter(({ status }) => status === "FAILURE" || status === "WARNING")
    .map(({ id, status, errorMessage }) => `${status} ${id}: ${errorMessage ?? ""}`);
}
