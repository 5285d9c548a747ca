/** The terminal where no machine is: a bash in JavaScript over an owner's virtual files, without a network. */
import type { CommandName, IFileSystem } from "just-bash/browser";
import type { CommandOptions, CommandResult, Terminal } from "../core/platform.ts";
import type { FileRows } from "../core/store.ts";
import { AppError } from "../errors.ts";
import { OutputTail } from "./output-tail.ts";
import { normalizePath, notDirectory } from "./paths.ts";
import { VirtualFiles } from "./virtual-files.ts";
import { createVirtualWorkspace, VIRTUAL_ROOT } from "./virtual-workspace.ts";

/** The shell holds the event loop between two file operations: the counts bound that time where clocks stand still. */
const LIMITS = {
  maxCommandCount: 50_000,
  maxLoopIterations: 50_000,
  maxAwkIterations: 50_000,
  maxSedIterations: 50_000,
  maxCallDepth: 100,
  maxSourceBytes: 1024 * 1024,
  maxStringLength: 8 * 1024 * 1024,
  maxHeredocSize: 8 * 1024 * 1024,
  maxOutputSize: 8 * 1024 * 1024,
  maxFileSystemBytes: 32 * 1024 * 1024,
  maxLiveBytes: 96 * 1024 * 1024,
  maxInputBytes: 96 * 1024 * 1024,
} as const;
/** File operations after which other work of the event loop gets its turn. */
const OPERATIONS_PER_TURN = 200;
/** Milliseconds that a command waits for an earlier one of its owner. One that was cut off never reports its end. */
const MAX_WAIT_MS = 30_000;
/** The shell hands its output over when it ends, and a stopped one has none. */
const OUTPUT_LOST = "[The output of a stopped command is lost in this shell.]\n";
/** Commands that need Node.js; left out, they are plainly not found. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "python",
  "python3",
  "sqlite3",
  "js-exec",
  "node",
  "tar",
  "curl",
]);
const DESCRIPTION =
  `Commands run in a bash written in JavaScript over the files of ${VIRTUAL_ROOT}; the first of a session starts there. ` +
  "There are the usual text and file commands (cat, ls, find, grep, rg, sed, awk, jq, sort, diff, xargs, …) and " +
  "bash scripts, but no network, no python, node, git, compilers, package managers, background processes or " +
  "links. Each command gets a new shell, in the directory in which the one before it ended: `cd` carries over, variables " +
  `do not. The errors of a command are shown after its other output, and only what is below ${VIRTUAL_ROOT} is kept. There is no input.`;

export function createVirtualTerminal(rows: FileRows, owner: string): Terminal {
  return {
    kind: "virtual",
    description: DESCRIPTION,
    run: (command, options) => inTurn(rows, owner, options, () => run(rows, owner, command, options)),
  };
}

const queues = new WeakMap<FileRows, Map<string, Promise<void>>>();

/** Commands of one owner run one after another, so that each sees what the one before has written. */
async function inTurn(
  rows: FileRows,
  owner: string,
  options: CommandOptions,
  work: () => Promise<CommandResult>,
): Promise<CommandResult> {
  const queue = queues.get(rows) ?? new Map<string, Promise<void>>();
  queues.set(rows, queue);
  const before = queue.get(owner);
  const { promise: done, resolve: finish } = Promise.withResolvers<void>();
  const mine = before === undefined ? done : Promise.all([before, done]).then(() => {});
  queue.set(owner, mine);
  try {
    if (before !== undefined) await waitFor(before, options.signal);
    if (options.signal.aborted) {
      return { exitCode: null, output: "", dropped: 0, timedOut: false, cancelled: true };
    }
    return await work();
  } finally {
    finish();
    if (queue.get(owner) === mine) queue.delete(owner);
  }
}

async function waitFor(before: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const enough = () => resolve();
  const timer = setTimeout(enough, MAX_WAIT_MS);
  signal.addEventListener("abort", enough);
  if (signal.aborted) enough();
  await Promise.race([before, promise]);
  clearTimeout(timer);
  signal.removeEventListener("abort", enough);
}

async function run(
  rows: FileRows,
  owner: string,
  command: string,
  options: CommandOptions,
): Promise<CommandResult> {
  if (command.includes("\0")) {
    throw new AppError("invalid_request", "A command must not hold a NUL character.");
  }
  const cwd = await createVirtualWorkspace(rows, owner).stat(options.cwd ?? "");
  if (!cwd.directory) throw notDirectory(cwd.path);
  // Loaded with the first command: it is the largest module of the program.
  const { Bash, MountableFs, getCommandNames } = await import("just-bash/browser");
  const files = await VirtualFiles.load(rows, owner);
  const commands = (getCommandNames() as CommandName[]).filter((name) => !LEFT_OUT.has(name));
  const base = new Bash({ commands, defenseInDepth: false }).fs;
  const system = new MountableFs({
    base,
    mounts: [{ mountPoint: VIRTUAL_ROOT, filesystem: files }],
  });
  const start = cwd.path === "" ? VIRTUAL_ROOT : `${VIRTUAL_ROOT}/${cwd.path}`;
  const bash = new Bash({
    fs: takingTurns(system),
    commands,
    cwd: start,
    env: { HOME: VIRTUAL_ROOT, TERM: "dumb" },
    executionLimitProfile: "hardened",
    executionLimits: { ...LIMITS, maxExecutionTimeMs: options.timeoutMs },
    defenseInDepth: false,
  });
  const stop = createStop(options);
  options.onStart?.();
  try {
    const result = await bash
      .exec(command, {
        cwd: start,
        signal: stop.signal,
        rawScript: true,
      })
      .catch(scriptFailure);
    const reason = stop.reason();
    const tail = new OutputTail(options.outputLimit, options.onOutput);
    tail.push(result.stdout);
    tail.push(reason === null ? result.stderr : OUTPUT_LOST);
    return {
      exitCode: reason === null ? result.exitCode : null,
      ...tail.end(),
      timedOut: reason === "timeout",
      cancelled: reason === "cancel",
      ...(await directoryOf(files, result)),
    };
  } finally {
    stop.release();
    // As on a machine, what a stopped command has done so far stays done.
    const changes = await files.changes();
    if (changes.remove.length + changes.write.length + changes.makeDirectories.length > 0) {
      await rows.apply(owner, changes);
    }
  }
}

/** Where the shell was at its end. One that ends by `exit`, or is stopped, tells only where it began. */
async function directoryOf(
  files: VirtualFiles,
  result: { exitCode: number; env?: Record<string, string> },
): Promise<Pick<CommandResult, "directory">> {
  const place = result.env?.PWD;
  if (place === undefined) return {};
  const path = workspacePath(place);
  if (path === null || path === "") return { directory: path };
  const found = await files.stat(`/${path}`).catch(() => null);
  return found?.isDirectory ? { directory: path } : {};
}

function workspacePath(place: string): string | null {
  try {
    return normalizePath(place, [VIRTUAL_ROOT]);
  } catch {
    return null;
  }
}

/** What the file system refuses to a redirection ends the script. What the store refuses is no affair of the script's. */
function scriptFailure(error: unknown): { stdout: string; stderr: string; exitCode: number } {
  if (error instanceof AppError) throw error;
  return { stdout: "", stderr: `bash: ${(error as Error).message}\n`, exitCode: 1 };
}

/** One signal for both reasons to stop a command, and which of them came first. */
function createStop(options: CommandOptions) {
  const controller = new AbortController();
  const deadline = Date.now() + options.timeoutMs;
  let reason: "timeout" | "cancel" | null = null;
  const end = (why: "timeout" | "cancel") => {
    reason ??= why;
    controller.abort();
  };
  const onAbort = () => end("cancel");
  options.signal.addEventListener("abort", onAbort, { once: true });
  if (options.signal.aborted) onAbort();
  const timer = setTimeout(() => end("timeout"), options.timeoutMs);
  return {
    signal: controller.signal,
    /** The shell looks at the clock by itself, and may be the first to see that the time is over. */
    reason: () => reason ?? (Date.now() >= deadline ? "timeout" : null),
    release() {
      clearTimeout(timer);
      options.signal.removeEventListener("abort", onAbort);
    },
  };
}

/** The same file system, but the event loop turns between its operations: timers fire and others are served. */
function takingTurns(system: IFileSystem): IFileSystem {
  let operations = 0;
  const methods = new Map<PropertyKey, unknown>();
  return new Proxy(system, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function" || key === "resolvePath" || key === "getAllPaths") {
        return typeof value === "function" ? value.bind(target) : value;
      }
      const known = methods.get(key);
      if (known !== undefined) return known;
      const method = async (...args: unknown[]) => {
        if (++operations % OPERATIONS_PER_TURN === 0) {
          await new Promise((resolve) => setTimeout(resolve, 0));
        }
        return await value.apply(target, args);
      };
      methods.set(key, method);
      return method;
    },
  });
}
