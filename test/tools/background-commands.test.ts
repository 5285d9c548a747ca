/** Commands that go on beside the agent's turns, in a real shell. */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { parseConfig } from "../../src/config.ts";
import type { Terminal } from "../../src/core/platform.ts";
import type { ToolContext } from "../../src/core/tool.ts";
import { createLocalTerminal } from "../../src/platform/local-terminal.ts";
import { createLocalWorkspace } from "../../src/platform/local-workspace.ts";
import { BackgroundCommands } from "../../src/tools/background-commands.ts";
import { createTools } from "../../src/tools/registry.ts";
import { UnreadOutput } from "../../src/tools/unread-output.ts";
import { noFetch } from "../no-fetch.ts";
import { said } from "./fixture.ts";

let root: string;
let terminal: Terminal;
let commands: BackgroundCommands;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "dragoman-background-")));
  terminal = createLocalTerminal(root);
  commands = new BackgroundCommands();
});
afterEach(async () => {
  await commands.close();
  rmSync(root, { recursive: true, force: true });
});

const toolsWith = (kind: string) =>
  createTools(parseConfig({ TERMINAL: kind }, { runtime: "node" }), commands);

async function call(name: string, args: unknown, context: Partial<ToolContext> = {}): Promise<string> {
  const tool = toolsWith("host").find((candidate) => candidate.name === name);
  if (!tool) throw new Error(`no tool ${name}`);
  const output = await tool.run(tool.args.parse(args), {
    ...{ owner: "ann", runId: "run_1", callId: "call_1", sessionId: "ses_1" },
    signal: new AbortController().signal,
    files: createLocalWorkspace(root),
    terminal,
    fetch: noFetch,
    progress: () => {},
    ...context,
  });
  return said(output);
}

async function start(command: string, context: Partial<ToolContext> = {}): Promise<string> {
  const sentence = await call("run_terminal_command", { command, background: true }, context);
  return /^Started in the background as (cmd_\w+)\./.exec(sentence)?.[1] ?? `no handle in: ${sentence}`;
}
const read = (handle: string, wait_seconds?: number, context: Partial<ToolContext> = {}) =>
  call("read_terminal_output", wait_seconds === undefined ? { handle } : { handle, wait_seconds }, context);
const stop = (handle: string, context: Partial<ToolContext> = {}) =>
  call("stop_terminal_command", { handle }, context);

/** A killed process stays in the table until its parent has looked at it. */
function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}

async function alive(handle: string): Promise<boolean> {
  return (await read(handle, 0)).startsWith("Still running.");
}

describe("a background command", () => {
  test("answers at once, gives each piece of output once, and its exit code at its end", async () => {
    const handle = await start("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 3");
    expect(await read(handle)).toBe("Still running.\none\n");
    expect(await read(handle, 0)).toBe("Still running.\n[no new output]");
    await terminal.run("touch go", {
      timeoutMs: 5_000,
      outputLimit: 10,
      signal: new AbortController().signal,
    });
    expect(await read(handle)).toMatch(/^(Still running|Exit code: 3)\.?\ntwo\n$/);
    await vi.waitFor(async () => expect(await read(handle)).toBe("Exit code: 3\n[no new output]"));
  });

  test("a read that waits ends with the run that waits", async () => {
    const handle = await start("sleep 60");
    await read(handle, 60, { signal: AbortSignal.timeout(50) });
    expect(await alive(handle)).toBe(true);
  });

  test("starts in the session's directory and does not move it", async () => {
    await terminal.run("mkdir -p sub/dir", {
      timeoutMs: 5_000,
      outputLimit: 10,
      signal: new AbortController().signal,
    });
    const moves: string[] = [];
    const workingDirectory = { read: async () => "sub", move: async (path: string) => void moves.push(path) };
    const handle = await start("cd dir; pwd", { workingDirectory });
    await commands.get("ann", handle).ended;
    expect(await read(handle)).toBe(`Exit code: 0\n${root}/sub/dir\n`);
    expect(moves).toEqual([]);
  });

  test("that cannot begin is no command", async () => {
    await expect(
      call("run_terminal_command", { command: "true", background: true, cwd: "none" }),
    ).rejects.toThrow(/no file or directory "none"/);
    await expect(read("cmd_none")).rejects.toThrow(/There is none now/);
  });

  test("keeps the end of a flood", async () => {
    const handle = await start("yes x | head -c 3000000; echo end");
    await commands.get("ann", handle).ended;
    const output = await read(handle);
    expect(output).toMatch(/^Exit code: 0\n\[[\d,]+ characters before this left out\]\n/);
    expect(output.endsWith("x\nend\n")).toBe(true);
    expect(output.length).toBeLessThan(33_000);
  });

  test("A5: is its owner's; an unknown handle answers with what there is, and why it may be gone", async () => {
    const handle = await start("echo mine; sleep 60");
    await expect(read(handle, 0, { owner: "ben" })).rejects.toThrow(
      /before the last start of the service has ended with it.* There is none now\.$/,
    );
    await expect(stop(handle, { owner: "ben" })).rejects.toThrow(/no background command/);
    await expect(read("cmd_other")).rejects.toThrow(`There are:\n${handle}: running: echo mine; sleep 60`);
  });
});

describe("the end of background commands", () => {
  test("R2: stop ends it with all that it has started, and gives the rest of its output", async () => {
    const handle = await start(
      "(trap '' TERM; sleep 60; sleep 60) & echo $!; trap '' TERM; sleep 60; sleep 60",
    );
    const pid = Number((await read(handle)).split("\n")[1]);
    expect(pid).toBeGreaterThan(1);
    expect(await stop(handle)).toBe("Stopped.\n[no new output]");
    await vi.waitFor(() => expect(hasEnded(pid)).toBe(true));
    expect(await stop(handle)).toBe("Stopped.\n[no new output]");
  });

  test("R2: with the run that started it, with its session, and not with others", async () => {
    const [one, two, three] = await Promise.all([
      start("sleep 60"),
      start("sleep 60", { runId: "run_2" }),
      start("sleep 60", { runId: "run_3", sessionId: "ses_2" }),
    ]);
    commands.endRun("ben", "run_1");
    commands.endSession("ben", "ses_2");
    expect(await Promise.all([one, two, three].map(alive))).toEqual([true, true, true]);
    commands.endRun("ann", "run_1");
    await vi.waitFor(async () =>
      expect(await Promise.all([one, two, three].map(alive))).toEqual([false, true, true]),
    );
    commands.endSession("ann", "ses_2");
    await expect(read(three)).rejects.toThrow(/no background command/);
    expect(await alive(two)).toBe(true);
    const ended = commands.get("ann", two).ended;
    await commands.close();
    await ended;
    expect(await read(two)).toBe("Stopped.\n[no new output]");
  });

  test("an owner has so many at once, and so many ended ones are remembered", async () => {
    const handles = await Promise.all(Array.from({ length: 8 }, () => start("sleep 60")));
    await expect(start("sleep 60")).rejects.toThrow(/8 commands run in the background already/);
    const other = await start("sleep 60", { owner: "ben" });
    expect(await read(other, 0, { owner: "ben" })).toMatch(/^Still running/);
    await stop(handles[0] as string);
    for (let i = 0; i < 17; i++) await stop(await start("true"));
    await expect(read(handles[0] as string, 0)).rejects.toThrow(/no background command/);
    expect(await alive(handles[7] as string)).toBe(true);
  });
});

describe("where it is offered", () => {
  test("not beside the virtual terminal, whose command then does not mention it", () => {
    const names = toolsWith("virtual").map(({ name }) => name);
    expect(names).not.toContain("read_terminal_output");
    const [command] = toolsWith("virtual");
    expect(command?.description).not.toContain("background");
    expect(command?.args.safeParse({ command: "x", background: true }).success).toBe(false);
    expect(toolsWith("sandbox").map(({ name }) => name)).toContain("stop_terminal_command");
  });
});

test("unread output never cuts a character in two", () => {
  const output = new UnreadOutput();
  for (let i = 0; i < 40_001; i++) output.push(i === 0 ? "x" : "😀");
  const { text, dropped } = output.take();
  expect(text.isWellFormed()).toBe(true);
  expect(text.length + dropped).toBe(80_001);
  expect(output.take()).toEqual({ text: "", dropped: 0 });
});
