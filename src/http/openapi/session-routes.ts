/** `/api/sessions` and `/api/messages`. */
import * as z from "zod";
import { messageList, sessionList, sessionView } from "../../protocols/native-chat-records.ts";
import { forkRequest, sessionPatch } from "../sessions.ts";
import type { Operation } from "./operation.ts";
import { idempotency, messageId, paging, sessionId } from "./parameters.ts";

export const deleted = z
  .object({ status: z.literal("deleted"), deleted: z.int().describe("How many entries are gone.") })
  .meta({ id: "Deleted" });
const deletedSession = z
  .object({ ...deleted.shape, memories: z.int().optional().describe("How many memories went with it.") })
  .meta({ id: "DeletedSession" });
const deletedMessages = z
  .object({ ...deleted.shape, ids: z.array(z.string()) })
  .meta({ id: "DeletedMessages" });

const SESSION = {
  id: "ses_example",
  title: "The tests that fail",
  created_at: "2026-11-20T10:00:00.000Z",
  updated_at: "2026-11-20T10:00:04.000Z",
  message_count: 2,
};
const MESSAGE = {
  created_at: "2026-11-20T10:00:00.000Z",
  tool_calls: [],
  tool_call_id: null,
  is_error: false,
  reasoning: null,
  attachments: [],
};

export const SESSION_ROUTES = [
  {
    id: "listSessions",
    method: "get",
    path: "/api/sessions",
    tag: "Sessions",
    summary: "List or search sessions",
    description: "Newest activity first.",
    family: "api",
    query: z.object({ q: z.string().optional().describe("Searches titles and texts."), ...paging }),
    replies: {
      200: {
        description: "A page of sessions.",
        json: { schema: sessionList, examples: { Page: { sessions: [SESSION], next_cursor: null } } },
      },
    },
    faults: [400],
  },
  {
    id: "getSession",
    method: "get",
    path: "/api/sessions/{id}",
    tag: "Sessions",
    summary: "Get a session",
    family: "api",
    params: sessionId,
    replies: {
      200: { description: "The session.", json: { schema: sessionView, examples: { Session: SESSION } } },
    },
    faults: [404],
  },
  {
    id: "renameSession",
    method: "patch",
    path: "/api/sessions/{id}",
    tag: "Sessions",
    summary: "Rename a session",
    family: "api",
    params: sessionId,
    body: { schema: sessionPatch, examples: { Rename: { title: "The tests that fail" } } },
    replies: {
      200: { description: "The session.", json: { schema: sessionView, examples: { Session: SESSION } } },
    },
    faults: [404, 507],
  },
  {
    id: "deleteSession",
    method: "delete",
    path: "/api/sessions/{id}",
    tag: "Sessions",
    summary: "Delete a session",
    description:
      "Stops its runs and deletes all that hangs from it. What was remembered of it stays, without its source, unless `memories=delete` is said.",
    family: "api",
    params: sessionId,
    query: z.object({
      memories: z.literal("delete").optional().describe("Memories that were derived from it go too."),
    }),
    replies: {
      200: {
        description: "It is gone.",
        json: {
          schema: deletedSession,
          examples: {
            Deleted: { status: "deleted", deleted: 1 },
            "With memories": { status: "deleted", deleted: 1, memories: 3 },
          },
        },
      },
    },
    faults: [404],
  },
  {
    id: "forkSession",
    method: "post",
    path: "/api/sessions/{id}/fork",
    tag: "Sessions",
    summary: "Fork a session",
    description: "A new session with a copy of the messages up to one of them.",
    family: "api",
    params: sessionId,
    headers: idempotency,
    body: { schema: forkRequest, examples: { "Up to a message": { message_id: "msg_example" }, Whole: {} } },
    replies: {
      201: {
        description: "The new session.",
        headers: ["idempotency-replayed"],
        json: { schema: sessionView, examples: { Session: { ...SESSION, id: "ses_fork" } } },
      },
    },
    faults: [404, 409, 422, 507],
  },
  {
    id: "listMessages",
    method: "get",
    path: "/api/sessions/{id}/messages",
    tag: "Sessions",
    summary: "Read a session",
    description: "Oldest first.",
    family: "api",
    params: sessionId,
    query: z.object(paging),
    replies: {
      200: {
        description: "A page of messages.",
        json: {
          schema: messageList,
          examples: {
            Page: {
              messages: [
                {
                  ...MESSAGE,
                  id: "msg_question",
                  role: "user",
                  content: "Do the tests pass?",
                  usage: null,
                  model: null,
                  agent: null,
                },
                {
                  ...MESSAGE,
                  id: "msg_example",
                  role: "assistant",
                  content: "All 12 tests pass.",
                  usage: { input_tokens: 812, output_tokens: 64 },
                  model: "claude-sonnet-5",
                  agent: "dragoman",
                },
              ],
              next_cursor: null,
            },
          },
        },
      },
    },
    faults: [400, 404],
  },
  {
    id: "deleteMessage",
    method: "delete",
    path: "/api/messages/{id}",
    tag: "Sessions",
    summary: "Delete a message",
    description: "What cannot stand without it goes too: a tool call and its result are deleted together.",
    family: "api",
    params: messageId,
    replies: {
      200: {
        description: "What is gone.",
        json: {
          schema: deletedMessages,
          examples: { Deleted: { status: "deleted", deleted: 1, ids: ["msg_example"] } },
        },
      },
    },
    faults: [404, 409],
  },
] as const satisfies readonly Operation[];
