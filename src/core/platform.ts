/** The handful of capabilities that differ between Node, Bun and Workers, handed in at the door. */
import type { GuardedFetch } from "./fetch.ts";
import type { Redaction } from "./redaction.ts";
import type { LocalVoice } from "./speech.ts";

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
  /** It has begun: what would have thrown has thrown. */
  onStart?(): void;
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
  /** Workspace path in which the shell ended; null: outside the workspace. Absent where nobody knows. */
  directory?: string | null | undefined;
}

/** Runs shell commands in the workspace. Never throws for what a command does; a missing `cwd` throws as Workspace does. */
export interface Terminal {
  /**
   * `host` is a real shell with the operator's rights, `sandbox` one that the system keeps in the workspace, `virtual` a
   * bash in JavaScript over virtual files.
   */
  readonly kind: "host" | "sandbox" | "virtual";
  /** For the model: which shell this is and what it lacks. */
  readonly description: string;
  run(command: string, options: CommandOptions): Promise<CommandResult>;
}

/** A program that is spoken to in lines, one JSON-RPC message each. */
export interface StdioCommand {
  command: string;
  args: string[];
  /** Beside a minimal environment that has nothing of ours. */
  env: Record<string, string>;
  /** Bytes; a longer line is dropped as it arrives. */
  maxLineBytes: number;
}

export interface StdioEvents {
  onLine(line: string): void;
  /** A line was too long; what is left of it are its first and last few hundred characters. */
  onLongLine(head: string, tail: string): void;
  /** Once, when the program has ended or could not be started; why, in words. */
  onClose(reason: string): void;
}

export interface StdioProcess {
  /** Rejects when the program takes no more input. */
  write(line: string): Promise<void>;
  /** The last lines that it wrote to its error stream. */
  stderr(): string;
  /** Ends it with all that it started. */
  close(): Promise<void>;
}

export interface StdioConnector {
  open(command: StdioCommand, events: StdioEvents): StdioProcess;
}

export interface PdfLimits {
  /** Pages that are read, from the first, and characters after which no further one is. */
  maxPages: number;
  maxChars: number;
  signal: AbortSignal;
}

export interface PdfText {
  /** Pages of the whole document. */
  pages: number;
  /** The text of those that were read; empty for a picture of text. */
  texts: string[];
  title: string;
}

/** Throws AppError `invalid_request` with a sentence for a document that is damaged, locked or too slow to read. */
export type ReadPdf = (bytes: Uint8Array, limits: PdfLimits) => Promise<PdfText>;

/** A web page as text. What it does not say is empty. */
export interface HtmlText {
  title: string;
  byline: string;
  site: string;
  /** As the page gives it. */
  date: string;
  /** Its main content as Markdown, addresses absolute; all of it where nothing stands out. */
  text: string;
  /** There was more than is looked at. */
  cut: boolean;
}

/**
 * `url` is where the page came from. Throws AppError `invalid_request` with a sentence for a page that is made so that it
 * cannot be read, or not in time.
 */
export type ReadHtml = (html: string, from: { url: string; signal: AbortSignal }) => Promise<HtmlText>;

/** What is told of a directory that is watched. */
export interface DirectoryEvents {
  /**
   * Something below it may be different, or may have become so before it was seen. Comes as often as files change, so it
   * has to be quick; what has changed, a walk finds out.
   */
  onChange(): void;
  /** It is not watched any longer, or could not be; why, in words. Nothing follows. */
  onEnd(reason: string): void;
}

/**
 * Watches what {@link Workspace.walk} goes through, in an owner's workspace. The directory need not be there yet, and may
 * go and come back. Never throws. What is returned ends it, and may be called twice.
 */
export type WatchDirectory = (owner: string, path: string, events: DirectoryEvents) => () => void;

export type LogLevel = "debug" | "info" | "warning" | "error";
/** Structured logging. `fields` must be plain data and must hold no secret. */
export type Log = (level: LogLevel, message: string, fields?: Record<string, unknown>) => void;

/** The call signature of `fetch`: `typeof fetch` means more where Bun's types are there. */
export type UpstreamFetch = (input: RequestInfo | URL, init?: RequestInit) => Promise<Response>;

export interface Platform {
  readonly runtime: "node" | "bun" | "workerd";
  /** The workspace of an owner. On a host there is one for all; virtual ones are an owner's own. */
  files(owner: string): Workspace;
  /** The terminal over that workspace; absent when the operator turned it off. */
  terminal?(owner: string): Terminal;
  /** Says when files change; absent where nobody does, as for virtual ones. A hint: some changes are never told. */
  readonly watch?: WatchDirectory | undefined;
  /** The way out for addresses that the service did not choose itself. */
  readonly fetch: GuardedFetch;
  /** The way to providers, whose addresses are the operator's own; the runtime's `fetch` where absent. */
  readonly upstream?: UpstreamFetch | undefined;
  /** Starts MCP servers; absent where there are no programs, or the operator lets none be started. */
  readonly mcpStdio?: StdioConnector | undefined;
  /** Reads PDF documents; absent where that cannot be done. */
  readonly pdf?: ReadPdf | undefined;
  /** Reads web pages; absent where that cannot be done. */
  readonly html?: ReadHtml | undefined;
  /** Speaks without a key; absent where no program can be loaded. */
  readonly voice?: LocalVoice | undefined;
  /** Hex SHA-256 of a text's UTF-8, at once. Absent where only WebCrypto has it, which makes the same. */
  digest?(text: string): string;
  /** Throws when there is no room left where the service keeps its data. Absent where that is somebody else's. */
  disk?(): Promise<void>;
  /** Work that goes on after the response. Its failure is logged and is nobody's else. */
  background(work: Promise<unknown>): void;
  now(): Date;
  log: Log;
  /** The callers' keys that the log knows; error bodies are cleaned by it too. */
  readonly redaction?: Redaction | undefined;
  /** What this service alone knows; owners and encryption keys are derived from it. Absent where nothing needs it. */
  readonly secret?: string | undefined;
}
