/** `/api/chat` and `/api/runs`: the native door, and what it has started. */
import * as z from "zod";
import { chatEvent } from "../../protocols/native-chat-events.ts";
import { chatReply, runList, runView } from "../../protocols/native-chat-records.ts";
import { approveRequest, chatRequest } from "../../protocols/native-chat-schema.ts";
import type { EventStream, Operation } from "./operation.ts";
import { idempotency, paging, runId } from "./parameters.ts";

const USAGE = { input_tokens: 812, output_tokens: 64 };
const IDS = { session_id: "ses_example", run_id: "run_example" };
const CALL = { id: "call_example", name: "run_terminal_command", args: { command: "npm test" } };
const PENDING = { ...CALL, preview: "npm test", risk: "execute", expires_at: "2026-11-21T10:00:00.000Z" };
const LISTING = { id: "call_example", name: "list_files", args: { path: "." } };
const OUTPUT = { output: "README.md\npackage.json", is_error: false };
const TESTED = { output: "12 tests passed", is_error: false };

const WHOLE = {
  ...IDS,
  message_id: "msg_example",
  reply: "There are two files: README.md and package.json.",
  auth_required: false,
  pending_calls: [],
  tools: [{ ...LISTING, ...OUTPUT }],
  usage: USAGE,
  stop_reason: "stop",
};
const PARKED = {
  ...IDS,
  message_id: "msg_example",
  reply: "",
  auth_required: true,
  pending_calls: [PENDING],
  tools: [],
  usage: USAGE,
  stop_reason: "tool_calls",
};
const RESUMED = {
  ...IDS,
  message_id: "msg_example",
  reply: "All 12 tests pass.",
  auth_required: false,
  pending_calls: [],
  tools: [{ ...CALL, ...TESTED }],
  usage: USAGE,
  stop_reason: "stop",
};

const OPENING = { type: "session", ...IDS };
const done = (reply: string, parked: boolean) => ({
  type: "done",
  reply,
  ...IDS,
  message_id: "msg_example",
  auth_required: parked,
  usage: USAGE,
  stop_reason: parked ? "tool_calls" : "stop",
});

const MEMBER = { agent: "tester", run_id: "run_example2", task: "Run the tests.", parent: "dragoman" };
const chatStream = {
  schema: chatEvent,
  framing: "numbered",
  examples: {
    Streamed: [
      OPENING,
      { type: "tool_call", ...LISTING },
      { type: "tool_result", ...LISTING, ...OUTPUT },
      { type: "content", content: "There are two files: " },
      { type: "content", content: "README.md and package.json." },
      done(WHOLE.reply, false),
    ],
    "Streamed, parked": [
      OPENING,
      { type: "tool_call", ...CALL },
      { type: "auth_required", pending_calls: [PENDING] },
      done("", true),
    ],
    "Streamed, a swarm": [
      OPENING,
      { type: "agent", ...MEMBER, status: "started" },
      { type: "content", content: "All 12 tests pass.", agent: "tester" },
      { type: "agent", ...MEMBER, status: "completed" },
      { type: "content", content: "The tests pass." },
      done("The tests pass.", false),
    ],
    "Streamed, failed": [
      OPENING,
      {
        type: "error",
        error: "The provider is overloaded: send the message again.",
        code: "upstream_error",
        status: 529,
      },
    ],
  },
} as const satisfies EventStream;

const RUN = {
  id: "run_example",
  session_id: "ses_example",
  status: "completed",
  door: "chat",
  provider: "anthropic",
  model: "claude-sonnet-5",
  agent: "dragoman",
  parent_run_id: null,
  member: null,
  steps: 2,
  recoveries: 0,
  last_event: 6,
  usage: USAGE,
  stop_reason: "stop",
  error: null,
  pending_calls: [],
  created_at: "2026-11-20T10:00:00.000Z",
  updated_at: "2026-11-20T10:00:04.000Z",
  ended_at: "2026-11-20T10:00:04.000Z",
};

export const CHAT_ROUTES = [
  {
    id: "chat",
    method: "post",
    path: "/api/chat",
    tag: "Chat",
    summary: "Send a message to the agent",
    description:
      "Starts a run, which goes on when its client disconnects. A call that needs approval parks it: the reply has `auth_required: true`, and `POST /api/chat/approve` decides. With `stream: true` the reply comes as server-sent events; exactly one of `done` and `error` is the last.",
    family: "api",
    headers: idempotency,
    body: {
      schema: chatRequest,
      examples: {
        Ask: { message: "Which files are here?" },
        Stream: { message: "Which files are here?", stream: true },
        "A swarm": {
          message: "Compare three ways to store sessions.",
          use_swarm: true,
          stream: true,
        },
        "A debate": { message: "Tabs or spaces?", swarm: { mode: "debate", rounds: 2 }, stream: true },
        "Go on, with limits": {
          message: "Run the tests and tell me what fails.",
          session_id: "ses_example",
          provider: "anthropic",
          allowed_tools: ["run_terminal_command", "read_file"],
          max_steps: 20,
        },
      },
    },
    replies: {
      200: {
        description: "The run has ended or is parked; or, with `stream: true`, it is told as it happens.",
        headers: ["x-run-id", "x-session-id", "x-upstream-model", "idempotency-replayed"],
        json: { schema: chatReply, examples: { Reply: WHOLE, Parked: PARKED } },
        events: chatStream,
      },
    },
    faults: [404, 409, 422, 502, 504, 507, 529],
  },
  {
    id: "approve",
    method: "post",
    path: "/api/chat/approve",
    tag: "Chat",
    summary: "Approve or deny pending calls",
    description:
      "`pending_calls` only selects: what runs is what the server has stored. The same decision again gets the stored outcome, the opposite one 409. A denial is a result that the model sees. Some calls may be decided and others left pending.",
    family: "api",
    headers: idempotency,
    body: {
      schema: approveRequest,
      examples: {
        "Approve all": { session_id: "ses_example", approved: true },
        "Deny one": { session_id: "ses_example", approved: false, pending_calls: ["call_example"] },
        "Approve for the session": {
          session_id: "ses_example",
          approved: true,
          scope: "session",
          stream: true,
        },
      },
    },
    replies: {
      200: {
        description: "What the run did next, in the form of a chat reply.",
        headers: ["x-run-id", "x-session-id", "idempotency-replayed"],
        json: { schema: chatReply, examples: { Approved: RESUMED } },
        events: {
          schema: chatEvent,
          framing: "numbered",
          examples: {
            "Approved, streamed": [
              OPENING,
              { type: "tool_result", ...CALL, ...TESTED },
              { type: "content", content: "All 12 tests pass." },
              done("All 12 tests pass.", false),
            ],
          },
        },
      },
    },
    faults: [404, 409, 410, 422, 502, 504, 507, 529],
  },
  {
    id: "listRuns",
    method: "get",
    path: "/api/runs",
    tag: "Runs",
    summary: "List runs",
    description: "Newest first, whatever door they came through.",
    family: "api",
    query: z.object({ session_id: z.string().optional().describe("Only those of this session."), ...paging }),
    replies: {
      200: {
        description: "A page of runs.",
        json: { schema: runList, examples: { Page: { runs: [RUN], next_cursor: null } } },
      },
    },
    faults: [400],
  },
  {
    id: "getRun",
    method: "get",
    path: "/api/runs/{id}",
    tag: "Runs",
    summary: "Get a run",
    family: "api",
    params: runId,
    replies: {
      200: { description: "How it stands.", json: { schema: runView, examples: { Run: RUN } } },
    },
    faults: [404],
  },
  {
    id: "followRun",
    method: "get",
    path: "/api/runs/{id}/events",
    tag: "Runs",
    summary: "Read or resume a run's events",
    description:
      "The same bytes that its first reader got, behind the number in `Last-Event-ID` or `after`, then live until the run ends or is parked.",
    family: "api",
    params: runId,
    query: z.object({ after: z.int().min(0).optional().describe("Number of the last event that you have.") }),
    headers: z.object({
      "last-event-id": z
        .string()
        .optional()
        .describe("The same; wins over `after`. An EventSource sends it by itself."),
    }),
    replies: {
      200: { description: "The events.", headers: ["x-run-id"], events: chatStream },
      204: { description: "The run has ended and you have all of it." },
    },
    faults: [400, 404],
  },
  {
    id: "stopRun",
    method: "post",
    path: "/api/runs/{id}/stop",
    tag: "Runs",
    summary: "Stop a run",
    description:
      "Its tools and child processes included, within a second. Stopping one that has ended changes nothing.",
    family: "api",
    params: runId,
    replies: {
      200: {
        description: "How it stands.",
        json: {
          schema: runView,
          examples: {
            Stopped: {
              ...RUN,
              status: "stopped",
              error: { message: "The run was stopped.", code: "cancelled", status: 499 },
            },
          },
        },
      },
    },
    faults: [404],
  },
] as const satisfies readonly Operation[];
