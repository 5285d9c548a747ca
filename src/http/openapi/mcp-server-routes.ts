/** `/mcp`: Dragoman as an MCP server. */
import * as z from "zod";
import type { Operation } from "./operation.ts";

const id = z.union([z.string(), z.int()]);
const params = z.record(z.string(), z.unknown()).optional();
const message = z
  .object({
    jsonrpc: z.literal("2.0"),
    id: id.optional().describe("Absent in notifications."),
    method: z.string().describe("`initialize`, `ping`, `tools/list`, `tools/call`, `notifications/…`."),
    params,
  })
  .meta({ id: "McpMessage", description: "A message of JSON-RPC 2.0." });
const answer = z
  .object({
    jsonrpc: z.literal("2.0"),
    id,
    result: z.record(z.string(), z.unknown()).optional(),
    error: z.object({ code: z.int(), message: z.string() }).optional(),
  })
  .meta({ id: "McpAnswer" });
const told = z.union([
  answer,
  z.object({ jsonrpc: z.literal("2.0"), method: z.literal("notifications/progress"), params }),
]);

const VERSION = "2025-11-25";
const REPLY = { reply: "There are two files.", session_id: "ses_example", run_id: "run_example" };
const CALL = { name: "ask_agent", arguments: { message: "Which files are here?" } };

export const MCP_SERVER_ROUTES = [
  {
    id: "mcp",
    method: "post",
    path: "/mcp",
    tag: "MCP",
    summary: "Dragoman as an MCP server",
    description:
      "Streamable HTTP without sessions: each request stands for itself, and `GET` and `DELETE` are answered with 405. The tools are `ask_agent` and `decide_approval`, which answer in a stream with progress, and `list_sessions`, `search_sessions`, `read_session`, `list_approvals`, `search_memory`, `search_notes` and `read_note`. A cancelled call stops its run, and so does a client that disconnects, unless it has sent `x-on-disconnect: continue`.",
    family: "mcp",
    headers: z.object({
      "x-provider": z.string().optional().describe("Wins over the prefix of the key."),
      "mcp-protocol-version": z.string().optional().describe("What `initialize` has agreed on."),
      "mcp-session-id": z
        .string()
        .optional()
        .describe("The word that came with the answer to `initialize`: cancellations need it."),
    }),
    body: {
      schema: message,
      examples: {
        Begin: {
          jsonrpc: "2.0",
          id: 0,
          method: "initialize",
          params: {
            protocolVersion: VERSION,
            capabilities: {},
            clientInfo: { name: "example", version: "1.0.0" },
          },
        },
        Ask: { jsonrpc: "2.0", id: 1, method: "tools/call", params: CALL },
      },
    },
    replies: {
      200: {
        description: "The answer; of a tool that takes long, in a stream.",
        json: {
          schema: answer,
          examples: {
            Begun: {
              jsonrpc: "2.0",
              id: 0,
              result: {
                protocolVersion: VERSION,
                capabilities: { tools: {} },
                serverInfo: { name: "dragoman", title: "Dragoman", version: "0.1.0" },
              },
            },
          },
        },
        events: {
          schema: told,
          framing: "message",
          examples: {
            Asked: [
              {
                jsonrpc: "2.0",
                method: "notifications/progress",
                params: { progressToken: 1, progress: 1, message: "Calls list_files: ." },
              },
              {
                jsonrpc: "2.0",
                id: 1,
                result: {
                  content: [{ type: "text", text: JSON.stringify(REPLY) }],
                  structuredContent: REPLY,
                },
              },
            ],
          },
        },
      },
      202: { description: "Nothing to answer: there were notifications only." },
    },
    faults: [406],
  },
] as const satisfies readonly Operation[];
