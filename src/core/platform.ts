/** The handful of capabilities that differ between Node, Bun and Workers, handed in at the door. */
import type { Redaction } from "./redaction.ts";

export interface FileEntry {
  /** Relative to the workspace, `/`-separated, no leading slash. */
  path: string;
  name: string;
  directory: boolean;
  /** Bytes; 0 for a directory. */
  size: number;
  modifiedAt: Date;
}

/**
 * The folder the agent works in. Paths are relative to its root, `/`-separated; `.` and the empty string are the
 * root. A path that leaves the root (`..`, absolute outside it, through a symlink) or holds NUL throws
 * AppError `invalid_request`; a missing one `not_found`; a directory where a file is wanted, or the reverse,
 * `invalid_request`. An absolute path below {@link root} is taken as the relative one.
 */
export interface Workspace {
  /** What the model is told about where it is: a host path, or `/workspace` where the files are virtual. */
  readonly root: string;
  stat(path: string): Promise<FileEntry>;
  /** The bytes of a file, at most `limit` of them from `offset`. */
  read(path: string, range?: { offset?: number; limit?: number }): Promise<Uint8Array>;
  /** Replaces or makes the file, parents included. Atomic: readers see the old bytes or the new, never a part. */
  write(path: string, bytes: Uint8Array): Promise<FileEntry>;
  /** Entries of one directory, folders first, then by name. */
  list(path: string): Promise<FileEntry[]>;
  /** All files below a directory in path order, lazily. Symlinks are not followed. `.git` and `node_modules` are skipped. */
  walk(path: string, signal?: AbortSignal): AsyncGenerator<FileEntry, void, void>;
  /** Removes a file, or a directory with all that is in it. */
  remove(path: string): Promise<void>;
}

export interface CommandOptions {
  /** Workspace path to run in; default the root. */
  cwd?: string;
  /** Milliseconds until the command and all its children are killed. */
  timeoutMs: number;
  /** Characters kept of stdout and stderr together; the head goes first, the tail is kept. */
  outputLimit: number;
  signal: AbortSignal;
  /** Output as it comes, stdout and stderr interleaved. */
  onOutput?(delta: string): void;
}

export interface CommandResult {
  /** null when a signal ended it. */
  exitCode: number | null;
  /** stdout and stderr, interleaved as they came. */
  output: string;
  /** Characters dropped at the start of `output`. */
  dropped: number;
  timedOut: boolean;
  cancelled: boolean;
}

/** Runs shell commands in the workspace. Never throws for what a command does; a missing `cwd` throws as Workspace does. */
export interface Terminal {
  /** `host` is a real shell with the operator's rights, `virtual` a bash in JavaScript over virtual files. */
  readonly kind: "host" | "virtual";
  /** For the model: which shell this is and what it lacks. */
  readonly description: string;
  run(command: string, options: CommandOptions): Promise<CommandResult>;
}

export type LogLevel = "debug" | "info" | "warning" | "error";
/** Structured logging. `fields` must be plain data and must hold no secret. */
export type Log = (level: LogLevel, message: string, fields?: Record<string, unknown>) => void;

export interface Platform {
  readonly runtime: "node" | "bun" | "workerd";
  /** The workspace of an owner. On a host there is one for all; virtual ones are an owner's own. */
  files(owner: string): Workspace;
  /** The terminal over that workspace; absent when the operator turned it off. */
  terminal?(owner: string): Terminal;
  /** Work that goes on after the response. Its failure is logged and is nobody's else. */
  background(work: Promise<unknown>): void;
  now(): Date;
  log: Log;
  /** The callers' keys that the log knows; error bodies are cleaned by it too. */
  readonly redaction?: Redaction | undefined;
  /** What this service alone knows; owners and encryption keys are derived from it. Absent where nothing needs it. */
  readonly secret?: string | undefined;
}
