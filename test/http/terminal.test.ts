/** The terminal through the native door: where commands start, what is seen of them, what goes on beside the turns. */
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { createLocalTerminal } from "../../src/platform/local-terminal.ts";
import { createLocalWorkspace } from "../../src/platform/local-workspace.ts";
import type { ChatEvent } from "../../src/protocols/native-chat-events.ts";
import { parseFrames } from "../../src/protocols/native-chat-stream.ts";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";
import { createHome, createService, json, ofType, type TestHome, type TestService } from "./service.ts";

let home: TestHome;
let root: string;
const open: TestService[] = [];
beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "dragoman-http-")));
});
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
  rmSync(root, { recursive: true, force: true });
});

type Kind = "host" | "virtual";

async function start(kind: Kind, replies: ScriptedReply[], approval = "auto"): Promise<TestService> {
  const files = createLocalWorkspace(root);
  const terminal = createLocalTerminal(root);
  const service = await createService(home, {
    model: scriptedModel(replies),
    tools: "own",
    env: { TERMINAL: kind, APPROVAL: approval },
    ...(kind === "host" ? { files: () => files, terminal: () => terminal } : {}),
  });
  open.push(service);
  return service;
}

let calls = 0;
function tool(name: string, args: Record<string, unknown>): ScriptedReply {
  return { calls: [{ id: `call_${calls++}`, name, args }] };
}
const command = (line: string, more: Record<string, unknown> = {}) =>
  tool("run_terminal_command", { command: line, ...more });
const END: ScriptedReply = { text: "done" };

interface Turn {
  session_id: string;
  run_id: string;
  tools: { output: string; is_error: boolean }[];
  pending_calls: { id: string; preview: string }[];
}

/** One turn with these replies of the model's; a service of its own, as after a restart. */
async function turn(
  kind: Kind,
  replies: ScriptedReply[],
  session?: string,
  approval?: string,
): Promise<Turn> {
  const service = await start(kind, replies, approval);
  return json(
    await service.post("/api/chat", { message: "go", ...(session ? { session_id: session } : {}) }),
  );
}
const outputs = ({ tools }: Turn) => tools.map(({ output }) => output);

describe.each(["host", "virtual"] as const)("cd on the %s terminal", (kind) => {
  test("lasts in its session, over turns, restarts and copies, and in no other session", async () => {
    const first = await turn(kind, [
      command("mkdir -p src/deep && cd src"),
      command("cd deep && touch file"),
      END,
    ]);
    expect(outputs(first)).toEqual([
      "Exit code: 0\nWorking directory: src\n[no output]",
      "Exit code: 0\nWorking directory: src/deep\n[no output]",
    ]);
    const session = first.session_id;
    expect(outputs(await turn(kind, [command("ls"), END], session))).toEqual([
      "Exit code: 0\nWorking directory: src/deep\nfile\n",
    ]);
    const service = await start(kind, [END]);
    const fork = await json(await service.post(`/api/sessions/${session}/fork`, {}));
    expect(outputs(await turn(kind, [command("ls; cd ../.."), END], fork.id))).toEqual([
      "Exit code: 0\nfile\n",
    ]);
    expect(outputs(await turn(kind, [command("ls"), END], session))[0]).toContain("src/deep\nfile\n");
    expect(outputs(await turn(kind, [command("ls | grep -c file"), END]))).toEqual(["Exit code: 1\n0\n"]);
  });

  test("P3: what is asked says where it would run, and runs there after a restart", async () => {
    const first = await turn(kind, [command("mkdir -p src/deep && cd src"), END]);
    const asked = await turn(kind, [command("touch here; cd deep")], first.session_id, "ask");
    expect(asked.pending_calls).toMatchObject([{ preview: 'touch here; cd deep\n⟨cwd: "src"⟩' }]);
    const service = await start(kind, [command("ls ..", { cwd: "src/deep" }), END], "ask");
    const answer = { session_id: asked.session_id, approved: true };
    const after: Turn = await json(await service.post("/api/chat/approve", answer));
    expect(outputs(after)[0]).toBe("Exit code: 0\nWorking directory: src/deep\n[no output]");
    expect(after.pending_calls).toMatchObject([{ preview: 'ls ..\n⟨cwd: "src/deep"⟩' }]);
  });

  test("P3: of two commands that are asked together, the second starts where the first ends, and says so", async () => {
    const both: ScriptedReply = {
      calls: ["mkdir sub; cd sub", "pwd"].map((line, i) => ({
        ...{ id: `call_both_${i}`, name: "run_terminal_command", args: { command: line } },
      })),
    };
    const asked = await turn(kind, [both], undefined, "ask");
    expect(asked.pending_calls.map(({ preview }) => preview)).toEqual([
      "mkdir sub; cd sub",
      "pwd\n⟨cwd: where the command before it ends⟩",
    ]);
    const service = await start(kind, [END], "ask");
    const answer = { session_id: asked.session_id, approved: true };
    const after: Turn = await json(await service.post("/api/chat/approve", answer));
    expect(outputs(after)[1]).toMatch(/\/sub\n$/);
  });

  test("lasts for the run where there is no session", async () => {
    const service = await start(kind, [command("mkdir -p src && cd src"), command("pwd"), END]);
    const body = { model: "dragoman", messages: [{ role: "user", content: "go" }] };
    const headers = { "x-agent-events": "1" };
    const response = await service.post("/v1/chat/completions", { ...body, stream: true }, headers);
    expect(await response.text()).toMatch(/Working directory: src\\n[^"]*\/src\\n/);
  });
});

describe("output while a command runs", () => {
  test("host: comes before the command has ended", async () => {
    const line = `echo one; echo two >&2; while [ ! -e go ]; do sleep 0.02; done; echo three`;
    const service = await start("host", [command(line), END]);
    const response = await service.post("/api/chat", { message: "go", stream: true });
    const events: ChatEvent[] = [];
    for await (const { event } of frames(response)) {
      events.push(event);
      const shown = ofType(events, "tool_progress").map(({ content }) => content);
      if (shown.join("") === "one\ntwo\n") {
        expect(ofType(events, "tool_result")).toEqual([]);
        writeFileSync(join(root, "go"), "");
      }
    }
    expect(
      ofType(events, "tool_progress")
        .map(({ content }) => content)
        .join(""),
    ).toBe("one\ntwo\nthree\n");
    expect(ofType(events, "tool_result")).toMatchObject([{ output: "Exit code: 0\none\ntwo\nthree\n" }]);
    expect(existsSync(join(root, "go"))).toBe(true);
  });

  test("virtual: comes when the shell hands it over, before the result", async () => {
    const service = await start("virtual", [command("echo one; sleep 0.1; echo two"), END]);
    const response = await service.post("/api/chat", { message: "go", stream: true });
    const types: string[] = [];
    let said = "";
    for await (const { event } of frames(response)) {
      types.push(event.type);
      if (event.type === "tool_progress") said += event.content;
    }
    expect(said).toBe("one\ntwo\n");
    expect(types.indexOf("tool_progress")).toBeLessThan(types.indexOf("tool_result"));
  });
});

/** Events as they come. */
async function* frames(response: Response) {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  for (let text = ""; ; ) {
    const { value, done } = await reader.read();
    text += decoder.decode(value, { stream: true });
    const end = text.lastIndexOf("\n\n") + 2;
    if (end > 1) {
      yield* parseFrames(text.slice(0, end));
      text = text.slice(end);
    }
    if (done) return;
  }
}

describe("background commands", () => {
  const PATIENCE = { timeout: 5_000, interval: 10 };
  const FOREVER = "trap 'echo ended > ended; exit' TERM; echo begun > begun; while :; do sleep 0.02; done";
  const background = () => command(FOREVER, { background: true });
  const began = () => vi.waitFor(() => expect(existsSync(join(root, "begun"))).toBe(true), PATIENCE);
  const ended = () => vi.waitFor(() => expect(existsSync(join(root, "ended"))).toBe(true), PATIENCE);

  test("go on when their turn has ended, and end with their session", async () => {
    const replies = [background(), END];
    const service = await start("host", replies);
    const first: Turn = await json(await service.post("/api/chat", { message: "go" }));
    const handle = /cmd_\w+/.exec(outputs(first)[0] ?? "")?.[0] ?? "";
    await began();
    expect(service.services.commands.get("local", handle).result).toBeUndefined();
    await service.request(`/api/sessions/${first.session_id}`, { method: "DELETE" });
    await ended();
    expect(() => service.services.commands.get("local", handle)).toThrow(/There is none now/);
  });

  test("R2: end with the run that started them when that is stopped", async () => {
    const service = await start("host", [background(), { text: "thinking", hang: true }]);
    const response = await service.post("/api/chat", { message: "go", stream: true });
    await began();
    const runId = response.headers.get("x-run-id");
    await service.post(`/api/runs/${runId}/stop`, {});
    await ended();
    await response.text();
  });

  test("end with the service, and a handle from before says so", async () => {
    const first = await turn("host", [background(), END]);
    const handle = /cmd_\w+/.exec(outputs(first)[0] ?? "")?.[0] ?? "";
    await began();
    await open.pop()?.close();
    await ended();
    const after = await turn("host", [tool("read_terminal_output", { handle }), END], first.session_id);
    expect(after.tools).toMatchObject([{ is_error: true }]);
    expect(outputs(after)[0]).toMatch(/before the last start of the service has ended with it/);
  });
});
