import { beforeEach, describe, expect, test } from "vitest";
import { createToolFixture, refused, said, type ToolFixture } from "./fixture.ts";

let fixture: ToolFixture;
beforeEach(() => {
  fixture = createToolFixture();
});
const run = (command: string, more: Record<string, unknown> = {}) =>
  fixture.call("run_terminal_command", { command, ...more });

describe("run_terminal_command", () => {
  test("says exit code and output; a non-zero exit has failed", async () => {
    expect(said(await run("echo hi"))).toBe("Exit code: 0\nhi\n");
    expect(said(await run("true"))).toBe("Exit code: 0\n[no output]");
    expect(refused(await run("echo no >&2; exit 3"))).toBe("Exit code: 3\nno\n");
    expect(fixture.progress.join("")).toBe("hi\nno\n");
  });

  test("keeps the end of long output within the limit, and of progress the start", async () => {
    const output = said(await run("for i in $(seq 1 20000); do echo line $i; done"));
    expect(output).toMatch(/^Exit code: 0\n\[[\d,]+ characters at the start of the output left out\]\n/);
    expect(output).toMatch(/line 20000\n$/);
    expect(output.length).toBeLessThan(33_000);
    const shown = fixture.progress.join("");
    expect(shown).toMatch(/^line 1\n/);
    expect(shown).toMatch(/not shown while it runs/);
    expect(shown.length).toBeLessThan(65_000);
  });

  test("says when the time was over or the run was stopped", async () => {
    expect(refused(await run("sleep 60", { timeout_seconds: 1 }))).toMatch(
      /^Killed after 1 second \(timeout_seconds\)/,
    );
    const stopped = fixture.call(
      "run_terminal_command",
      { command: "sleep 60" },
      { signal: AbortSignal.timeout(20) },
    );
    expect(refused(await stopped)).toMatch(/^Killed: the run was stopped/);
  });

  test("the next command of the session starts where the last one ended; cwd wins and does not last", async () => {
    await fixture.write("sub/dir/x", "");
    await fixture.write("other/y", "");
    expect(said(await run("cd sub"))).toBe("Exit code: 0\nWorking directory: sub\n[no output]");
    expect(said(await run("cd dir; pwd"))).toBe(
      "Exit code: 0\nWorking directory: sub/dir\n/workspace/sub/dir\n",
    );
    expect(said(await run("cd ..; ls", { cwd: "other" }))).toBe("Exit code: 0\nother\nsub\n");
    expect(refused(await run("ls; false"))).toBe("Exit code: 1\nWorking directory: sub/dir\nx\n");
    expect(said(await run("cd /workspace; pwd"))).toBe("Exit code: 0\n/workspace\n");
    expect(said(await run("pwd"))).toBe("Exit code: 0\n/workspace\n");
  });

  test("E2: a session never starts outside the workspace, nor in a directory that is gone", async () => {
    await fixture.write("sub/x", "");
    await run("cd sub");
    expect(said(await run("cd /tmp"))).toMatch(/ended outside the workspace; the next one starts in the/);
    expect(said(await run("pwd"))).toBe("Exit code: 0\n/workspace\n");
    await run("cd sub");
    expect(said(await run("rm -r /workspace/sub && touch /workspace/sub"))).toMatch(/^Exit code: 0/);
    await expect(run("rm -rf *")).rejects.toThrow(/^Not run: the working directory sub is no longer there/);
    expect(await fixture.text("sub")).toBe("");
    expect(said(await run("pwd"))).toBe("Exit code: 0\n/workspace\n");
  });

  test("runs where it is told to", async () => {
    await fixture.write("sub/x", "");
    expect(said(await run("pwd; ls", { cwd: "sub" }))).toBe("Exit code: 0\n/workspace/sub\nx\n");
    await expect(run("pwd", { cwd: "none" })).rejects.toThrow(/no file or directory "none"/);
  });
});
