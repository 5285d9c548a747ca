/** The events of the native door, and what they are made of. Types and OpenAPI come from these schemas. */
import * as z from "zod";
import { STOP_REASONS } from "../core/message.ts";
import { type ErrorCode, STATUS } from "../errors.ts";

export const errorCode = z.enum(Object.keys(STATUS) as [ErrorCode, ...ErrorCode[]]).meta({ id: "ErrorCode" });

type Snake<Text extends string> = Text extends `${infer Head}-${infer Tail}`
  ? `${Head}_${Snake<Tail>}`
  : Text;

/** The native door writes words with underscores. */
export function snake<Word extends string>(word: Word): Snake<Word> {
  return word.replaceAll("-", "_") as Snake<Word>;
}

export const stopReason = z.enum([...STOP_REASONS.map(snake), "limit_reached"]).meta({
  id: "StopReason",
  description:
    "Why the turn ended. `length`: the reply reached its output limit; `limit_reached`: the run reached one of its own (steps, repetition, time, tokens).",
});

const tokens = z.int().min(0);
export const usage = z
  .object({
    input_tokens: tokens.describe("All input, cached or not, over all model calls of the run."),
    output_tokens: tokens.describe("All output, reasoning included."),
    cache_read_tokens: tokens.optional(),
    cache_write_tokens: tokens.optional(),
    reasoning_tokens: tokens.optional(),
    trimmed_messages: z
      .int()
      .min(0)
      .optional()
      .describe("Messages left out at the start because the conversation would not have fitted the model."),
  })
  .meta({ id: "Usage", examples: [{ input_tokens: 812, output_tokens: 64 }] });

const args = z
  .record(z.string(), z.unknown())
  .describe("The arguments. What the model wrote, if it is no JSON object, is under `_raw` as text.");

const agent = z
  .string()
  .optional()
  .describe("The member of the swarm that it is of; absent for the agent that leads.");

const called = { id: z.string(), name: z.string(), args };
export const call = z.object(called).meta({ id: "Call" });

export const toolActivity = z
  .object({
    ...called,
    output: z.string().describe("Images stand as `[image]`."),
    is_error: z.boolean(),
    agent,
  })
  .meta({ id: "ToolActivity" });

export const risk = z.enum(["read", "write", "execute", "network"]);

export const pendingCall = z
  .object({
    ...called,
    agent: agent.describe("The member of the swarm that asks; absent where the agent that leads does."),
    preview: z
      .string()
      .describe(
        "All that would run, for a person to read: invisible and direction-changing characters are written as ⟨U+202E⟩.",
      ),
    risk: risk.nullable(),
    expires_at: z.iso.datetime().nullable().describe("When it can no longer be decided."),
  })
  .meta({
    id: "PendingCall",
    examples: [
      {
        id: "call_example",
        name: "run_terminal_command",
        args: { command: "npm test" },
        preview: "npm test",
        risk: "execute",
        expires_at: "2026-11-21T10:00:00.000Z",
      },
    ],
  });

const sessionEvent = z
  .object({
    type: z.literal("session"),
    session_id: z.string(),
    run_id: z.string(),
    unavailable_tools: z
      .array(z.string())
      .optional()
      .describe("Names from `allowed_tools` that are not there now."),
  })
  .describe("First in every stream.");
const contentEvent = z
  .object({ type: z.literal("content"), content: z.string(), agent })
  .describe("A fragment of the reply; with `agent`, of what a member says to its lead.");
const reasoningEvent = z
  .object({ type: z.literal("reasoning"), content: z.string(), agent })
  .describe("A fragment of the model's thinking.");
const callEvent = z
  .object({ type: z.literal("tool_call"), ...called, agent })
  .describe("The agent calls a tool.");
const progressEvent = z
  .object({ type: z.literal("tool_progress"), id: z.string(), content: z.string(), agent })
  .describe("Output of a tool while it runs.");
const resultEvent = z
  .object({ type: z.literal("tool_result"), ...toolActivity.shape })
  .describe("The result of a tool.");
const authEvent = z
  .object({ type: z.literal("auth_required"), pending_calls: z.array(pendingCall) })
  .describe("The run is parked until someone decides on these calls.");
const compactionEvent = z
  .object({
    type: z.literal("compaction"),
    messages: z.int().min(1).describe("How many messages the summary took in."),
    tokens_before: tokens.describe("The conversation as it was sent to the model before, estimated."),
    tokens_after: tokens.describe("The conversation as it is sent from here on, estimated."),
    agent,
  })
  .describe(
    "The conversation was about to outgrow the model: a summary stands in place of its oldest messages when the model reads it. The messages themselves stay as they are.",
  );
const agentEvent = z
  .object({
    type: z.literal("agent"),
    agent: z.string().describe("The member's name; `lead/name` for a member of a member."),
    run_id: z.string().describe("The member's own run."),
    task: z.string(),
    status: z
      .enum(["started", "waiting", "completed", "failed", "stopped"])
      .describe(
        "`waiting`: for a decision on `pending_calls`, which `POST /api/chat/approve` takes at once, while others still work. When all that is left waits, `auth_required` comes and the run is parked.",
      ),
    parent: z.string().describe("The agent that leads it."),
    pending_calls: z.array(pendingCall).optional().describe("With `waiting`: what it waits with."),
  })
  .describe("A member of a swarm starts, waits or ends.");
const errorEvent = z
  .object({
    type: z.literal("error"),
    error: z.string().describe("What happened and what to do."),
    code: errorCode,
    status: z.int().describe("The HTTP status that the fault would have had before the first byte."),
    param: z.string().optional(),
    retry_after: z.number().optional().describe("Seconds."),
  })
  .describe("The run failed or was stopped (`cancelled`). Nothing follows.");
const doneEvent = z
  .object({
    type: z.literal("done"),
    reply: z.string().describe("All that the run has said."),
    session_id: z.string(),
    run_id: z.string(),
    message_id: z.string().nullable().describe("The assistant's last message."),
    auth_required: z.boolean().describe("true: the run is parked, see `auth_required` before this."),
    usage,
    stop_reason: stopReason,
  })
  .describe("The run has ended or is parked. Nothing follows in this stream.");

export const chatEvent = z
  .discriminatedUnion("type", [
    sessionEvent,
    contentEvent,
    reasoningEvent,
    callEvent,
    progressEvent,
    resultEvent,
    authEvent,
    compactionEvent,
    agentEvent,
    errorEvent,
    doneEvent,
  ])
  .meta({
    id: "ChatEvent",
    description:
      "The JSON in a `data:` line. The `id:` line before it is its number in the run: send it back as Last-Event-ID to go on behind it.",
  });

export type ChatEvent = z.infer<typeof chatEvent>;
export type WireUsage = z.infer<typeof usage>;
export type WirePendingCall = z.infer<typeof pendingCall>;
export type ToolActivity = z.infer<typeof toolActivity>;
export type StopReasonWord = z.infer<typeof stopReason>;
