/** The tools of `/mcp` that make the agent work: a message, and a decision on the calls that it waits with. */
import * as z from "zod";
import { type Decision, decideByCode, decideCalls } from "../agent/approvals.ts";
import { createRunId } from "../agent/turns.ts";
import { previewOf } from "../core/preview.ts";
import { AppError } from "../errors.ts";
import type { ServedContext, ServedResult, ServedTool } from "../mcp/server.ts";
import type { ChatEvent } from "../protocols/native-chat-events.ts";
import { chatReply } from "../protocols/native-chat-records.ts";
import { decodeChat } from "../protocols/native-chat-request.ts";
import type { Services } from "../services.ts";
import { type McpCaller, stopRun } from "./mcp-calls.ts";
import { askOf, type Begun, beginRun, goOn } from "./native-run.ts";
import type { Quota } from "./quota.ts";
import { collectRun } from "./run-stream.ts";

const { tools: _, ...told } = chatReply.shape;
const reply = z.object(told);

const askArgs = z.object({
  message: z.string().min(1).describe("What the agent is told, with all that it has to know."),
  session_id: z.string().optional().describe("The conversation to go on with; without one a new one begins."),
  model: z.string().optional().describe("A model id. Default: the model of the service."),
});

const decideArgs = z.object({
  session_id: z.string().min(1).describe("The session that holds the pending calls."),
  call_ids: z
    .array(z.string().min(1))
    .max(100)
    .optional()
    .describe("Ids of pending calls of one run. Absent or empty: all pending calls of the session."),
  approved: z
    .boolean()
    .describe("true runs the calls, false denies them; the agent sees a denial as a result."),
  scope: z
    .enum(["once", "session"])
    .optional()
    .describe(
      "`session`: the same kind of call is not asked about again in this session, but for memory, notes, schedules and watchdogs. Default `once`.",
    ),
});

export function agentTools(services: Services, quota: Quota): ServedTool<McpCaller>[] {
  const { agent, config, store } = services;

  const ask: ServedTool<McpCaller, z.infer<typeof askArgs>> = {
    name: "ask_agent",
    title: "Ask the agent",
    description:
      "Gives the agent a task or a question and waits for its reply. Answers with the reply, its session_id (to go on) and run_id. With auth_required true the agent waits until somebody decides on pending_calls: show them to the person you work for, then use decide_approval.",
    args: askArgs,
    result: reply,
    hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    long: true,
    async run(args, context) {
      const { owner, providerKey, provider, calls } = context.caller;
      const wish = { ...decodeChat(args, config.run), provider };
      const decision = await decideByCode(agent, owner, wish.request.messages);
      if (decision) return decided(decision, context);
      const derived = await calls.runIdOf(context.requestId);
      // A client that counts its requests anew must not meet the run of the call that had this number before.
      const runId = derived && !(await store.runs.get(owner, derived)) ? derived : createRunId();
      return follow(context, runId, async (client) => {
        const where = "the header x-provider-key";
        const wanted = await askOf(services, { owner, providerKey, where, client }, wish);
        return beginRun(services, { ...wanted, runId }, quota);
      });
    },
  };

  const decide: ServedTool<McpCaller, z.infer<typeof decideArgs>> = {
    name: "decide_approval",
    title: "Approve or deny",
    description:
      "Passes on what a person has decided about calls that the agent waits with, and waits for what the agent does next. Ask that person first: never decide by yourself. Decided the same way again, it answers with what came of it; the opposite is refused.",
    args: decideArgs,
    result: reply,
    hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
    long: true,
    async run({ session_id: sessionId, call_ids: ids = [], approved, scope = "once" }, context) {
      const selected = ids.map((id) => ({ id }));
      const wish = { sessionId, selected, approved, scope };
      return decided(await decideCalls(agent, context.caller.owner, wish), context);
    },
  };

  function decided(decision: Decision, context: ServedContext<McpCaller>): Promise<ServedResult> {
    const { owner } = context.caller;
    // Who asks about an earlier decision only looks on.
    const runId = decision.repeated ? undefined : decision.runId;
    return follow(context, runId, (client) => goOn(services, owner, decision, client));
  }

  /** Waits for a run, telling what it does. `runId`: the one that is stopped when the call is given up. */
  async function follow(
    { caller, requestId, progress }: ServedContext<McpCaller>,
    runId: string | undefined,
    begin: (client: AbortSignal) => Promise<Begun>,
  ): Promise<ServedResult> {
    const client = new AbortController();
    let stopping = Promise.resolve();
    const stop = (): Promise<void> => {
      if (runId !== undefined) stopping = stopRun(services, caller.owner, runId);
      return stopping;
    };
    const over = await caller.calls.begin(requestId, () => {
      client.abort();
      services.platform.background(stop());
    });
    try {
      const { frames, fault } = await begin(client.signal);
      // It may not have been there yet when it was to be stopped.
      if (client.signal.aborted) await stop();
      if (fault) throw fault;
      const { tools: _, ...rest } = await collectRun(frames, client.signal, teller(progress));
      return { structured: rest };
    } catch (error) {
      if (!client.signal.aborted) throw error;
      await stopping;
      throw new AppError("cancelled", "The call was cancelled, and the agent was stopped.", { cause: error });
    } finally {
      over();
    }
  }

  return [ask as ServedTool<McpCaller>, decide as ServedTool<McpCaller>];
}

/** The least time between two pieces of text. Milliseconds. */
const PACE_MS = 250;
/** Characters of one message. */
const TOLD_LIMIT = 300;

/** What happens as single lines, those of a swarm's members under their names; text that flows is told now and then. */
function teller(progress: (message: string) => void): (event: ChatEvent) => void {
  let text = "";
  let who: string | undefined;
  let last = Number.NEGATIVE_INFINITY;
  const say = (message: string) => progress(who === undefined ? message : `${who}: ${message}`);
  const flush = () => {
    if (text.trim() !== "") say(text.length > TOLD_LIMIT ? `…${text.slice(-TOLD_LIMIT)}` : text);
    text = "";
    last = performance.now();
  };
  const tell = (line: string) => {
    flush();
    say(line.length > TOLD_LIMIT ? `${line.slice(0, TOLD_LIMIT)}…` : line);
  };
  return (event) => {
    const agent = "agent" in event ? event.agent : undefined;
    if (agent !== who) flush();
    who = agent;
    if (event.type === "content" || event.type === "tool_progress") {
      text += event.content;
      if (performance.now() - last >= PACE_MS) flush();
    } else if (event.type === "tool_call")
      tell(`Calls ${event.name}: ${previewOf(event.name, JSON.stringify(event.args))}`);
    else if (event.type === "tool_result") tell(`${event.name} has ${event.is_error ? "failed" : "ended"}.`);
    else if (event.type === "agent") tell(MEMBER_WORDS[event.status]);
    else if (event.type === "auth_required") tell("Waits for a decision.");
  };
}

const MEMBER_WORDS = {
  started: "Begins.",
  waiting: "Waits for a decision.",
  completed: "Is ready.",
  failed: "Has failed.",
  stopped: "Was stopped.",
} as const;
