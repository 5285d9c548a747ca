/** The loop: model, tools, model again, until the turn ends, goes back to the client or meets a limit. */
import type { AgentEvent, ModelEvent, PendingCall, RunOutcome } from "../core/event.ts";
import { Fold } from "../core/fold.ts";
import { createId } from "../core/id.ts";
import {
  type AssistantMessage,
  addUsage,
  type CallPart,
  callsOf,
  type Message,
  type StopReason,
  text,
  type Usage,
} from "../core/message.ts";
import type { ModelAdapter, ModelRequest } from "../core/model.ts";
import type { Log } from "../core/platform.ts";
import { isCommand, previewsOf } from "../core/preview.ts";
import type { CallRecord } from "../core/run.ts";
import type { Spending } from "../core/swarm.ts";
import { type Tool, type ToolContext, toolSpec } from "../core/tool.ts";
import { type Fault, toFault } from "../errors.ts";
import { approvalText, createCode, hashCode } from "./approval-code.ts";
import type { Compaction } from "./compaction.ts";
import { messageTokens } from "./estimate.ts";
import { replayedCallIds } from "./handed-back.ts";
import type { Journal } from "./journal.ts";
import { judgeCalls, notRun, REFUSALS } from "./judge.ts";
import { LimitWatch, type RunLimits } from "./limits.ts";
import { hasOutside, markOutside } from "./outside.ts";
import type { Policy } from "./policy.ts";
import { groupCalls, runTools } from "./tool-batch.ts";
import { trimHistory } from "./trim.ts";

export interface RunInput {
  adapter: ModelAdapter;
  /** History included, with the client's tools only. */
  request: ModelRequest;
  /** The agent's own tools, by name. */
  tools: ReadonlyMap<string, Tool>;
  policy: Policy;
  /** What happens to a call that policy wants asked. `text`: as `person`, in words that any chat can show and answer. */
  asking: "person" | "text" | "nobody" | "allow";
  limits: RunLimits;
  /** Tokens of the model's window; undefined where it is not known. */
  window: number | undefined;
  /** Stands in front of the history, for what came before it; never left out. */
  summary?: Message | undefined;
  /** Makes room before a model call; without it, or when it cannot, the history's oldest part is left out. */
  compaction?: Compaction | undefined;
  context: Omit<ToolContext, "callId" | "signal" | "progress" | "show">;
  /** It belongs to a swarm: what all of its runs have used, for the budget. */
  spending?: Spending | undefined;
  /** The named agent, as its messages say. */
  agent?: string | undefined;
  /** Another run's words begin it: the ids of calls are told apart from those of others, and what it is told may come from outside. */
  delegated?: { outside: boolean } | undefined;
  log: Log;
  now(): Date;
  journal: Journal;
  /** Called before a run is handed back, with all messages that it made. */
  handBack(messages: Message[], calls: CallPart[]): Promise<void>;
  /** A run that was parked or interrupted goes on. */
  resume?: Resume | undefined;
}

export interface Resume {
  /** The calls of the last message of the history, where it has any without results. */
  calls: CallRecord[];
  /** What the run had made before; the tail of `request.messages`. */
  made: Message[];
  /** Whether readers have had the result of a call. */
  isShown(callId: string): boolean;
  steps: number;
  usage: Usage;
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
  #summary: Message | undefined;
  /** What stood before the run, behind the summary. */
  #base: Message[];
  /** Everything that the run has added. */
  readonly #made: Message[] = [];
  readonly #ids: Set<string>;
  #usage: Usage = { input: 0, output: 0 };
  #step = 0;
  /** Model calls made. */
  #steps = 0;

  constructor(input: RunInput, clock: Clock) {
    this.#input = input;
    this.#clock = clock;
    this.#watch = new LimitWatch(input.limits);
    this.#ids = new Set(replayedCallIds(input.request.messages));
    this.#summary = input.summary;
    if (input.resume) {
      const { made, steps, usage } = input.resume;
      this.#base = input.request.messages.slice(0, input.request.messages.length - made.length);
      this.#made.push(...made);
      this.#steps = steps;
      this.#step = Math.max(0, steps - 1);
      this.#usage = usage;
    } else {
      this.#base = input.request.messages;
    }
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
      let ending = yield* this.#resumed();
      while (!ending) {
        ending = yield* this.#oneStep();
        this.#step++;
      }
      yield this.#close(ending);
    } catch (error) {
      yield this.#close(this.#failed(this.#faultOf(error)));
    } finally {
      this.#clock.stop();
    }
  }

  /** One model call and its tools. Returns how the run ends, or undefined when it goes on. */
  async *#oneStep(): AsyncGenerator<AgentEvent, Ending | undefined, void> {
    const { adapter } = this.#input;
    const limit = this.#watch.beforeStep(this.#steps, this.#tokens);
    if (limit) return yield* this.#giveUp(limit);
    yield* this.#makeRoom();

    this.#steps++;
    const fold = new Fold({ provider: adapter.provider, model: this.#input.request.model });
    const server = new Set<number>();
    const open = new Set<number>();
    let done: Extract<ModelEvent, { type: "done" }> | undefined;
    for await (let event of adapter.stream(this.#request(), this.#clock.signal)) {
      if (event.type === "failed") {
        if (this.#clock.timedOut) return yield* this.#timedOut(fold, open);
        this.#add(spoken(fold.message));
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
    this.#spend(done.usage);
    return yield* this.#act(fold.message, done);
  }

  async *#makeRoom(): AsyncGenerator<AgentEvent, void, void> {
    const { compaction, limits } = this.#input;
    if (!compaction) return;
    const spare = limits.tokenBudget - this.#tokens;
    const history = { request: this.#wanted(), base: this.#base, made: this.#made, spare };
    const compacted = await compaction(history, this.#clock.signal);
    if (!compacted) return;
    this.#spend(compacted.usage);
    if (!compacted.done) return;
    const { summary, messages, tokensBefore, tokensAfter } = compacted.done;
    this.#summary = summary;
    this.#base = this.#base.slice(messages);
    yield { type: "compacted", step: this.#step, messages, tokensBefore, tokensAfter };
  }

  /** What follows from a finished model reply. */
  async *#act(
    message: AssistantMessage,
    { stop, stopSequence, extra }: Extract<ModelEvent, { type: "done" }>,
  ): AsyncGenerator<AgentEvent, Ending | undefined, void> {
    const calls = callsOf(message);
    if (calls.length === 0) {
      this.#add([message]);
      return { outcome: "completed", stop, stopSequence, extra };
    }
    const mine = calls.filter((call) => !this.#isClients(call.name));
    const theirs = calls.filter((call) => this.#isClients(call.name));
    if (stop === "length" && (theirs.length > 0 || this.#input.request.settings.maxTokens !== undefined)) {
      this.#add([message, ...mine.map((call) => notRun(call, CUT_OFF))]);
      return { outcome: "completed", stop, extra };
    }
    const limit = this.#watch.beforeCalls(mine);
    if (limit) {
      this.#add([message, ...calls.map((call) => notRun(call, `Not run: ${LOOPING}.`))]);
      return yield* this.#giveUp(limit);
    }
    this.#add([message]);
    if (stop === "length") {
      this.#add(mine.map((call) => notRun(call, CUT_OFF)));
      return undefined;
    }
    const ending = mine.length > 0 ? yield* this.#settle(this.#judged(mine, theirs.length > 0)) : undefined;
    if (ending || theirs.length === 0) return ending;
    await this.#input.handBack(this.#made, theirs);
    return { outcome: "handed-back", stop: "tool-calls", extra };
  }

  /** What was under way when the run was parked or interrupted. */
  async *#resumed(): AsyncGenerator<AgentEvent, Ending | undefined, void> {
    const { resume } = this.#input;
    if (!resume || resume.calls.length === 0) return undefined;
    const ending = yield* this.#settle(resume.calls);
    this.#step++;
    return ending;
  }

  /** A summary may hold words of what it stands for, whoever they came from. */
  readonly #outside = (): boolean => {
    const { tools, delegated } = this.#input;
    if (delegated?.outside || this.#summary !== undefined) return true;
    return hasOutside(this.#base, tools) || hasOutside(this.#made, tools);
  };

  #judged(calls: CallPart[], mixed: boolean): CallRecord[] {
    const { tools, policy, asking, context, now } = this.#input;
    return judgeCalls(calls, {
      runId: context.runId,
      sessionId: context.sessionId ?? "",
      step: this.#step,
      tools,
      policy,
      // A turn that also goes back to the client cannot wait for a person as well.
      asking: asking !== "person" && asking !== "text" ? asking : mixed ? "nobody" : "person",
      outside: this.#outside,
      now: now(),
    });
  }

  /** Runs what may run, waits for what must be asked, and passes on the results once all calls have one. */
  async *#settle(calls: CallRecord[]): AsyncGenerator<AgentEvent, Ending | undefined, void> {
    const { tools, context, log, resume } = this.#input;
    const isShown = (callId: string) => resume?.isShown(callId) === true;
    for (const call of calls) {
      const refusal = call.result === null ? REFUSALS[call.state] : undefined;
      if (refusal !== undefined) call.result = notRun(call, refusal);
    }
    const settled = calls.filter((call) => call.result !== null && !isShown(call.callId));
    const groups = groupCalls(calls.filter((call) => call.state === "allowed"));
    for (const call of groups[0] ?? []) call.state = "started";
    const pending = calls.filter((call) => call.state === "pending");
    const codes = this.#input.asking === "text" ? await giveCodes(pending) : [];
    await this.#commit(calls);
    for (const call of settled) yield ended(this.#step, call);
    const store = (changed: CallRecord[], shown?: AgentEvent) => this.#commit(changed, shown);
    const asked: PendingCall[] = [];
    const batch = {
      ...{ step: this.#step, tools, context: { ...context, outside: this.#outside }, log, store },
      // They count in the swarm's spending since they were used.
      spend: (usage: Usage) => {
        this.#usage = addUsage(this.#usage, usage);
      },
      park: (theirs: PendingCall[]) => void asked.push(...theirs),
    };
    yield* runTools(batch, groups, this.#clock.signal);
    if (this.#clock.signal.aborted) return yield* this.#interrupted(calls);
    if (pending.length + asked.length > 0) return yield* this.#park(pending, codes, asked);
    this.#add(calls.map((call) => call.result ?? notRun(call, LOST)));
    return undefined;
  }

  /** `theirs`: calls of members, which have codes already where codes are given. */
  async *#park(
    calls: CallRecord[],
    codes: string[],
    theirs: PendingCall[],
  ): AsyncGenerator<AgentEvent, Ending, void> {
    // What a command does depends on where it starts.
    const directory = calls.some(({ name }) => isCommand(name))
      ? await this.#input.context.workingDirectory?.read()
      : undefined;
    const previews = previewsOf(calls, directory ?? "");
    const own = calls.map(
      (call, i): PendingCall => ({
        id: call.callId,
        name: call.name,
        args: call.args,
        preview: previews[i] ?? "",
        risk: call.risk,
        expiresAt: call.expiresAt?.toISOString() ?? "",
        code: codes[i],
      }),
    );
    const asked = [...own, ...theirs];
    yield { type: "approval-needed", step: this.#step, calls: asked };
    const shown = asked.map(({ preview = "", code = "", agent }) => ({
      preview: agent === undefined ? preview : `# ${agent} asks:\n${preview}`,
      code,
    }));
    if (this.#input.asking === "text") yield* this.#say(approvalText(shown, asked[0]?.expiresAt ?? ""));
    return { outcome: "paused", stop: "stop" };
  }

  /** Stopped, or out of time, in the middle of its tools: every call gets a result, since the history must stay whole. */
  async *#interrupted(calls: CallRecord[]): AsyncGenerator<AgentEvent, Ending, void> {
    for (const call of calls) {
      if (call.result !== null) continue;
      call.state = call.state === "started" ? "unknown" : "cancelled";
      call.result = notRun(
        call,
        call.state === "unknown" ? (REFUSALS.unknown ?? LOST) : "Not run: the run was stopped.",
      );
    }
    this.#add(calls.map((call) => call.result ?? notRun(call, LOST)));
    await this.#commit(calls);
    if (this.#clock.timedOut) return yield* this.#giveUp(this.#watch.timeout());
    return this.#failed({ code: "cancelled", message: "The request was cancelled.", status: 499 });
  }

  /** A call is the agent's own when it names one of its tools, or nothing that anybody has while the agent has tools. */
  #isClients(name: string): boolean {
    const { tools, request } = this.#input;
    if (tools.has(name)) return false;
    return tools.size === 0 || request.tools.some((tool) => tool.name === name);
  }

  #request(): ModelRequest {
    const { window } = this.#input;
    const summary = this.#summary;
    const next = this.#wanted();
    const { messages, dropped } = trimHistory(next, window, summary ? messageTokens(summary) : 0);
    const marked = markOutside(messages);
    next.messages = summary ? [summary, ...marked] : marked;
    if (dropped > 0) this.#usage = addUsage(this.#usage, { input: 0, output: 0, trimmedMessages: dropped });
    return next;
  }

  /** What the next model call would be if there were room for everything; without the summary. */
  #wanted(): ModelRequest {
    const { request, tools } = this.#input;
    return {
      ...request,
      tools: tools.size === 0 ? request.tools : [...[...tools.values()].map(toolSpec), ...request.tools],
      messages: this.#made.length === 0 ? this.#base : [...this.#base, ...this.#made],
    };
  }

  /** Some servers number calls anew in each reply (`call_0`), or forget the id. */
  #uniqueId(id: string): string {
    const unique = id === "" || this.#ids.has(id) || this.#input.delegated ? createId("call") : id;
    this.#ids.add(unique);
    return unique;
  }

  /** Tokens that count for the budget. */
  get #tokens(): number {
    return this.#input.spending?.tokens ?? this.#usage.input + this.#usage.output;
  }

  #spend(usage: Usage): void {
    this.#usage = addUsage(this.#usage, usage);
    if (this.#input.spending) this.#input.spending.tokens += usage.input + usage.output;
  }

  #add(added: Message[]): void {
    const { agent } = this.#input;
    const signed = (message: Message) => (message.role === "assistant" ? { ...message, agent } : message);
    const messages = agent === undefined ? added : added.map(signed);
    this.#made.push(...messages);
    this.#input.journal.add(messages);
  }

  #commit(calls: CallRecord[], shown?: AgentEvent): Promise<void> {
    return this.#input.journal.commit({ calls, steps: this.#steps, usage: this.#usage, shown });
  }

  async *#timedOut(fold: Fold, open: Set<number>): AsyncGenerator<AgentEvent, Ending, void> {
    for (const index of open) yield { type: "model", step: this.#step, event: { type: "part-close", index } };
    this.#add(spoken(fold.message));
    return yield* this.#giveUp(this.#watch.timeout());
  }

  /** Words of the service's own, as a step of the assistant's. */
  async *#say(words: string): AsyncGenerator<AgentEvent, void, void> {
    const step = ++this.#step;
    yield { type: "model", step, event: { type: "part-open", index: 0, part: { kind: "text" } } };
    yield { type: "model", step, event: { type: "part-delta", index: 0, delta: words } };
    yield { type: "model", step, event: { type: "part-close", index: 0 } };
  }

  /** Ends the turn with the reason as the assistant's last words, so that every client shows it. */
  async *#giveUp(reason: string): AsyncGenerator<AgentEvent, Ending, void> {
    yield* this.#say(reason);
    this.#add([{ role: "assistant", content: [text(reason)], stop: "length" }]);
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
    return { type: "run-close", usage: this.#usage, ...ending };
  }
}

function ended(step: number, { callId, name, result }: CallRecord): AgentEvent {
  const output = result?.content ?? [];
  return { type: "tool-end", step, callId, name, output, failed: result?.failed === true };
}

/** What had been said when a stream broke, without calls that were never finished. */
function spoken(message: AssistantMessage): Message[] {
  const content = message.content.filter((part) => part?.type === "text" && part.text !== "");
  return content.length === 0 ? [] : [{ ...message, content }];
}

/** A new code for each call, which from here on is the only one that decides it. */
function giveCodes(calls: CallRecord[]): Promise<string[]> {
  return Promise.all(
    calls.map(async (call) => {
      const code = createCode();
      call.codeHash = await hashCode(code);
      return code;
    }),
  );
}

const CUT_OFF =
  "Not run: the reply was cut off at its output limit before the arguments were complete; write less at once.";
const LOOPING = "the same call was made too often in a row";
const LOST = "There is no result of this call.";
