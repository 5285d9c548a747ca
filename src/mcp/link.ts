/** What keeps one server connected, for as long as the process lives: a connection, and attempts at the next one. */
import type { McpServer } from "../core/mcp.ts";
import type { Connection, ConnectionEvents } from "./connection.ts";
import type { Failure } from "./faults.ts";
import { FIRST_PAUSE_MS, LONGEST_PAUSE_MS, STABLE_MS } from "./limits.ts";

export type LinkStatus = "connected" | "connecting" | "disconnected" | "error" | "needs_reauth";

/** An attempt that failed so recently is not made again for a call. Milliseconds. */
const FRESH_FAILURE_MS = 1_000;

export interface LinkHost {
  /** A connection whose tools have been looked at. Throws an Error with a sentence; `failure` of a ConnectError is read. */
  open(server: McpServer, events: ConnectionEvents, signal: AbortSignal): Promise<Connection>;
  onToolsChanged(link: Link, connection: Connection): void;
  /** After every change of `status` or `error`. */
  onStatus(link: Link): void;
}

export class Link {
  readonly server: McpServer;
  readonly #host: LinkHost;
  #status: LinkStatus = "connecting";
  #error: string | null = null;
  #connection: Connection | undefined;
  #attempt: Promise<Connection> | undefined;
  #failures = 0;
  #failedAt = Number.NEGATIVE_INFINITY;
  #openedAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #end = new AbortController();

  constructor(server: McpServer, host: LinkHost) {
    this.server = server;
    this.#host = host;
  }

  get #isClosed(): boolean {
    return this.#end.signal.aborted;
  }

  get status(): LinkStatus {
    return this.#status;
  }

  /** Why there is no connection, as a sentence. */
  get error(): string | null {
    return this.#error;
  }

  /** Whether its tools may be offered: it stands, or will in a moment. */
  get isUsable(): boolean {
    return this.#status === "connected" || this.#status === "connecting" || this.#status === "disconnected";
  }

  /** Events for a connection that is handed to {@link adopt}. */
  readonly events: ConnectionEvents = {
    onToolsChanged: () => this.#connection && this.#host.onToolsChanged(this, this.#connection),
    onClosed: (failure) => this.#drop(failure),
  };

  /** Takes a connection that was opened with {@link events}. */
  adopt(connection: Connection): void {
    this.#connection = connection;
    this.#openedAt = performance.now();
    this.#set("connected", null);
    if (!connection.isOpen) this.#drop({ kind: "lost", words: "ended the connection" });
  }

  /** The connection, or an attempt at one unless the last has just failed. Throws an Error with a sentence. */
  ready(): Promise<Connection> {
    if (this.#isClosed) return Promise.reject(new Error(`${this.server.name} was disconnected.`));
    if (this.#connection?.isOpen) return Promise.resolve(this.#connection);
    if (this.#attempt) return this.#attempt;
    if (this.#error !== null && performance.now() - this.#failedAt < FRESH_FAILURE_MS)
      return Promise.reject(new Error(this.#error));
    return this.#begin();
  }

  /** This connection is of no more use; another may be had already. */
  async renew(connection: Connection): Promise<void> {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#set("disconnected", this.#error);
    if (!this.#isClosed) this.#begin().catch(() => {});
    await connection.close();
  }

  async close(): Promise<void> {
    this.#end.abort();
    clearTimeout(this.#timer);
    const open = this.#connection;
    this.#connection = undefined;
    await Promise.all([open?.close(), this.#attempt?.catch(() => {})]);
  }

  #begin(): Promise<Connection> {
    if (this.#attempt) return this.#attempt;
    clearTimeout(this.#timer);
    const attempt = this.#open();
    this.#attempt = attempt;
    const done = () => {
      if (this.#attempt === attempt) this.#attempt = undefined;
    };
    attempt.then(done, done);
    return attempt;
  }

  async #open(): Promise<Connection> {
    try {
      const connection = await this.#host.open(this.server, this.events, this.#end.signal);
      if (this.#isClosed) {
        await connection.close();
        throw new Error(`${this.server.name} was disconnected.`);
      }
      this.adopt(connection);
      return connection;
    } catch (error) {
      this.#failedAt = performance.now();
      const { failure, message } = error as { failure?: Failure; message: string };
      const isRefused = failure?.kind === "unauthorized";
      this.#set(isRefused ? "needs_reauth" : "error", message);
      // A person has to act first; a call of theirs, or a new authorization, makes the next attempt.
      if (!isRefused) this.#retry();
      throw error;
    }
  }

  #drop(failure: Failure): void {
    if (!this.#connection || this.#isClosed) return;
    this.#connection = undefined;
    if (performance.now() - this.#openedAt >= STABLE_MS) this.#failures = 0;
    this.#set("disconnected", `The MCP server ${this.server.name} ${failure.words}.`);
    this.#retry();
  }

  #retry(): void {
    if (this.#isClosed) return;
    const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures, 20));
    this.#failures += 1;
    clearTimeout(this.#timer);
    // Replicas that lost the same server do not come back to it all at once.
    this.#timer = setTimeout(() => this.#begin().catch(() => {}), longest * (0.5 + Math.random() / 2));
    // It must not keep a process alive that has nothing else to do.
    (this.#timer as { unref?(): void }).unref?.();
  }

  #set(status: LinkStatus, error: string | null): void {
    if (this.#isClosed || (this.#status === status && this.#error === error)) return;
    this.#status = status;
    this.#error = error;
    this.#host.onStatus(this);
  }
}
