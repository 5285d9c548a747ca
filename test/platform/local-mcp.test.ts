/** Programs that are spoken to in lines. */
import { describe, expect, test } from "vitest";
import type { StdioCommand, StdioEvents } from "../../src/core/platform.ts";
import { createCommandMark } from "../../src/platform/local-commands.ts";
import { createStdioConnector } from "../../src/platform/local-mcp.ts";

const connector = createStdioConnector({ mark: createCommandMark(), cwd: "/tmp", environment: process.env });

function open(command: string, args: string[], more: Partial<StdioCommand> = {}) {
  const lines: string[] = [];
  const long: [string, string][] = [];
  let wake = () => {};
  let reason: string | undefined;
  const events: StdioEvents = {
    onLine: (line) => {
      lines.push(line);
      wake();
    },
    onLongLine: (head, tail) => {
      long.push([head, tail]);
      wake();
    },
    onClose: (why) => {
      reason = why;
      wake();
    },
  };
  const program = connector.open({ command, args, env: {}, maxLineBytes: 1_000_000, ...more }, events);
  const until = async (holds: () => boolean) => {
    while (!holds())
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  };
  return { program, lines, long, until, reason: () => reason };
}

describe.skipIf(process.platform === "win32")("a program", () => {
  test("gets lines and gives lines, whole, in order, whatever is in them", async () => {
    const { program, lines, until, reason } = open("cat", []);
    const sent = Array.from({ length: 500 }, (_, n) => `${n} \u00e9\u{1f600}\r ${"x".repeat(n * 7)}`);
    for (const line of sent) await program.write(line);
    await until(() => lines.length === sent.length);
    expect(lines).toEqual(sent);
    await program.close();
    await until(() => reason() !== undefined);
    expect(reason()).toBe("ended with exit code 0");
    await expect(program.write("late")).rejects.toThrow("ended");
  });

  test("a line that is too long is dropped but for its ends, and the next one is read", async () => {
    const script = `printf '{"jsonrpc":"2.0","id":7,'; head -c 3000000 /dev/zero | tr '\\0' x; printf '"id":8}\\nnext\\n'; cat`;
    const { program, lines, long, until } = open("sh", ["-c", script]);
    await until(() => lines.length === 1);
    expect(lines).toEqual(["next"]);
    expect(long).toHaveLength(1);
    const [head, tail] = long[0] as [string, string];
    expect(head.startsWith('{"jsonrpc":"2.0","id":7,x')).toBe(true);
    expect(tail.endsWith('x"id":8}')).toBe(true);
    expect(head.length + tail.length).toBeLessThan(2_000);
    await program.close();
  });

  test("its arguments are what they are: no shell reads them", async () => {
    const { lines, until, reason } = open("printf", ["%s\\n", "$(id)", "a b", "'; exit 3"]);
    await until(() => reason() !== undefined);
    expect(lines).toEqual(["$(id)", "a b", "'; exit 3"]);
  });

  test("one that will not end is ended, its children with it", async () => {
    const script = "trap '' TERM; sleep 1000 & echo $!; while :; do sleep 1000; done";
    const { program, lines, until, reason } = open("bash", ["-c", script]);
    await until(() => lines.length === 1);
    await program.close();
    await until(() => reason() !== undefined);
    expect(reason()).toBe("was ended by SIGKILL");
  });

  test("its last words are kept, however many there were", async () => {
    const script = "for i in $(seq 5000); do echo line $i >&2; done; exit 9";
    const { program, until, reason } = open("bash", ["-c", script]);
    await until(() => reason() !== undefined);
    expect(reason()).toBe("ended with exit code 9");
    const words = program.stderr().split("\n");
    expect(words).toHaveLength(20);
    expect(words.at(-1)).toBe("line 5000");
  });

  test("what is no program is told as such", async () => {
    const { until, reason } = open("/tmp", []);
    await until(() => reason() !== undefined);
    expect(reason()).toContain("'/tmp' is not a program");
  });
});
