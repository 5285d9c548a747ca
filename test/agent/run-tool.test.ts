import { describe, expect, test } from "vitest";
import * as z from "zod";
import { runTool } from "../../src/agent/run-tool.ts";
import type { Log, Workspace } from "../../src/core/platform.ts";
import { defineTool, type ToolContext } from "../../src/core/tool.ts";
import { AppError } from "../../src/errors.ts";
import { createVirtualWorkspace } from "../../src/platform/virtual-workspace.ts";
import { noFetch } from "../no-fetch.ts";
import { createMemoryFiles } from "../platform/memory-files.ts";

const files: Workspace = createVirtualWorkspace(createMemoryFiles(), "ann");
const context: ToolContext = {
  owner: "ann",
  runId: "run_1",
  callId: "call_1",
  signal: new AbortController().signal,
  files,
  fetch: noFetch,
  progress: () => {},
};

function toolThat(run: (args: { path: string; limit?: number | undefined }) => Promise<string>) {
  return defineTool({
    name: "probe",
    description: "for tests",
    args: z.strictObject({ path: z.string(), limit: z.int().optional() }),
    needs: [],
    risk: "read",
    run: async (args) => ({ content: [{ type: "text", text: await run(args) }] }),
  });
}

async function call(
  argsText: string,
  run: Parameters<typeof toolThat>[0] = async (args) => JSON.stringify(args),
) {
  const logged: Parameters<Log>[] = [];
  const output = await runTool(toolThat(run), argsText, context, (...entry) => logged.push(entry));
  const [part] = output.content;
  return { text: part?.type === "text" ? part.text : "", failed: output.failed ?? false, logged };
}

describe("runTool", () => {
  test("runs with arguments that fit", async () => {
    expect(await call('{"path": "a", "limit": 3}')).toMatchObject({
      text: '{"path":"a","limit":3}',
      failed: false,
    });
  });

  test("null stands for an argument that was left out", async () => {
    expect(await call('{"path": "a", "limit": null}')).toMatchObject({ text: '{"path":"a"}', failed: false });
    expect(await call('{"path": null}')).toMatchObject({ failed: true });
  });

  test.each([
    ["{", /not valid JSON/],
    ["", /path: /],
    ["[]", /expected object/],
    ["null", /expected object/],
    ['{"path": 3}', /path: .*string/],
    ['{"path": "a", "limit": "x"}', /limit: .*/],
    ['{"path": "a", "file": "b"}', /"file"/],
    ['{"path": "a", "__proto__": {"x": 1}}', /__proto__/],
  ])("arguments %s are a failure that names what is wrong, and nothing runs", async (args, sentence) => {
    const { text, failed, logged } = await call(args, async () => {
      throw new Error("must not run");
    });
    expect(failed).toBe(true);
    expect(text).toMatch(sentence);
    expect(logged).toEqual([]);
  });

  test("an AppError's sentence is the result", async () => {
    const result = await call('{"path": "a"}', async () => {
      throw new AppError("not_found", "There is no such thing.");
    });
    expect(result).toEqual({ text: "There is no such thing.", failed: true, logged: [] });
  });

  test("anything else is logged and shown without detail", async () => {
    const result = await call('{"path": "a"}', async () => {
      throw new TypeError("inner workings");
    });
    expect(result.failed).toBe(true);
    expect(result.text).not.toContain("inner workings");
    expect(JSON.stringify(result.logged)).toContain("inner workings");
  });
});
