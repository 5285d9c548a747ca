/** The tools of `/mcp` that look at what the service keeps: sessions, and calls that wait for a decision. */
import * as z from "zod";
import { namedCalls } from "../agent/members.ts";
import { AGENT } from "../agent/target.ts";
import type { ServedTool } from "../mcp/server.ts";
import { pendingCall } from "../protocols/native-chat-events.ts";
import {
  encodeMessage,
  encodePending,
  encodeSession,
  messageList,
  sessionList,
  sessionView,
} from "../protocols/native-chat-records.ts";
import type { Services } from "../services.ts";
import type { McpCaller } from "./mcp-calls.ts";

const PAGE = 20;
const LARGEST_PAGE = 200;

const limit = z.int().min(1).max(LARGEST_PAGE).default(PAGE).describe("Entries of one answer.");
const cursor = z.string().optional().describe("`next_cursor` of the answer before.");
const sessionId = z.string().min(1);

const listArgs = z.object({ limit, cursor });
const searchArgs = z.object({
  query: z.string().trim().min(1).max(500).describe("Words of the titles or the messages."),
  ...{ limit, cursor },
});
// Plain objects: a schema that is a reference is none of the protocol's.
const listResult = z.object(sessionList.shape);
const readArgs = z.object({ session_id: sessionId, limit, cursor });
const readResult = z.object({ session: sessionView, ...messageList.shape });
const waitingArgs = z.object({
  session_id: sessionId.optional().describe("Only those of this session."),
  limit,
});
const waitingResult = z.object({
  approvals: z
    .array(z.object({ session_id: z.string(), run_id: z.string(), ...pendingCall.shape }))
    .describe("Those that run out first come first."),
});

const READS = { readOnlyHint: true, openWorldHint: false } as const;

export function recordTools({ store, platform }: Services): ServedTool<McpCaller>[] {
  const page = async (owner: string, options: z.infer<typeof listArgs> & { query?: string }) => {
    const { sessions, next } = await store.sessions.list(owner, options);
    return { structured: { sessions: sessions.map(encodeSession), next_cursor: next } };
  };

  const list: ServedTool<McpCaller, z.infer<typeof listArgs>> = {
    name: "list_sessions",
    title: "List sessions",
    description: "The conversations that the agent has had, those with the newest activity first.",
    args: listArgs,
    result: listResult,
    hints: READS,
    run: (args, { caller }) => page(caller.owner, args),
  };

  const search: ServedTool<McpCaller, z.infer<typeof searchArgs>> = {
    name: "search_sessions",
    title: "Search sessions",
    description: "The conversations whose title or messages have these words, newest activity first.",
    args: searchArgs,
    result: listResult,
    hints: READS,
    run: (args, { caller }) => page(caller.owner, args),
  };

  const read: ServedTool<McpCaller, z.infer<typeof readArgs>> = {
    name: "read_session",
    title: "Read a session",
    description:
      "The messages of one conversation, oldest first: what was said, and which tools were called.",
    args: readArgs,
    result: readResult,
    hints: READS,
    async run({ session_id: id, ...options }, { caller: { owner } }) {
      const session = await store.sessions.get(owner, id);
      const { messages, next } = await store.sessions.messages(owner, id, options);
      const views = messages.map((stored) =>
        encodeMessage(stored, stored.message.role === "assistant" ? (stored.message.agent ?? AGENT) : null),
      );
      return { structured: { session: encodeSession(session), messages: views, next_cursor: next } };
    },
  };

  const waiting: ServedTool<McpCaller, z.infer<typeof waitingArgs>> = {
    name: "list_approvals",
    title: "List approvals",
    description:
      "The calls that the agent waits with until a person decides, each with all that would run (`preview`). decide_approval takes the decision.",
    args: waitingArgs,
    result: waitingResult,
    hints: READS,
    async run({ session_id: id, limit }, { caller: { owner } }) {
      if (id !== undefined) await store.sessions.get(owner, id);
      const now = platform.now();
      const calls = await (id === undefined
        ? store.runs.waiting(owner, now, limit)
        : store.runs.pending(owner, id, now));
      const shown = await namedCalls(store.runs, owner, calls.slice(0, limit));
      const approvals = shown.map((call) => ({
        ...{ session_id: call.sessionId, run_id: call.runId },
        ...encodePending(call),
      }));
      return { structured: { approvals } };
    },
  };

  return [list, search, read, waiting] as ServedTool<McpCaller>[];
}
