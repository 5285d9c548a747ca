/** The conversation as a run has it: what stood before the run, what the run has added, and what of it a model call gets. */
import { createId } from "../core/id.ts";
import type { Message } from "../core/message.ts";
import type { ModelRequest } from "../core/model.ts";
import { toolSpec } from "../core/tool.ts";
import type { Compacted } from "./compaction.ts";
import { messageTokens } from "./estimate.ts";
import { replayedCallIds } from "./handed-back.ts";
import { hasOutside, markOutside } from "./outside.ts";
import type { RunInput } from "./run-input.ts";
import { trimHistory } from "./trim.ts";

export class RunHistory {
  readonly #input: RunInput;
  #summary: Message | undefined;
  /** What stood before the run, behind the summary. */
  #base: Message[];
  /** Everything that the run has added. */
  readonly made: Message[] = [];
  readonly #ids: Set<string>;

  constructor(input: RunInput) {
    const { messages } = input.request;
    const made = input.resume?.made ?? [];
    this.#input = input;
    this.#summary = input.summary;
    this.#ids = new Set(replayedCallIds(messages));
    this.#base = made.length > 0 ? messages.slice(0, messages.length - made.length) : messages;
    this.made.push(...made);
  }

  /** The next commit stores them. */
  add(added: Message[]): void {
    const { agent } = this.#input;
    const signed = (message: Message) => (message.role === "assistant" ? { ...message, agent } : message);
    const messages = agent === undefined ? added : added.map(signed);
    this.made.push(...messages);
    this.#input.journal.add(messages);
  }

  /** Some servers number calls anew in each reply (`call_0`), or forget the id. */
  uniqueId(id: string): string {
    const unique = id === "" || this.#ids.has(id) || this.#input.delegated ? createId("call") : id;
    this.#ids.add(unique);
    return unique;
  }

  /** Whether the model has content from outside before it (E4). A summary may hold words of what it stands for, whoever they came from. */
  readonly outside = (): boolean => {
    const { tools, delegated } = this.#input;
    if (delegated?.outside || this.#summary !== undefined) return true;
    return hasOutside(this.#base, tools) || hasOutside(this.made, tools);
  };

  /** What the next model call is given, and how many messages had to be left out for want of room. */
  request(): { request: ModelRequest; dropped: number } {
    const { window } = this.#input;
    const summary = this.#summary;
    const request = this.#wanted();
    const { messages, dropped } = trimHistory(request, window, summary ? messageTokens(summary) : 0);
    const marked = markOutside(messages);
    request.messages = summary ? [summary, ...marked] : marked;
    return { request, dropped };
  }

  /** Makes room for it. `spare`: tokens that may be spent on that. null: there was no need. */
  async compact(spare: number, signal: AbortSignal): Promise<Compacted | null> {
    const history = { request: this.#wanted(), base: this.#base, made: this.made, spare };
    const compacted = (await this.#input.compaction?.(history, signal)) ?? null;
    if (compacted?.done) {
      this.#summary = compacted.done.summary;
      this.#base = this.#base.slice(compacted.done.messages);
    }
    return compacted;
  }

  /** What the next model call would be if there were room for everything; without the summary. */
  #wanted(): ModelRequest {
    const { request, tools } = this.#input;
    return {
      ...request,
      tools: tools.size === 0 ? request.tools : [...[...tools.values()].map(toolSpec), ...request.tools],
      messages: this.made.length === 0 ? this.#base : [...this.#base, ...this.made],
    };
  }
}
