/**
 * Where a command's shell was when it ended. A trap writes it to a file of the command's own: in bash the command runs as
 * it would without it, in other shells messages name `eval`, and `set -v` shows the trap. A shell that is replaced by `exec`, killed, or has a trap of
 * its own for its exit tells nothing. The files are read and written at once: through the thread pool they would cost
 * several times as much.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Bytes of the longest path there is on any system. */
const MAX_PATH_BYTES = 4096;
const OWNER_ONLY = 0o700;

export interface ShellEnds {
  next(): ShellEnd;
  /** Removes what it has made. */
  dispose(): void;
}

export interface ShellEnd {
  /** The script, for the shell, that becomes the shell which runs `command`. */
  script(command: string): string;
  /** To be asked once, after the end: a workspace path; null: outside the workspace; undefined: nobody knows. */
  directory(): string | null | undefined;
}

/**
 * @param root the workspace's real path.
 * @param shell the path of bash, or of another POSIX shell.
 */
export function createShellEnds(root: string, shell: string): ShellEnds {
  const isBash = shell.endsWith("bash");
  let folder: string | undefined;
  let count = 0;
  return {
    dispose() {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    },
    next() {
      const name = String(count++);
      let file: string | undefined;
      return {
        script(command) {
          try {
            folder ??= mkdtempSync(join(tmpdir(), "dragoman-"));
            // Commands that clean up the temporary folder take it along.
            if (!existsSync(folder)) mkdirSync(folder, { mode: OWNER_ONLY });
            const place = join(folder, name);
            writeFileSync(place, `${trap(place)}; unset BASH_ENV`, { mode: OWNER_ONLY });
            file = place;
          } catch {
            // A full disk keeps nobody from the commands that free it.
            return invocation(shell, [command]);
          }
          // Read before the command, which then runs as if there were nothing.
          if (isBash) return `BASH_ENV=${quoted(file)}; export BASH_ENV; ${invocation(shell, [command])}`;
          const evaluate = `${trap(file)}; dragoman_command=$1; shift; eval "$dragoman_command"`;
          return invocation(shell, [evaluate, shell, command]);
        },
        directory() {
          const real = file === undefined ? undefined : readNote(file);
          return real === undefined ? undefined : insideOf(root, real);
        },
      };
    },
  };
}

function invocation(shell: string, words: string[]): string {
  return `exec ${[shell, "-c", ...words].map(quoted).join(" ")}`;
}

/** A DEBUG trap of the command's would see the note being written, and `set -x` show it: both are silenced. */
function trap(file: string): string {
  const silence = '{ set +exu; [ -z "$BASH_VERSION" ] || trap - DEBUG ERR; } >/dev/null 2>&1';
  const note = `${silence}; { pwd -P >|${quoted(file)}; } 2>/dev/null || :`;
  return `trap ${quoted(note)} EXIT`;
}

/** One word of a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The file is within the command's reach: whatever it has made of it, reading ends, and a link is not followed. */
function readNote(file: string): string | undefined {
  try {
    const descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      if (!fstatSync(descriptor).isFile()) return undefined;
      const bytes = new Uint8Array(MAX_PATH_BYTES + 1);
      const length = readSync(descriptor, bytes);
      const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length));
      return length <= MAX_PATH_BYTES && /^\/[^\0]*\n$/.test(text) ? text.slice(0, -1) : undefined;
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return undefined;
  } finally {
    remove(file);
  }
}

function remove(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // It is gone, or a folder now: the whole goes at the end.
  }
}

function insideOf(root: string, real: string): string | null {
  if (real === root) return "";
  const prefix = root === "/" ? "/" : `${root}/`;
  return real.startsWith(prefix) ? real.slice(prefix.length) : null;
}
