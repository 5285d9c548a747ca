/**
 * The terminal on a host: a real shell with the operator's rights, in a process group of its own so that it ends
 * with all that it started.
 */
import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { lstat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { Readable } from "node:stream";
import type { CommandOptions, CommandResult, Terminal } from "../core/platform.ts";
import { AppError } from "../errors.ts";
import { type CommandMark, createCommandMark } from "./local-commands.ts";
import { killGroup } from "./local-groups.ts";
import type { LocalPaths } from "./local-paths.ts";
import { codeOf, createLocalPaths, failAs } from "./local-paths.ts";
import { createShellEnds, type ShellEnds } from "./local-shell-end.ts";
import { createStrays, type Strays } from "./local-strays.ts";
import { OutputTail } from "./output-tail.ts";
import { notDirectory } from "./paths.ts";

/** All that a command inherits of our environment: no provider key, token or secret is among it (K3). */
const INHERITED_VARIABLES = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "TZ",
  "TMPDIR",
] as const;
/** No one sits in front of this terminal: no colours, no pagers, no questions. */
const FIXED_VARIABLES = { TERM: "dumb", NO_COLOR: "1", PAGER: "cat", GIT_TERMINAL_PROMPT: "0" } as const;

/** Milliseconds between the polite signal and the final one. A stopped run ends within a second (R2). */
const KILL_GRACE_MS = 500;
/** Milliseconds that output may still arrive after the shell has ended, where a background child holds the pipe. */
const DRAIN_MS = 100;
/** Bytes taken from the pipe before other work of the event loop gets its turn. */
const BYTES_PER_TURN = 1024 * 1024;

/** One pipe for both streams keeps their order. `exec` leaves no extra process behind. */
const MERGE_STREAMS = 'exec "$0" -c "$1" 2>&1';

export interface LocalTerminalOptions {
  /** Where the inherited variables come from; `process.env` unless given. */
  environment?: Record<string, string | undefined>;
  /** What every command carries, so that it can be told from other programs; one of its own unless given. */
  mark?: CommandMark;
  /** The system's sandbox that commands run in; none unless given. */
  sandbox?: Sandbox;
}

/** Puts a shell script into a sandbox of the system. */
export interface Sandbox {
  /** For the model: what it keeps commands from. */
  readonly description: string;
  /** The script that runs `script` in there. */
  wrap(script: string, shell: string): Promise<string>;
  /** To be called once for each wrapped script, when it has ended or will not be run. */
  release(): void;
}

/** @throws AppError `not_implemented` on Windows, which has neither process groups nor a POSIX shell. */
export function createLocalTerminal(root: string, options: LocalTerminalOptions = {}): Terminal {
  if (process.platform === "win32") {
    throw new AppError(
      "not_implemented",
      "The host terminal needs Linux or macOS. Set TERMINAL=virtual, or run inside WSL.",
    );
  }
  const paths = createLocalPaths(root);
  const environment = options.environment ?? process.env;
  const mark = options.mark ?? createCommandMark();
  const shell = findShell(environment.PATH ?? "");
  const ends = createShellEnds(paths.root, shell);
  process.once("exit", () => ends.dispose());
  const name = shell.endsWith("bash") ? "bash" : "sh";
  const { sandbox } = options;
  const host: Host = { shell, paths, environment, mark, ends, sandbox };
  return {
    kind: sandbox ? "sandbox" : "host",
    description:
      `Commands run in ${name} on ${systemName()}; the first of a session starts in the workspace ${paths.root}. ` +
      "Each command gets a new shell, in the directory in which the one before it ended: `cd` carries over inside the " +
      "workspace, variables do not. There is no input: what asks a question gets an end of file. Processes that a " +
      `command leaves behind with & end with it.${sandbox ? ` ${sandbox.description}` : ""}`,
    run: (command, commandOptions) => run(command, commandOptions, host),
  };
}

function systemName(): string {
  return process.platform === "darwin" ? "macOS" : process.platform === "linux" ? "Linux" : process.platform;
}

function findShell(path: string): string {
  for (const directory of [...path.split(delimiter), "/bin", "/usr/bin"]) {
    if (directory === "") continue;
    const candidate = join(directory, "bash");
    try {
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      // Not in this directory.
    }
  }
  return "/bin/sh";
}

function minimalEnvironment(environment: Record<string, string | undefined>): Record<string, string> {
  const kept: Record<string, string> = { ...FIXED_VARIABLES };
  for (const name of INHERITED_VARIABLES) {
    const value = environment[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}

interface Host {
  shell: string;
  paths: LocalPaths;
  environment: Record<string, string | undefined>;
  mark: CommandMark;
  ends: ShellEnds;
  sandbox: Sandbox | undefined;
}

async function run(command: string, options: CommandOptions, host: Host): Promise<CommandResult> {
  if (command.includes("\0")) {
    throw new AppError("invalid_request", "A command must not hold a NUL character.");
  }
  const cwd = await host.paths.existing(options.cwd ?? "");
  if (!(await lstat(cwd.real).catch(failAs(cwd.path))).isDirectory()) throw notDirectory(cwd.path);
  if (options.signal.aborted) return notStarted();
  const end = host.ends.next();
  const script = end.script(command);
  const wrapped = await (host.sandbox?.wrap(script, host.shell) ?? script);
  try {
    if (options.signal.aborted) return notStarted();
    const strays = createStrays();
    const child = start(wrapped, cwd.real, host, strays);
    if (child.pid !== undefined) options.onStart?.();
    const result = await watch(child, options, host.mark, strays);
    const directory = end.directory();
    return directory === undefined ? result : { ...result, directory };
  } finally {
    host.sandbox?.release();
  }
}

function start(
  script: string,
  cwd: string,
  { shell, environment, mark }: Host,
  { variables }: Strays,
): ChildProcess {
  mark.used = true;
  try {
    return spawn("/bin/sh", ["-c", mark.prelude + MERGE_STREAMS, shell, script], {
      cwd,
      env: { ...minimalEnvironment(environment), ...mark.variables, ...variables },
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
  } catch (error) {
    // Some failures are thrown, others come as an event.
    throw startFailure(error);
  }
}

function notStarted(): CommandResult {
  return { exitCode: null, output: "", dropped: 0, timedOut: false, cancelled: true };
}

/** Follows one child from its start until nothing of its group is left, and of a stopped one nothing at all. */
function watch(
  child: ChildProcess,
  options: CommandOptions,
  { running }: CommandMark,
  strays: Strays,
): Promise<CommandResult> {
  const tail = new OutputTail(options.outputLimit, options.onOutput);
  const timers: NodeJS.Timeout[] = [];
  let ended: "timeout" | "cancel" | null = null;
  let exitCode: number | null = null;

  const stop = (reason: "timeout" | "cancel") => {
    if (ended !== null) return;
    ended = reason;
    killGroup(child.pid, "SIGTERM");
    timers.push(setTimeout(() => killGroup(child.pid, "SIGKILL"), KILL_GRACE_MS));
  };
  const onAbort = () => stop("cancel");
  if (child.pid !== undefined) running.add(child.pid, strays.bearer);

  return new Promise<CommandResult>((resolve, reject) => {
    const output = child.stdout as Readable;
    const settle = () => {
      for (const timer of timers) clearTimeout(timer);
      options.signal.removeEventListener("abort", onAbort);
      killGroup(child.pid, "SIGKILL");
      if (child.pid !== undefined) running.delete(child.pid);
      output.destroy();
    };
    const finish = async () => {
      settle();
      if (ended !== null) await strays.kill();
      resolve({ exitCode, ...tail.end(), timedOut: ended === "timeout", cancelled: ended === "cancel" });
    };
    child.once("error", (error) => {
      settle();
      reject(startFailure(error));
    });
    child.once("exit", (code) => {
      exitCode = code;
      // A background child may hold the pipe open for as long as it lives.
      timers.push(setTimeout(finish, DRAIN_MS));
    });
    child.once("close", finish);
    readFairly(output, tail);
    timers.push(setTimeout(() => stop("timeout"), options.timeoutMs));
    options.signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** Reads with pauses, so that a flood of output cannot keep the event loop for itself; the pipe holds the writer back. */
function readFairly(output: Readable, tail: OutputTail): void {
  let taken = 0;
  output.on("data", (chunk: Uint8Array) => {
    tail.pushBytes(chunk);
    taken += chunk.length;
    if (taken < BYTES_PER_TURN) return;
    taken = 0;
    output.pause();
    setImmediate(() => output.resume());
  });
  // A pipe that breaks has ended; the exit code tells the rest.
  output.on("error", () => {});
}

function startFailure(error: unknown): AppError {
  if (codeOf(error) === "E2BIG") {
    return new AppError(
      "invalid_request",
      "The command is too long for the system. Write it to a file and run that.",
    );
  }
  return new AppError("unavailable", "The shell could not be started. Try again in a moment.", {
    cause: error,
  });
}
