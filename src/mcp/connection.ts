/** One live connection to an MCP server: opened, asked for its tools, called, closed. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  type CallToolResult,
  CallToolResultSchema,
  ErrorCode,
  ListToolsResultSchema,
  McpError,
  type Progress,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/cfworker";
import type { McpSecrets, McpServerSpec } from "../core/mcp.ts";
import { createRedaction, type Redaction } from "../core/redaction.ts";
import type { ListedTool } from "./definition.ts";
import { type Failure, failureOf } from "./faults.ts";
import {
  GOODBYE_MS,
  LIST_DEBOUNCE_MS,
  LIST_PAGES,
  LIST_PAUSE_MS,
  LIST_TIMEOUT_MS,
  LONGEST_CALL_MS,
  TOOLS_LIMIT,
} from "./limits.ts";
import { plainText } from "./plain-text.ts";
import { secretWords } from "./secrets.ts";
import { createTransport, type ServerTransport, type TransportHost } from "./transports.ts";

const CLIENT = { name: "dragoman", version: "1.0.0" };
/** Characters of a server's error stream that are shown. */
const STDERR_LIMIT = 2_000;

export interface ConnectionHost extends TransportHost {
  /** Milliseconds until a connection stands, and between two signs of life of a call. */
  connectMs: number;
  callMs: number;
}

export interface ConnectionEvents {
  /** The server says that its tools are others now. At most once a second. */
  onToolsChanged(): void;
  /** Once, when it has ended by itself. */
  onClosed(failure: Failure): void;
}

/** Why there is no connection. The message is a sentence without any secret. */
export class ConnectError extends Error {
  override name = "ConnectError";
  readonly failure: Failure;

  constructor(message: string, failure: Failure) {
    super(message);
    this.failure = failure;
  }
}

export interface CallOptions {
  signal: AbortSignal;
  onProgress(progress: Progress): void;
}

export class Connection {
  readonly #client: Client;
  readonly #events: ConnectionEvents;
  readonly #redaction: Redaction;
  readonly #callMs: number;
  readonly #transport: ServerTransport;
  #ended: Failure | undefined;
  #isOpen = false;
  #news: ReturnType<typeof setTimeout> | undefined;
  #toldAt = Number.NEGATIVE_INFINITY;

  private constructor(
    server: McpServerSpec,
    secrets: McpSecrets,
    host: ConnectionHost,
    events: ConnectionEvents,
  ) {
    this.#events = events;
    this.#callMs = host.callMs;
    this.#redaction = redactionOf(secrets);
    this.#transport = createTransport(server, secrets, host, (failure) => this.#end(failure));
    this.#client = new Client(CLIENT, {
      capabilities: {},
      // The default one generates code, which Workers refuse.
      jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
    });
  }

  /** Throws ConnectError. `signal`: the wait is for nothing any more. */
  static async open(
    server: McpServerSpec,
    secrets: McpSecrets,
    host: ConnectionHost,
    events: ConnectionEvents,
    signal?: AbortSignal | undefined,
  ): Promise<Connection> {
    const connection = new Connection(server, secrets, host, events);
    await connection.#open(server.name, host.connectMs, signal);
    return connection;
  }

  async #open(name: string, connectMs: number, signal: AbortSignal | undefined): Promise<void> {
    const stop = () => this.#end({ kind: "lost", words: "was disconnected" });
    signal?.addEventListener("abort", stop, { once: true });
    this.#client.onclose = () => {
      // Before it stands, what was thrown tells more.
      if (this.#isOpen)
        this.#end({ kind: "lost", words: this.#transport.stdio?.reason ?? "ended the connection" });
    };
    try {
      if (signal?.aborted) stop();
      else await within(connectMs, this.#client.connect(this.#transport.bounded, { timeout: connectMs }));
    } catch (error) {
      this.#ended ??= this.#connectFailure(error, connectMs);
    } finally {
      signal?.removeEventListener("abort", stop);
    }
    if (this.#ended) {
      await this.#discard();
      throw new ConnectError(this.explain(name, this.#ended), this.#ended);
    }
    this.#isOpen = true;
    this.#client.setNotificationHandler(ToolListChangedNotificationSchema, () => this.#hearNews());
  }

  /** Soon, but not again and again: each news is a list to be read, and perhaps to be stored. */
  #hearNews(): void {
    const pause = Math.max(LIST_DEBOUNCE_MS, this.#toldAt + LIST_PAUSE_MS - performance.now());
    this.#news ??= setTimeout(() => {
      this.#news = undefined;
      this.#toldAt = performance.now();
      if (!this.#ended) this.#events.onToolsChanged();
    }, pause);
  }

  get isOpen(): boolean {
    return this.#isOpen && this.#ended === undefined;
  }

  /** All tools that the server lists. Throws what {@link failureOf} reads. */
  async list(): Promise<ListedTool[]> {
    if (!this.#client.getServerCapabilities()?.tools) return [];
    const tools: ListedTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < LIST_PAGES && tools.length < TOOLS_LIMIT; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const result = await this.#client.request({ method: "tools/list", params }, ListToolsResultSchema, {
        timeout: LIST_TIMEOUT_MS,
      });
      tools.push(...(result.tools as ListedTool[]));
      cursor = result.nextCursor;
      if (cursor === undefined) break;
    }
    return tools.slice(0, TOOLS_LIMIT);
  }

  /** Throws the signal's reason when it is aborted, and otherwise what {@link failureOf} reads. */
  async call(name: string, args: Record<string, unknown>, options: CallOptions): Promise<CallToolResult> {
    const { signal, onProgress } = options;
    // The SDK would take a later abort for one of this call.
    const controller = new AbortController();
    const stop = () => controller.abort("The call was cancelled.");
    signal.throwIfAborted();
    signal.addEventListener("abort", stop, { once: true });
    try {
      const result = await this.#client.request(
        { method: "tools/call", params: { name, arguments: args } },
        CallToolResultSchema,
        {
          signal: controller.signal,
          timeout: this.#callMs,
          resetTimeoutOnProgress: true,
          maxTotalTimeout: LONGEST_CALL_MS,
          onprogress: onProgress,
        },
      );
      return this.#redaction.clean(result);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** What a failure of this connection is, told by its end where it has ended. */
  failureOf(error: unknown): Failure {
    const failure = failureOf(error);
    const closed = error instanceof McpError && error.code === ErrorCode.ConnectionClosed;
    if (closed && this.#ended) return this.#ended;
    // Without a session there is none to be forgotten: what was not found is something else.
    if (failure.kind === "forgotten" && !this.#transport.http?.sessionId)
      return { kind: "refused", words: failure.words, isOfCall: true };
    return failure;
  }

  /** A sentence for people and models, with the last words of a program that has ended. */
  explain(name: string, { words }: Failure): string {
    const errors = this.#ended ? plainText(this.#transport.stdio?.stderr() ?? "", STDERR_LIMIT).trim() : "";
    const sentence = `The MCP server ${name} ${words}.`;
    return this.#redaction.clean(errors === "" ? sentence : `${sentence} Its last words:\n${errors}`);
  }

  /** Says goodbye where the protocol has one, and lets go. */
  async close(): Promise<void> {
    this.#ended ??= { kind: "lost", words: "was disconnected" };
    const { http } = this.#transport;
    const goodbye = http?.sessionId ? http.terminateSession() : undefined;
    if (goodbye) await within(GOODBYE_MS, goodbye).catch(() => {});
    await this.#discard();
  }

  #connectFailure(error: unknown, connectMs: number): Failure {
    const failure = failureOf(error);
    if (this.#transport.stdio?.reason !== undefined)
      return { kind: "lost", words: this.#transport.stdio.reason };
    if (error instanceof TimeUp || failure.kind === "timeout")
      return { kind: "timeout", words: `did not answer within ${Math.ceil(connectMs / 1000)} s` };
    return failure;
  }

  #end(failure: Failure): void {
    if (this.#ended) return;
    this.#ended = failure;
    void this.#discard();
    if (this.#isOpen) this.#events.onClosed(failure);
  }

  async #discard(): Promise<void> {
    clearTimeout(this.#news);
    await this.#client.close().catch(() => {});
    await this.#transport.bounded.close().catch(() => {});
  }
}

class TimeUp extends Error {}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeUp("It took too long.")), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => {});
  }
}

function redactionOf(secrets: McpSecrets): Redaction {
  const redaction = createRedaction();
  for (const word of secretWords(secrets)) redaction.hold(word);
  return redaction;
}
