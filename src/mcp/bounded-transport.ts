/**
 * A transport of the SDK with bounds: what a server sends unasked is rationed, what is none of the protocol's is counted, and
 * a request whose answer cannot come any more fails at once instead of when its time is over.
 */
import type { Transport, TransportSendOptions } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage, MessageExtraInfo, RequestId } from "@modelcontextprotocol/sdk/types.js";
import { LOST } from "./faults.ts";
import { MALFORMED_LIMIT, UNASKED_BURST, UNASKED_DROPPED, UNASKED_PER_SECOND } from "./limits.ts";

export interface Bounds {
  /** Milliseconds that only grow. */
  clock(): number;
  /** A request was given up; whatever still carries it can go. */
  onGivenUp?(id: RequestId): void;
  /** The connection has done something that ends it. */
  onAbuse(words: string): void;
}

export class BoundedTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: <T extends JSONRPCMessage>(message: T, extra?: MessageExtraInfo) => void;
  readonly #inner: Transport;
  readonly #bounds: Bounds;
  readonly #pending = new Set<RequestId>();
  #allowance = UNASKED_BURST;
  #filledAt: number;
  #dropped = 0;
  #malformed = 0;
  #closed = false;

  constructor(inner: Transport, bounds: Bounds) {
    this.#inner = inner;
    this.#bounds = bounds;
    this.#filledAt = bounds.clock();
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion = (version: string): void => this.#inner.setProtocolVersion?.(version);

  start(): Promise<void> {
    this.#inner.onmessage = (message, extra) => this.#receive(message, extra);
    this.#inner.onerror = (error) => this.#fail(error);
    this.#inner.onclose = () => this.#end();
    return this.#inner.start();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const id = "method" in message && "id" in message ? message.id : undefined;
    if (id !== undefined) this.#pending.add(id);
    if ("method" in message && message.method === "notifications/cancelled") {
      const given = message.params?.requestId as RequestId;
      this.#pending.delete(given);
      // It is told first, since what carries the request may be all that it hears of it.
      await this.#inner.send(message, options).finally(() => this.#bounds.onGivenUp?.(given));
      return;
    }
    try {
      await this.#inner.send(message, options);
    } catch (error) {
      if (id !== undefined) this.#pending.delete(id);
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#inner.close();
    this.#end();
  }

  isPending(id: RequestId): boolean {
    return this.#pending.has(id);
  }

  /** The only request under way, if there is just one. */
  onlyPending(): RequestId | undefined {
    return this.#pending.size === 1 ? [...this.#pending][0] : undefined;
  }

  /** The answer to a request will not come. */
  lose(id: RequestId, words: string, code = LOST): void {
    if (!this.#pending.delete(id)) return;
    this.onmessage?.({ jsonrpc: "2.0", id, error: { code, message: words } });
  }

  #receive(message: JSONRPCMessage, extra?: MessageExtraInfo): void {
    if (this.#closed) return;
    const answers = !("method" in message) && message.id !== undefined && this.#pending.delete(message.id);
    if (answers || this.#admit()) this.onmessage?.(message, extra);
  }

  #admit(): boolean {
    const now = this.#bounds.clock();
    const filled = this.#allowance + ((now - this.#filledAt) / 1000) * UNASKED_PER_SECOND;
    this.#allowance = Math.min(UNASKED_BURST, filled);
    this.#filledAt = now;
    if (this.#allowance >= 1) {
      this.#allowance -= 1;
      return true;
    }
    this.#dropped += 1;
    if (this.#dropped === UNASKED_DROPPED) this.#bounds.onAbuse("flooded the connection with messages");
    return false;
  }

  #fail(error: Error): void {
    if (this.#closed) return;
    if (error.name === "ZodError" || error.name === "$ZodError" || error.name === "SyntaxError") {
      this.#malformed += 1;
      if (this.#malformed === MALFORMED_LIMIT) this.#bounds.onAbuse("sends what is not of the protocol");
    }
    this.onerror?.(error);
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.onclose?.();
  }
}
