/** Tools over files in memory, called as the agent calls them. */
import { parseConfig } from "../../src/config.ts";
import type { Terminal, Workspace } from "../../src/core/platform.ts";
import type { Tool, ToolContext, ToolOutput, WorkingDirectory } from "../../src/core/tool.ts";
import { createVirtualTerminal } from "../../src/platform/virtual-terminal.ts";
import { createVirtualWorkspace } from "../../src/platform/virtual-workspace.ts";
import { createTools } from "../../src/tools/registry.ts";
import { noFetch } from "../no-fetch.ts";
import { createMemoryFiles } from "../platform/memory-files.ts";

const tools = createTools(parseConfig({}, { runtime: "node" }));

export interface ToolFixture {
  files: Workspace;
  terminal: Terminal;
  /** What the tools reported while they ran. */
  progress: string[];
  call(name: string, args: unknown, context?: Partial<ToolContext>): Promise<ToolOutput>;
  write(path: string, content: string | Uint8Array): Promise<void>;
  text(path: string): Promise<string>;
}

export function createToolFixture(): ToolFixture {
  const rows = createMemoryFiles();
  const files = createVirtualWorkspace(rows, "ann");
  const terminal = createVirtualTerminal(rows, "ann");
  const progress: string[] = [];
  let directory = "";
  const workingDirectory: WorkingDirectory = {
    read: async () => directory,
    async move(path) {
      directory = path;
    },
  };
  return {
    files,
    terminal,
    progress,
    async call(name, args, context) {
      const tool = toolNamed(name);
      return await tool.run(tool.args.parse(args), {
        owner: "ann",
        runId: "run_1",
        callId: "call_1",
        signal: new AbortController().signal,
        files,
        terminal,
        workingDirectory,
        fetch: noFetch,
        progress: (delta) => progress.push(delta),
        ...context,
      });
    },
    async write(path, content) {
      await files.write(path, typeof content === "string" ? new TextEncoder().encode(content) : content);
    },
    async text(path) {
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await files.read(path));
    },
  };
}

export function toolNamed(name: string): Tool {
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  return tool;
}

/** The text of a result that succeeded; a failure shows itself. */
export function said(output: ToolOutput): string {
  if (output.failed) throw new Error(`failed: ${textOf(output)}`);
  return textOf(output);
}

/** The sentence of a result that failed. */
export function refused(output: ToolOutput): string {
  if (!output.failed) throw new Error(`did not fail: ${textOf(output)}`);
  return textOf(output);
}

function textOf(output: ToolOutput): string {
  return output.content.map((part) => (part.type === "text" ? part.text : `<${part.type}>`)).join("\n");
}
