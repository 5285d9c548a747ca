/** What the native door says of runs, sessions and messages: the schemas of its answers, and the store's records as them. */
import * as z from "zod";
import type { RunOutcome } from "../core/event.ts";
import { callsOf, type Message, textOf } from "../core/message.ts";
import type { NamedCall, RunRecord } from "../core/run.ts";
import type { Session, StoredMessage } from "../core/store.ts";
import { shownArgs } from "./native-chat-args.ts";
import {
  call,
  errorCode,
  pendingCall,
  snake,
  stopReason,
  toolActivity,
  usage,
  type WirePendingCall,
} from "./native-chat-events.ts";
import { outputText, pendingCallBody, stopWord, usageBody } from "./native-chat-view.ts";

const time = z.iso.datetime().meta({ examples: ["2026-11-20T10:00:00.000Z"] });
const nextCursor = z
  .string()
  .nullable()
  .describe("Send it as `cursor` for the next entries; null at the end.");

export const chatReply = z
  .object({
    session_id: z.string(),
    run_id: z.string(),
    message_id: z.string().nullable().describe("The assistant's last message."),
    reply: z.string(),
    auth_required: z.boolean().describe("true: the run is parked until someone decides on `pending_calls`."),
    pending_calls: z.array(pendingCall),
    tools: z.array(toolActivity).describe("The tool calls that have a result, in the order of the results."),
    usage,
    stop_reason: stopReason,
  })
  .meta({
    id: "ChatReply",
    examples: [
      {
        session_id: "ses_example",
        run_id: "run_example",
        message_id: "msg_example",
        reply: "There are two files: README.md and package.json.",
        auth_required: false,
        pending_calls: [],
        tools: [
          {
            id: "call_example",
            name: "list_files",
            args: { path: "." },
            output: "README.md\npackage.json",
            is_error: false,
          },
        ],
        usage: { input_tokens: 812, output_tokens: 64 },
        stop_reason: "stop",
      },
    ],
  });

const OUTCOMES = ["completed", "paused", "handed-back", "stopped", "failed"] as const satisfies RunOutcome[];

export const runView = z
  .object({
    id: z.string(),
    session_id: z.string(),
    status: z
      .enum(["running", ...OUTCOMES.map(snake)])
      .describe("`paused`: waits for a decision on `pending_calls`."),
    door: z.string().describe("Where it came from: `chat`, `chat-completions`, `messages`, `swarm`."),
    provider: z.string(),
    model: z.string(),
    agent: z.string().nullable().describe("null: the bare model."),
    parent_run_id: z.string().nullable().describe("Of a member of a swarm: the run that leads it."),
    member: z.string().nullable().describe("Of a member of a swarm: its name in events."),
    steps: z.int().describe("Model calls made so far."),
    recoveries: z.int().describe("How often it was gone on with after a crash."),
    last_event: z.int().describe("Number of the last stored event; `?after=` takes it."),
    usage,
    stop_reason: stopReason.nullable().describe("null until it has ended or paused."),
    error: z.object({ message: z.string(), code: errorCode, status: z.int() }).nullable(),
    pending_calls: z.array(pendingCall),
    created_at: time,
    updated_at: time,
    ended_at: time.nullable(),
  })
  .meta({ id: "Run" });

export const sessionView = z
  .object({
    id: z.string(),
    title: z.string(),
    created_at: time,
    updated_at: time,
    message_count: z.int(),
  })
  .meta({ id: "Session" });

export const messageView = z
  .object({
    id: z.string(),
    role: z.enum(["system", "user", "assistant", "tool"]),
    content: z.string().describe("The text of the message; of a tool's result its output."),
    created_at: time,
    tool_calls: z.array(call),
    tool_call_id: z.string().nullable().describe("Of a result: the call that it belongs to."),
    is_error: z.boolean().describe("Of a result: the tool failed."),
    reasoning: z.string().nullable(),
    attachments: z.array(
      z.object({
        type: z.enum(["image", "file"]),
        media_type: z.string().nullable(),
        name: z.string().nullable(),
        url: z.string().nullable().describe("null where the bytes came in the request."),
      }),
    ),
    usage: usage.nullable(),
    model: z.string().nullable(),
    agent: z.string().nullable(),
  })
  .meta({ id: "Message" });

export const runList = z.object({ runs: z.array(runView), next_cursor: nextCursor }).meta({ id: "RunList" });
export const sessionList = z
  .object({ sessions: z.array(sessionView), next_cursor: nextCursor })
  .meta({ id: "SessionList" });
export const messageList = z
  .object({ messages: z.array(messageView).describe("Oldest first."), next_cursor: nextCursor })
  .meta({ id: "MessageList" });

export type ChatReply = z.infer<typeof chatReply>;
export type RunView = z.infer<typeof runView>;
export type SessionView = z.infer<typeof sessionView>;
export type MessageView = z.infer<typeof messageView>;

/** `calls`: those of the run and of its members; only the pending ones are shown. */
export function encodeRun(run: RunRecord, calls: readonly NamedCall[]): RunView {
  const { spec, fault } = run;
  return {
    id: run.id,
    session_id: run.sessionId,
    status: snake(run.status),
    door: spec.door,
    provider: spec.provider,
    model: spec.request.model,
    agent: spec.agent,
    parent_run_id: spec.member?.lead ?? null,
    member: spec.member?.name ?? null,
    steps: run.steps,
    recoveries: run.recoveries,
    last_event: run.lastEvent,
    usage: usageBody(run.usage),
    stop_reason: run.stop === undefined ? null : stopWord(run.stop, fault),
    error: fault ? { message: fault.message, code: fault.code, status: fault.status } : null,
    pending_calls: calls.filter(({ state }) => state === "pending").map(encodePending),
    created_at: run.createdAt.toISOString(),
    updated_at: run.updatedAt.toISOString(),
    ended_at: run.endedAt?.toISOString() ?? null,
  };
}

export function encodePending(call: NamedCall): WirePendingCall {
  const { callId, name, args, risk, expiresAt, agent } = call;
  return pendingCallBody({ id: callId, name, args, risk, expiresAt: expiresAt?.toISOString(), agent });
}

export function encodeSession(session: Session): SessionView {
  return {
    id: session.id,
    title: session.title,
    created_at: session.createdAt.toISOString(),
    updated_at: session.updatedAt.toISOString(),
    message_count: session.messageCount,
  };
}

/** `agent`: which of the agents made it, where that is known. */
export function encodeMessage({ id, message, createdAt }: StoredMessage, agent: string | null): MessageView {
  const { role } = message;
  const assistant = role === "assistant" ? message : null;
  const reasoning = assistant ? reasoningOf(message) : "";
  return {
    id,
    role,
    content: role === "tool" ? outputText(message.content) : spoken(message),
    created_at: createdAt.toISOString(),
    tool_calls: assistant
      ? callsOf(assistant).map((each) => ({ id: each.id, name: each.name, args: shownArgs(each.args) }))
      : [],
    tool_call_id: role === "tool" ? message.callId : null,
    is_error: role === "tool" && message.failed === true,
    reasoning: reasoning === "" ? null : reasoning,
    attachments: role === "tool" ? [] : attachmentsOf(message),
    usage: assistant?.usage ? usageBody(assistant.usage) : null,
    model: assistant?.origin?.model ?? null,
    agent: assistant ? agent : null,
  };
}

function spoken(message: Message): string {
  let out = textOf(message);
  for (const part of message.content) if (part.type === "refusal") out += part.text;
  return out;
}

function reasoningOf(message: Message): string {
  let out = "";
  for (const part of message.content) if (part.type === "reasoning") out += part.text;
  return out;
}

function attachmentsOf(message: Message): MessageView["attachments"] {
  const out: MessageView["attachments"] = [];
  for (const part of message.content) {
    if (part.type !== "image" && part.type !== "file") continue;
    const { source } = part;
    out.push({
      type: part.type,
      media_type: part.type === "file" ? part.mediaType : source.kind === "data" ? source.mediaType : null,
      name: (part.type === "file" && part.name) || null,
      url: source.kind === "url" ? source.url : null,
    });
  }
  return out;
}
