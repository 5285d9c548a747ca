/** MCP over the standard streams of a program that the platform has started. */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { type JSONRPCMessage, JSONRPCMessageSchema } from "@modelcontextprotocol/sdk/types.js";
import type { StdioConnector, StdioProcess } from "../core/platform.ts";
import { MESSAGE_BYTES } from "./limits.ts";

export interface StdioOptions {
  command: string;
  args: string[];
  env: Record<string, string>;
  /** A message was too long. `id` of the request that it answers, where its ends tell. */
  onTooLong(id: number | undefined): void;
}

/** Where JSON writers put the id: in front of the result, or behind it. */
const ID_IN_FRONT = /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,/;
const ID_BEHIND = /,\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #connector: StdioConnector;
  readonly #options: StdioOptions;
  #program: StdioProcess | undefined;
  #reason: string | undefined;

  constructor(connector: StdioConnector, options: StdioOptions) {
    this.#connector = connector;
    this.#options = options;
  }

  async start(): Promise<void> {
    const { command, args, env, onTooLong } = this.#options;
    this.#program = this.#connector.open(
      { command, args, env, maxLineBytes: MESSAGE_BYTES },
      {
        onLine: (line) => this.#receive(line),
        onLongLine: (head, tail) => onTooLong(idOf(head, tail)),
        onClose: (reason) => {
          this.#reason ??= reason;
          this.onclose?.();
        },
      },
    );
  }

  /** Why the program ended, while it has not been closed from here. */
  get reason(): string | undefined {
    return this.#reason;
  }

  stderr(): string {
    return this.#program?.stderr() ?? "";
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (!this.#program) throw new Error("Not started.");
    await this.#program.write(JSON.stringify(message));
  }

  async close(): Promise<void> {
    await this.#program?.close();
  }

  #receive(line: string): void {
    if (line.trim() === "") return;
    let message: JSONRPCMessage;
    try {
      message = JSONRPCMessageSchema.parse(JSON.parse(line));
    } catch (error) {
      this.onerror?.(error as Error);
      return;
    }
    this.onmessage?.(message);
  }
}

function idOf(head: string, tail: string): number | undefined {
  const found = ID_IN_FRONT.exec(head) ?? ID_BEHIND.exec(tail);
  return found ? Number(found[1]) : undefined;
}
