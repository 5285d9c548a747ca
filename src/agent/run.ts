/** The loop: model, tools, model again, until the turn ends, goes back to the client or meets a limit. */
import type { AgentEvent, ModelEvent, PendingCall } from "../core/event.ts";
import { Fold } from "../core/fold.ts";
import {
  type AssistantMessage,
  addUsage,
  type CallPart,
  callsOf,
  text,
  type Usage,
} from "../core/message.ts";
import type { ModelRequest } from "../core/model.ts";
import type { CallRecord } from "../core/run.ts";
import { type Fault, toFault } from "../errors.ts";
import { judgeCalls, notRun, REFUSALS } from "./judge.ts";
import { LimitWatch } from "./limits.ts";
import { askedOf, giveCodes, wordsFor } from "./run-approval.ts";
import { RunClock } from "./run-clock.ts";
import { CUT_OFF, type Ending, endCalls, ended, failed, LOOPING, LOST, spoken } from "./run-ending.ts";
import { RunHistory } from "./run-history.ts";
import type { RunInput } from "./run-input.ts";
import { groupCalls, runTools } from "./tool-batch.ts";

/** One run; see {@link AgentEvent} for the order that it keeps. `signal` cancels it, tools included. */
export function run(input: RunInput, signal: AbortSignal): AsyncGenerator<AgentEvent, void, void> {
  return new Run(input, new RunClock(input.limits.timeoutMs, signal)).events();
}

class Run {
  readonly #input: RunInput;
  readonly #clock: RunClock;
  readonly #watch: LimitWatch;
  readonly #history: RunHistory;
  #usage: Usage = { input: 0, output: 0 };
  #step = 0;
  /** Model calls made. */
  #steps = 0;

  constructor(input: RunInput, clock: RunClock) {
    this.#input = input;
    this.#clock = clock;
    this.#watch = new LimitWatch(input.limits);
    this.#history = new RunHistory(input);
    if (input.resume) {
      const { steps, usage } = input.resume;
      this.#steps = steps;
      this.#step = Math.max(0, steps - 1);
      this.#usage = usage;
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
      yield this.#close(failed(this.#faultOf(error)));
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
        this.#history.add(spoken(fold.message));
        return failed(event.fault);
      }
      if (event.type === "part-open") {
        open.add(event.index);
        const { part } = event;
        if (part.kind === "call") {
          event = { ...event, part: { ...part, id: this.#history.uniqueId(part.id) } };
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
    const compacted = await this.#history.compact(limits.tokenBudget - this.#tokens, this.#clock.signal);
    if (!compacted) return;
    this.#spend(compacted.usage);
    if (!compacted.done) return;
    const { messages, tokensBefore, tokensAfter } = compacted.done;
    yield { type: "compacted", step: this.#step, messages, tokensBefore, tokensAfter };
  }

  /** What follows from a finished model reply. */
  async *#act(
    message: AssistantMessage,
    { stop, stopSequence, extra }: Extract<ModelEvent, { type: "done" }>,
  ): AsyncGenerator<AgentEvent, Ending | undefined, void> {
    const calls = callsOf(message);
    if (calls.length === 0) {
      this.#history.add([message]);
      return { outcome: "completed", stop, stopSequence, extra };
    }
    const mine = calls.filter((call) => !this.#isClients(call.name));
    const theirs = calls.filter((call) => this.#isClients(call.name));
    if (stop === "length" && (theirs.length > 0 || this.#input.request.settings.maxTokens !== undefined)) {
      this.#history.add([message, ...mine.map((call) => notRun(call, CUT_OFF))]);
      return { outcome: "completed", stop, extra };
    }
    const limit = this.#watch.beforeCalls(mine);
    if (limit) {
      this.#history.add([message, ...calls.map((call) => notRun(call, `Not run: ${LOOPING}.`))]);
      return yield* this.#giveUp(limit);
    }
    this.#history.add([message]);
    if (stop === "length") {
      this.#history.add(mine.map((call) => notRun(call, CUT_OFF)));
      return undefined;
    }
    const ending = mine.length > 0 ? yield* this.#settle(this.#judged(mine, theirs.length > 0)) : undefined;
    if (ending || theirs.length === 0) return ending;
    await this.#input.handBack(this.#history.made, theirs);
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
      outside: this.#history.outside,
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
      ...{ step: this.#step, tools, context: { ...context, outside: this.#history.outside }, log, store },
      // They count in the swarm's spending since they were used.
      spend: (usage: Usage) => {
        this.#usage = addUsage(this.#usage, usage);
      },
      park: (theirs: PendingCall[]) => void asked.push(...theirs),
    };
    yield* runTools(batch, groups, this.#clock.signal);
    if (this.#clock.signal.aborted) return yield* this.#interrupted(calls);
    if (pending.length + asked.length > 0) return yield* this.#park(pending, codes, asked);
    this.#history.add(calls.map((call) => call.result ?? notRun(call, LOST)));
    return undefined;
  }

  /** `theirs`: calls of members, which have codes already where codes are given. */
  async *#park(
    calls: CallRecord[],
    codes: string[],
    theirs: PendingCall[],
  ): AsyncGenerator<AgentEvent, Ending, void> {
    const asked = [...(await askedOf(calls, codes, this.#input.context.workingDirectory)), ...theirs];
    yield { type: "approval-needed", step: this.#step, calls: asked };
    if (this.#input.asking === "text") yield* this.#say(wordsFor(asked));
    return { outcome: "paused", stop: "stop" };
  }

  /** Stopped, or out of time, in the middle of its tools: every call gets a result, since the history must stay whole. */
  async *#interrupted(calls: CallRecord[]): AsyncGenerator<AgentEvent, Ending, void> {
    endCalls(calls);
    this.#history.add(calls.map((call) => call.result ?? notRun(call, LOST)));
    await this.#commit(calls);
    if (this.#clock.timedOut) return yield* this.#giveUp(this.#watch.timeout());
    return failed({ code: "cancelled", message: "The request was cancelled.", status: 499 });
  }

  /** A call is the agent's own when it names one of its tools, or nothing that anybody has while the agent has tools. */
  #isClients(name: string): boolean {
    const { tools, request } = this.#input;
    if (tools.has(name)) return false;
    return tools.size === 0 || request.tools.some((tool) => tool.name === name);
  }

  #request(): ModelRequest {
    const { request, dropped } = this.#history.request();
    if (dropped > 0) this.#usage = addUsage(this.#usage, { input: 0, output: 0, trimmedMessages: dropped });
    return request;
  }

  /** Tokens that count for the budget. */
  get #tokens(): number {
    return this.#input.share?.tokens ?? this.#usage.input + this.#usage.output;
  }

  #spend(usage: Usage): void {
    this.#usage = addUsage(this.#usage, usage);
    if (this.#input.share) this.#input.share.tokens += usage.input + usage.output;
  }

  #commit(calls: CallRecord[], shown?: AgentEvent): Promise<void> {
    return this.#input.journal.commit({ calls, steps: this.#steps, usage: this.#usage, shown });
  }

  async *#timedOut(fold: Fold, open: Set<number>): AsyncGenerator<AgentEvent, Ending, void> {
    for (const index of open) yield { type: "model", step: this.#step, event: { type: "part-close", index } };
    this.#history.add(spoken(fold.message));
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
    this.#history.add([{ role: "assistant", content: [text(reason)], stop: "length" }]);
    return {
      outcome: "completed",
      stop: "length",
      fault: { code: "limit_reached", message: reason, status: 500 },
    };
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
