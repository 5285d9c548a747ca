/** Noting where a shell ends changes nothing else: every command does what a plain shell does with it. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createShellEnds } from "../../src/platform/local-shell-end.ts";

const SHELLS = ["bash", "sh"] as const;

let root: string;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "dragoman-end-")));
  mkdirSync(join(root, "sub/dir"), { recursive: true });
  writeFileSync(join(root, "sub/file"), "text\n");
  symlinkSync(tmpdir(), join(root, "out"));
  symlinkSync("sub/dir", join(root, "in"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Outcome {
  status: number | null;
  signal: string | null;
  output: string;
}

function outcome(shell: string, args: string[]): Outcome {
  const { status, signal, stdout } = spawnSync("/bin/sh", ["-c", 'exec "$@" 2>&1', "sh", shell, ...args], {
    cwd: root,
    encoding: "utf8",
    input: "",
    timeout: 10_000,
  });
  // A shell names the way by which it got the text.
  return {
    status,
    signal,
    output: stdout
      .replaceAll(/bash: -c: | eval: /g, (found) => (found[0] === " " ? " " : "bash: "))
      .replaceAll("++ ", "+ "),
  };
}

function noted(shell: string, command: string): Outcome & { directory: unknown } {
  const ends = createShellEnds(root, shell);
  const end = ends.next();
  const result = outcome(shell, ["-c", end.script(command)]);
  const directory = end.directory();
  ends.dispose();
  return { ...result, directory };
}

describe.each(SHELLS)("where %s ended", (shell) => {
  test.each([
    ["exit 3", ""],
    ["cd sub; exit 3", "sub"],
    ["cd sub && exec echo replaced", undefined],
    ["set -e; cd sub; false; echo never", "sub"],
    ["set -u; cd sub; echo $none; echo never", "sub"],
    ["set -x; cd sub; echo traced", "sub"],
    ["trap 'echo bye; exit 5' EXIT; cd sub; exit 2", undefined],
    ["trap 'echo term' TERM; kill -TERM $$; cd sub; echo after", "sub"],
    ["cd sub; kill -9 $$", undefined],
    ["if then; cd sub", ""],
    ["cd sub\nif then", "sub"],
    ["cd sub; echo 'open", ""],
    ["cd sub; cat <<END\nno end of it", "sub"],
    ["cd sub; cat <<'END'\n$x `y`\nEND\ncd dir", "sub/dir"],
    ["# only a comment", ""],
    ["cd sub # comment", "sub"],
    ["echo $# \"$@\" [$1] $0 | sed 's/.*\\///'", ""],
    ["\n\nnosuchcommand; echo $LINENO", ""],
    ["cd sub; return 4; echo on", "sub"],
    ["umask 777; cd sub", undefined],
    ["set -o noclobber; cd sub", "sub"],
    ["pwd() { echo fake; }; cd sub", undefined],
    ["cd in", "sub/dir"],
    ["cd out", null],
    ["mkdir gone; cd gone; rmdir ../gone", undefined],
    ["cd sub; exec >/dev/null 2>&1; echo lost", "sub"],
    ["cd sub; exec 2>&-; echo still", "sub"],
    ["", ""],
  ])("%j", async (command, directory) => {
    const plain = outcome(shell, ["-c", command]);
    const { directory: found, ...rest } = noted(shell, command);
    expect(rest).toEqual(plain);
    // A shell that reads all before it runs any finds the error first.
    if (command !== "cd sub\nif then" || found !== "") {
      if (process.getuid?.() === 0 && command.startsWith("umask")) expect(found).toBe("sub");
      else if (command.startsWith("set -u")) expect([undefined, "sub"]).toContain(found);
      else expect(found).toBe(directory);
    }
  });

  test("any mixture of commands does what it does in a plain shell", async () => {
    const piece = fc.constantFrom(
      ...[
        "cd sub",
        "cd dir",
        "cd ..",
        "echo out",
        "echo err >&2",
        "false",
        "true",
        "exit 4",
        "set -e",
        "(cd sub; pwd)",
      ],
      ...[
        "pwd",
        "{ cd sub; }",
        "for i in 1 2; do echo $i; done",
        "cat file",
        "x=1; echo $x",
        "! true",
        "set -x",
      ],
    );
    const joint = fc.constantFrom("; ", "\n", " && ", " || ");
    const script = fc.array(fc.tuple(piece, joint), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(script, async (parts) => {
        const command = parts
          .map(([text, link], i) => (i === parts.length - 1 ? text : text + link))
          .join("");
        const { directory, ...rest } = noted(shell, command);
        expect(rest).toEqual(outcome(shell, ["-c", command]));
        expect([undefined, null, "", "sub", "sub/dir"]).toContain(directory);
      }),
      { numRuns: 25 },
    );
  });
});

describe("traps of bash", () => {
  test.each([
    "trap 'echo debug $BASH_COMMAND' DEBUG; cd sub; echo x",
    "trap 'echo failed' ERR; cd sub; false; true",
    "set -T; trap 'echo debug' DEBUG; cd sub",
    "set -o pipefail; cd sub; false | true",
    "shopt -s expand_aliases; alias ls='echo aliased'\nls; cd sub",
    "pushd sub >/dev/null; dirs -v | wc -l",
  ])("%j", async (command) => {
    const { directory, ...rest } = noted("bash", command);
    expect(rest).toEqual(outcome("bash", ["-c", command]));
    expect(directory).toBe("sub");
  });
});

describe("the note is not to be trusted", () => {
  const lying = (write: string) =>
    noted("bash", `f=$(trap -p EXIT | grep -o "/[^']*dragoman-[^']*" | head -1); trap - EXIT; ${write}`);

  test("whatever a command makes of it, reading ends, stays small and follows no link", async () => {
    const secret = join(root, "secret");
    writeFileSync(secret, `${root}/sub\n`);
    for (const write of [
      'mkfifo "$f"',
      `ln -s ${secret} "$f"`,
      'mkdir "$f"',
      'head -c 10000000 /dev/zero >"$f"',
      'printf relative >"$f"',
      'printf "/bin\\377\\n" >"$f"',
      'rm -rf "$(dirname "$f")"',
      ":",
    ])
      expect(lying(write).directory, write).toBeUndefined();
    expect(lying('echo /etc >"$f"').directory).toBeNull();
    expect(lying(`echo ${root}-other >"$f"`).directory).toBeNull();
  });
});

test("where nothing can be noted, commands run all the same", async () => {
  vi.stubEnv("TMPDIR", join(root, "sub/file"));
  const { directory, ...rest } = noted("bash", "cd sub; pwd; exit 3");
  expect(rest).toEqual({ status: 3, signal: null, output: `${root}/sub\n` });
  expect(directory).toBeUndefined();
  vi.unstubAllEnvs();
});
