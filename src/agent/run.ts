/** The loop: model, tools, model again, until the turn ends, goes back to the client or meets a limit. */
import type { AgentEvent, ModelEvent, RunOutcome } from "../core/event.ts";
import { Fold } from "../core/fold.ts";
import { createId } from "../core/id.ts";
import {
  type AssistantMessage,
  addUsage,
  type CallPart,
  callsOf,
  type Message,
  type StopReason,
  type ToolResultMessage,
  text,
  type Usage,
} from "../core/message.ts";
import type { ModelAdapter, ModelRequest } from "../core/model.ts";
import type { Log } from "../core/platform.ts";
import { type Tool, type ToolContext, toolSpec } from "../core/tool.ts";
import { type Fault, toFault } from "../errors.ts";
import { replayedCallIds } from "./handed-back.ts";
import { LimitWatch, type RunLimits } from "./limits.ts";
import type { Policy } from "./policy.ts";
import { runTools } from "./tool-batch.ts";
import { trimHistory } from "./trim.ts";

export interface RunInput {
  adapter: ModelAdapter;
  /** History included, with the client's tools only. */
  request: ModelRequest;
  /** The agent's own tools, by name. */
  tools: ReadonlyMap<string, Tool>;
  policy: Policy;
  limits: RunLimits;
  /** Tokens of the model's window; undefined where it is not known. */
  window: number | undefined;
  context: Omit<ToolContext, "callId" | "signal" | "progress">;
  log: Log;
  /** Called with what each step added to the history, before the events that tell of it end. May throw: the run fails. */
  record(messages: Message[]): Promise<void>;
  /** Called before a run is handed back, with all messages that it made. */
  handBack(messages: Message[], calls: CallPart[]): Promise<void>;
  /** Called once when the run is over, however that came about. Must not throw. */
  finished(summary: { outcome: RunOutcome; steps: number; usage: Usage }): void;
}

interface Ending {
  outcome: RunOutcome;
  stop: StopReason;
  fault?: Fault | undefined;
  stopSequence?: string | undefined;
  extra?: Extract<ModelEvent, { type: "done" }>["extra"];
}

/** One run; see {@link AgentEvent} for the order that it keeps. `signal` cancels it, tools included. */
export function run(input: RunInput, signal: AbortSignal): AsyncGenerator<AgentEvent, void, void> {
  return new Run(input, new Clock(input.limits.timeoutMs, signal)).events();
}

/** Made once: without a reason every abort makes an exception with its stack, which is dear for something that no one reads. */
const OVER = new DOMException("The run is over.", "AbortError");

/** The run's own signal: aborted by the caller, by the end of the run, or when its time is over. */
class Clock {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #ms: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #abort = () => this.#controller.abort(OVER);
  timedOut = false;

  constructor(ms: number, caller: AbortSignal) {
    this.#caller = caller;
    this.#ms = ms;
  }

  start(): void {
    if (this.#caller.aborted) this.#abort();
    else this.#caller.addEventListener("abort", this.#abort, { once: true });
    this.#timer = setTimeout(() => {
      this.timedOut = true;
      this.#abort();
    }, this.#ms);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#caller.removeEventListener("abort", this.#abort);
    this.#abort();
  }
}

class Run {
  readonly #input: RunInput;
  readonly #clock: Clock;
  readonly #watch: LimitWatch;
  /** Everything that the run has added behind `request.messages`. */
  readonly #made: Message[] = [];
  readonly #ids: Set<string>;
  #usage: Usage = { input: 0, output: 0 };
  #step = 0;
  /** Model calls made. */
  #steps = 0;
  /** Until it closes: a consumer that goes away has stopped it. */
  #outcome: RunOutcome = "stopped";

  constructor(input: RunInput, clock: Clock) {
    this.#input = input;
    this.#clock = clock;
    this.#watch = new LimitWatch(input.limits);
    this.#ids = new Set(replayedCallIds(input.request.messages));
  }

  async *events(): AsyncGenerator<AgentEvent, void, void> {
    const { adapter, request, context } = this.#input;
    this.#clock.start();
    yield {
      type: "run-open",
      runId: context.runId,
      provider: adapter.provider,
      model: request.model,
      sessionId: context.sessionId,
    };
    try {
      for (; ; this.#step++) {
        const ending = yield* this.#oneStep();
        if (ending) return yield this.#close(ending);
      }
    } catch (error) {
      yield this.#close(this.#failed(this.#faultOf(error)));
    } finally {
      this.#clock.stop();
      this.#input.finished({ outcome: this.#outcome, steps: this.#steps, usage: this.#usage });
    }
  }

  /** One model call and its tools. Returns how the run ends, or undefined when it goes on. */
  async *#oneStep(): AsyncGenerator<AgentEvent, Ending | undefined, void> {
    const { adapter } = this.#input;
    const limit = this.#watch.beforeStep(this.#step, this.#usage);
    if (limit) return yield* this.#giveUp(limit);

    this.#steps++;
    const fold = new Fold({ provider: adapter.provider, model: this.#input.request.model });
    const server = new Set<number>();
    const open = new Set<number>();
    let done: Extract<ModelEvent, { type: "done" }> | undefined;
    for await (let event of adapter.stream(this.#request(), this.#clock.signal)) {
      if (event.type === "failed") {
        if (this.#clock.timedOut) return yield* this.#timedOut(fold, open);
        await this.#record(spoken(fold.message));
        return this.#failed(event.fault);
      }
      if (event.type === "part-open") {
        open.add(event.index);
        const { part } = event;
        if (part.kind === "call") {
          event = { ...event, part: { ...part, id: this.#uniqueId(part.id) } };
          if (!this.#isClients(part.name)) server.add(event.index);
        }
      } else if (event.type === "part-close") {
        open.delete(event.index);
      } else if (event.type === "done") {
        done = event;
      }
      fold.push(event);
      yield "index" in event && server.has(event.index)
        ? { type: "model", step: this.#step, event, server: true }
        : { type: "model", step: this.#step, event };
    }
    if (!done) throw new Error("an adapter's stream ended without done or failed");
    this.#usage = addUsage(this.#usage, done.usage);
    return yield* this.#act(fold.message, done);
  }

  /** What follows from a finished model reply. */
  async *#act(
    message: AssistantMessage,
    { stop, stopSequence, extra }: Extract<ModelEvent, { type: "done" }>,
  ): AsyncGenerator<AgentEvent, Ending | undefined, void> {
    const calls = callsOf(message);
    if (calls.length === 0) {
      await this.#record([message]);
      return { outcome: "completed", stop, stopSequence, extra };
    }
    const mine = calls.filter((call) => !this.#isClients(call.name));
    const theirs = calls.filter((call) => this.#isClients(call.name));
    if (stop === "length" && (theirs.length > 0 || this.#input.request.settings.maxTokens !== undefined)) {
      await this.#record([message, ...notRun(mine, "the reply was cut off at its output limit")]);
      return { outcome: "completed", stop, extra };
    }
    const limit = this.#watch.beforeCalls(mine);
    if (limit) {
      await this.#record([message, ...notRun(calls, "the same call was made too often in a row")]);
      return yield* this.#giveUp(limit);
    }
    const results =
      stop === "length"
        ? notRun(mine, "your reply was cut off before the arguments were complete; write less at once")
        : yield* this.#runCalls(mine);
    if (this.#clock.signal.aborted) {
      await this.#record([message, ...results, ...notRun(theirs, "the run was stopped")]);
      if (this.#clock.timedOut) return yield* this.#giveUp(this.#watch.timeout());
      return this.#failed({ code: "cancelled", message: "The request was cancelled.", status: 499 });
    }
    await this.#record([message, ...results]);
    if (theirs.length === 0) return undefined;
    await this.#input.handBack(this.#made, theirs);
    return { outcome: "handed-back", stop: "tool-calls", extra };
  }

  async *#runCalls(calls: CallPart[]): AsyncGenerator<AgentEvent, ToolResultMessage[], void> {
    if (calls.length === 0) return [];
    const { tools, policy, context, log } = this.#input;
    return yield* runTools({ step: this.#step, calls, tools, policy, context, log }, this.#clock.signal);
  }

  /** A call is the agent's own when it names one of its tools, or nothing that anybody has while the agent has tools. */
  #isClients(name: string): boolean {
    const { tools, request } = this.#input;
    if (tools.has(name)) return false;
    return tools.size === 0 || request.tools.some((tool) => tool.name === name);
  }

  #request(): ModelRequest {
    const { request, tools, window } = this.#input;
    const next: ModelRequest = {
      ...request,
      tools: tools.size === 0 ? request.tools : [...[...tools.values()].map(toolSpec), ...request.tools],
      messages: this.#made.length === 0 ? request.messages : [...request.messages, ...this.#made],
    };
    const { messages, dropped } = trimHistory(next, window);
    if (dropped > 0) {
      next.messages = messages;
      this.#usage = addUsage(this.#usage, { input: 0, output: 0, trimmedMessages: dropped });
    }
    return next;
  }

  /** Some servers number calls anew in each reply (`call_0`), or forget the id. */
  #uniqueId(id: string): string {
    const unique = id === "" || this.#ids.has(id) ? createId("call") : id;
    this.#ids.add(unique);
    return unique;
  }

  async #record(messages: Message[]): Promise<void> {
    this.#made.push(...messages);
    if (messages.length > 0) await this.#input.record(messages);
  }

  async *#timedOut(fold: Fold, open: Set<number>): AsyncGenerator<AgentEvent, Ending, void> {
    for (const index of open) yield { type: "model", step: this.#step, event: { type: "part-close", index } };
    await this.#record(spoken(fold.message));
    return yield* this.#giveUp(this.#watch.timeout());
  }

  /** Ends the turn with the reason as the assistant's last words, so that every client shows it. */
  async *#giveUp(reason: string): AsyncGenerator<AgentEvent, Ending, void> {
    const step = ++this.#step;
    yield { type: "model", step, event: { type: "part-open", index: 0, part: { kind: "text" } } };
    yield { type: "model", step, event: { type: "part-delta", index: 0, delta: reason } };
    yield { type: "model", step, event: { type: "part-close", index: 0 } };
    await this.#record([{ role: "assistant", content: [text(reason)], stop: "length" }]);
    return {
      outcome: "completed",
      stop: "length",
      fault: { code: "limit_reached", message: reason, status: 500 },
    };
  }

  #failed(fault: Fault): Ending {
    return { outcome: fault.code === "cancelled" ? "stopped" : "failed", stop: "stop", fault };
  }

  #faultOf(error: unknown): Fault {
    const fault = toFault(error);
    if (fault.code === "internal")
      this.#input.log("error", "run failed", {
        run_id: this.#input.context.runId,
        error: String((error as Error)?.stack),
      });
    return fault;
  }

  #close(ending: Ending): AgentEvent {
    this.#outcome = ending.outcome;
    return { type: "run-close", usage: this.#usage, ...ending };
  }
}

/** What had been said when a stream broke, without calls that were never finished. */
function spoken(message: AssistantMessage): Message[] {
  const content = message.content.filter((part) => part?.type === "text" && part.text !== "");
  return content.length === 0 ? [] : [{ ...message, content }];
}

function notRun(calls: CallPart[], reason: string): ToolResultMessage[] {
  return calls.map(({ id, name }) => ({
    role: "tool",
    callId: id,
    name,
    content: [text(`Not run: ${reason}.`)],
    failed: true,
  }));
}
