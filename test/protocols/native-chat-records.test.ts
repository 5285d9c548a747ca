import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { Message } from "../../src/core/message.ts";
import type { CallRecord, RunRecord } from "../../src/core/run.ts";
import { chatEvent, pendingCall, usage } from "../../src/protocols/native-chat-events.ts";
import {
  chatReply,
  encodeMessage,
  encodeRun,
  encodeSession,
  messageList,
  messageView,
  runList,
  runView,
  sessionList,
  sessionView,
} from "../../src/protocols/native-chat-records.ts";

const createdAt = new Date("2026-11-20T10:00:00.000Z");
const updatedAt = new Date("2026-11-20T10:00:05.000Z");

const run: RunRecord = {
  id: "run_1",
  owner: "ann",
  sessionId: "ses_1",
  status: "paused",
  spec: {
    door: "messages",
    provider: "anthropic",
    agent: "dragoman",
    request: { model: "claude", system: [], messages: [], tools: [], settings: {} },
    tools: ["run_terminal_command"],
  },
  sealedKey: "sealed",
  historySeq: 4,
  steps: 2,
  lastEvent: 17,
  recoveries: 1,
  usage: { input: 9, output: 3 },
  stop: "tool-calls",
  createdAt,
  updatedAt,
};

const pending: CallRecord = {
  runId: "run_1",
  sessionId: "ses_1",
  callId: "call_1",
  step: 1,
  position: 0,
  name: "run_terminal_command",
  args: '{"command":"ls"}',
  risk: "execute",
  state: "pending",
  codeHash: "abc",
  expiresAt: new Date("2026-11-21T10:00:00.000Z"),
  decidedAt: null,
  result: null,
};

describe("a run", () => {
  const view = {
    id: "run_1",
    session_id: "ses_1",
    status: "paused",
    door: "messages",
    provider: "anthropic",
    model: "claude",
    agent: "dragoman",
    parent_run_id: null,
    member: null,
    steps: 2,
    recoveries: 1,
    last_event: 17,
    usage: { input_tokens: 9, output_tokens: 3 },
    stop_reason: "tool_calls",
    error: null,
    pending_calls: [
      {
        id: "call_1",
        name: "run_terminal_command",
        args: { command: "ls" },
        preview: "ls",
        risk: "execute",
        expires_at: "2026-11-21T10:00:00.000Z",
      },
    ],
    created_at: "2026-11-20T10:00:00.000Z",
    updated_at: "2026-11-20T10:00:05.000Z",
    ended_at: null,
  };

  test("that waits shows what it waits for, no key and no code", () => {
    const shown = encodeRun(run, [{ ...pending, callId: "call_0", state: "done" }, pending]);
    expect(shown).toEqual(view);
    expect(runView.parse(shown)).toEqual(shown);
  });

  test("that failed says why", () => {
    const fault = { code: "limit_reached", message: "50 steps.", status: 500 } as const;
    const shown = encodeRun({ ...run, status: "failed", stop: "length", fault, endedAt: updatedAt }, []);
    expect(shown).toEqual({
      ...view,
      status: "failed",
      stop_reason: "limit_reached",
      error: { code: "limit_reached", message: "50 steps.", status: 500 },
      pending_calls: [],
      ended_at: "2026-11-20T10:00:05.000Z",
    });
    expect(encodeRun({ ...run, status: "handed-back" }, []).status).toBe("handed_back");
    expect(encodeRun({ ...run, status: "running", stop: undefined }, []).stop_reason).toBeNull();
  });
});

test("a session", () => {
  const shown = encodeSession({ id: "ses_1", title: "Tests", createdAt, updatedAt, messageCount: 4 });
  expect(shown).toEqual({
    id: "ses_1",
    title: "Tests",
    created_at: "2026-11-20T10:00:00.000Z",
    updated_at: "2026-11-20T10:00:05.000Z",
    message_count: 4,
  });
  expect(sessionView.parse(shown)).toEqual(shown);
});

describe("a message", () => {
  const bare = {
    id: "msg_1",
    content: "",
    created_at: "2026-11-20T10:00:00.000Z",
    tool_calls: [],
    tool_call_id: null,
    is_error: false,
    reasoning: null,
    attachments: [],
    usage: null,
    model: null,
    agent: null,
  };
  const cases: [Message, object][] = [
    [
      { role: "system", content: [{ type: "text", text: "s" }] },
      { role: "system", content: "s" },
    ],
    [
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          { type: "image", source: { kind: "data", mediaType: "image/png", data: "AAAA" } },
          { type: "file", source: { kind: "url", url: "https://a.b/c" }, mediaType: "text/plain", name: "n" },
        ],
      },
      {
        role: "user",
        content: "look",
        attachments: [
          { type: "image", media_type: "image/png", name: null, url: null },
          { type: "file", media_type: "text/plain", name: "n", url: "https://a.b/c" },
        ],
      },
    ],
    [
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "hm", seal: "sealed" },
          { type: "text", text: "I will." },
          { type: "call", id: "call_1", name: "x", args: '{"a":1}' },
          { type: "call", id: "call_2", name: "y", args: "{" },
        ],
        origin: { provider: "openai", model: "gpt" },
        usage: { input: 1, output: 2 },
      },
      {
        role: "assistant",
        content: "I will.",
        reasoning: "hm",
        tool_calls: [
          { id: "call_1", name: "x", args: { a: 1 } },
          { id: "call_2", name: "y", args: { _raw: "{" } },
        ],
        usage: { input_tokens: 1, output_tokens: 2 },
        model: "gpt",
        agent: "coder",
      },
    ],
    [
      { role: "assistant", content: [{ type: "refusal", text: "No." }] },
      { role: "assistant", content: "No.", agent: "coder" },
    ],
    [
      {
        role: "tool",
        callId: "call_1",
        name: "x",
        failed: true,
        content: [
          { type: "text", text: "out" },
          { type: "image", source: { kind: "url", url: "https://a.b/c" } },
        ],
      },
      { role: "tool", content: "out\n[image]", tool_call_id: "call_1", is_error: true },
    ],
  ];
  test.each(cases)("%#", (message, shown) => {
    const view = encodeMessage({ id: "msg_1", seq: 1, message, createdAt }, "coder");
    expect(view).toEqual({ ...bare, ...shown });
    expect(messageView.parse(view)).toEqual(view);
  });
});

describe("the schemas", () => {
  const schemas = { chatEvent, chatReply, messageList, runList, sessionList, pendingCall, usage };
  test.each(Object.entries(schemas))("%s is plain JSON Schema whose examples it accepts", (_, schema) => {
    const json = z.toJSONSchema(schema, { io: "input" });
    expect(Object.keys(json.$defs ?? {})).toContain(schema.meta()?.id);
    for (const example of (schema.meta()?.examples ?? []) as unknown[])
      expect(schema.parse(example)).toEqual(example);
  });
});
