/**
 * Calls of tools of servers. A call is sent once: it is sent again only where the server has said, or nobody was there to
 * say, that nothing was done the first time. All else that goes wrong is told, and whether it had an effect is left open.
 */
import type { Progress } from "@modelcontextprotocol/sdk/types.js";
import type { ToolContext, ToolOutput } from "../core/tool.ts";
import type { Connection, ConnectionEvents } from "./connection.ts";
import type { Failure } from "./faults.ts";
import type { ToolRef } from "./mcp-tools.ts";
import { plainText } from "./plain-text.ts";

/** Characters of a progress message. */
const PROGRESS_LIMIT = 500;

export interface CallHost {
  /** Whether connections outlive the calls that need them. */
  staysConnected: boolean;
  /** Throws an Error with a sentence. */
  connection(ref: ToolRef, events: ConnectionEvents): Promise<Connection>;
  /** The connection is of no more use. */
  renew(ref: ToolRef, connection: Connection): Promise<void>;
  /** Whether this version of the tool is still the approved one, and what the server has. */
  isOffered(ref: ToolRef): boolean;
  background(work: Promise<unknown>): void;
}

export class McpCalls {
  readonly #host: CallHost;
  /** Connections that end with the calls of a turn, by the signal that tells their end. */
  readonly #ofTurns = new WeakMap<AbortSignal, Map<string, Promise<Connection>>>();

  constructor(host: CallHost) {
    this.#host = host;
  }

  /** Throws the signal's reason when it is aborted. */
  async run(ref: ToolRef, args: Record<string, unknown>, context: ToolContext): Promise<ToolOutput> {
    const { signal } = context;
    for (let attempt = 1; ; attempt++) {
      let connection: Connection;
      try {
        connection = await unlessAborted(this.#connection(ref, signal), signal);
      } catch (error) {
        signal.throwIfAborted();
        return failed(`Not run: ${(error as Error).message}`);
      }
      if (!this.#host.isOffered(ref)) return failed(heldBack(ref));
      try {
        const result = await connection.call(ref.name, args, { signal, onProgress: teller(context) });
        return await toOutput(ref, result);
      } catch (error) {
        signal.throwIfAborted();
        const failure = connection.failureOf(error);
        const undone = failure.kind === "refused" || failure.kind === "forgotten";
        const isSpent = failure.kind !== "answered" && failure.kind !== "timeout" && !failure.isOfCall;
        if (isSpent) await this.#leave(ref, connection, signal);
        if (undone && attempt === 1 && failure.isTransient) continue;
        return failed(connection.explain(ref.serverId, failure) + consequence(failure));
      }
    }
  }

  #connection(ref: ToolRef, signal: AbortSignal): Promise<Connection> {
    if (this.#host.staysConnected) return this.#host.connection(ref, NO_EVENTS);
    let ofTurn = this.#ofTurns.get(signal);
    if (!ofTurn) {
      const opened = new Map<string, Promise<Connection>>();
      ofTurn = opened;
      this.#ofTurns.set(signal, ofTurn);
      const close = () =>
        this.#host.background(
          Promise.allSettled([...opened.values()].map((open) => open.then((one) => one.close()))),
        );
      signal.addEventListener("abort", close, { once: true });
    }
    let open = ofTurn.get(ref.serverId);
    if (!open) {
      open = this.#host.connection(ref, NO_EVENTS);
      ofTurn.set(ref.serverId, open);
      open.catch(() => ofTurn.delete(ref.serverId));
    }
    return open;
  }

  async #leave(ref: ToolRef, connection: Connection, signal: AbortSignal): Promise<void> {
    if (this.#host.staysConnected) return this.#host.renew(ref, connection);
    this.#ofTurns.get(signal)?.delete(ref.serverId);
    await connection.close();
  }
}

const NO_EVENTS: ConnectionEvents = { onToolsChanged() {}, onClosed() {} };

async function toOutput(ref: ToolRef, result: Awaited<ReturnType<Connection["call"]>>): Promise<ToolOutput> {
  const { toOutput, withProblem } = await import("./result.ts");
  const { outputSchema } = ref.definition;
  if (result.isError || !outputSchema) return toOutput(result);
  if (result.structuredContent === undefined)
    return withProblem(toOutput(result), "the structured result that the tool has promised is missing");
  const { outputProblem } = await import("./output-schema.ts");
  const problem = outputProblem(outputSchema, result.structuredContent);
  return problem === null
    ? toOutput(result)
    : withProblem(toOutput(result), `the result is not what the tool has promised (${problem})`);
}

function failed(sentence: string): ToolOutput {
  return { content: [{ type: "text", text: sentence }], failed: true };
}

function heldBack({ name, serverId }: ToolRef): string {
  return `Not run: the server ${serverId} has changed its tool ${plainText(name, 80)}, or has it no longer. Tell the user: POST /api/mcp/servers/${serverId}/approve allows the new definition.`;
}

function consequence({ kind }: Failure): string {
  if (kind === "unauthorized") return " Nothing was done. Tell the user to authorize the server again.";
  if (kind === "refused" || kind === "forgotten") return " Nothing was done.";
  if (kind === "answered") return "";
  return " The call had been sent: whether it had an effect is unknown. It is not repeated; check before you do it again.";
}

/** What a server says while it works, a line each. */
function teller({ progress }: ToolContext): (progress: Progress) => void {
  return ({ progress: done, total, message }) => {
    const share = total === undefined ? String(done) : `${done} of ${total}`;
    const said = message === undefined ? "" : plainText(message, PROGRESS_LIMIT);
    progress(`${said === "" ? share : `${share}: ${said}`}\n`);
  };
}

/** A wait that nobody needs any more is left, whatever it waits for. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
