/** `/api/mcp`. */
import * as z from "zod";
import { MCP_TRANSPORTS } from "../../core/mcp.ts";
import { connectRequest } from "../../mcp/server-spec.ts";
import { approveRequest } from "../mcp.ts";
import type { Operation } from "./operation.ts";
import { idempotency } from "./parameters.ts";

const serverId = z.object({ id: z.string().meta({ examples: ["files"] }) });

const facts = {
  name: z.string(),
  transport: z.enum(MCP_TRANSPORTS),
  command: z.string().nullable(),
  args: z.array(z.string()),
  url: z.string().nullable(),
};
const definition = z
  .looseObject({
    title: z.string().optional(),
    description: z.string().optional(),
    inputSchema: z.record(z.string(), z.unknown()),
  })
  .meta({ id: "McpToolDefinition" });
const server = z
  .object({
    ...facts,
    status: z.enum(["connected", "connecting", "disconnected", "error", "needs_reauth"]),
    toolNames: z.array(z.string()).describe("As models are given them: `server__tool`."),
    error: z
      .string()
      .nullable()
      .describe("What is wrong with the connection, or why some tools are not offered."),
    authorize_at: z.string().nullable().describe("With `needs_reauth`: where a person authorizes it."),
    held_back: z
      .array(
        z.object({
          name: z.string(),
          hash: z.string().describe("Of `now`."),
          approved: definition.nullable().describe("What was approved; null for a tool that came later."),
          now: definition,
        }),
      )
      .describe("Tools whose definition is not the approved one. They are not offered until it is."),
  })
  .meta({ id: "McpServer" });
const saved = z
  .object({
    id: z.string(),
    ...facts,
    is_active: z.boolean(),
    tools: z.object({ include: z.array(z.string()), exclude: z.array(z.string()) }),
    env: z.array(z.string()).describe("Names alone."),
    headers: z.array(z.string()).describe("Names alone."),
    last_error: z.string().nullable(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: "McpSavedServer" });
const servers = z
  .object({ servers: z.record(z.string(), server), saved_servers: z.array(saved) })
  .meta({ id: "McpServers" });
const connected = z
  .object({
    status: z.literal("connected"),
    id: z.string(),
    tools: z.array(z.string()).describe("As models are given them: `server__tool`."),
    problem: z.string().nullable().describe("Why some of its tools are not offered."),
  })
  .meta({ id: "McpConnected" });

const FILES = {
  name: "Files",
  transport: "stdio" as const,
  command: "mcp-server-filesystem",
  args: ["/srv/files"],
  url: null,
};
const READ = { description: "Reads a file.", inputSchema: { type: "object" } };

export const MCP_ROUTES = [
  {
    id: "listMcpServers",
    method: "get",
    path: "/api/mcp/servers",
    tag: "MCP servers",
    summary: "List the MCP servers",
    description:
      "`servers` are those that are to be connected, with their health; `saved_servers` all that are known. What `env` and `headers` hold is never shown.",
    family: "api",
    replies: {
      200: {
        description: "All of them.",
        json: {
          schema: servers,
          examples: {
            One: {
              servers: {
                files: {
                  ...FILES,
                  status: "connected",
                  toolNames: ["files__read_file"],
                  error: null,
                  authorize_at: null,
                  held_back: [{ name: "list", hash: "5f1c", approved: null, now: READ }],
                },
              },
              saved_servers: [
                {
                  id: "files",
                  ...FILES,
                  is_active: true,
                  tools: { include: [], exclude: ["write_*"] },
                  env: ["LOG_LEVEL"],
                  headers: [],
                  last_error: null,
                  created_at: "2026-11-20T10:00:00.000Z",
                },
              ],
            },
          },
        },
      },
    },
  },
  {
    id: "connectMcpServer",
    method: "post",
    path: "/api/mcp/connect",
    tag: "MCP servers",
    summary: "Connect an MCP server",
    description:
      "Saves it, connects it, and approves its tools as they are now. A server of the same id is replaced; `server_id` alone connects a saved one again. What cannot be reached is saved as inactive.",
    family: "api",
    headers: idempotency,
    body: {
      schema: connectRequest,
      examples: {
        "A program": {
          name: "Files",
          transport: "stdio",
          command: "mcp-server-filesystem",
          args: ["/srv/files"],
          env: { LOG_LEVEL: "info" },
          tools: { exclude: ["write_*"] },
        },
        "Over HTTP": {
          server_id: "search",
          transport: "http",
          url: "https://mcp.example.com/mcp",
          headers: { authorization: "Bearer token" },
        },
        "A saved one": { server_id: "files" },
      },
    },
    replies: {
      201: {
        description: "It is connected.",
        headers: ["idempotency-replayed"],
        json: {
          schema: connected,
          examples: {
            Connected: { status: "connected", id: "files", tools: ["files__read_file"], problem: null },
          },
        },
      },
    },
    faults: [404, 409, 422, 501, 502, 507],
  },
  {
    id: "approveMcpTools",
    method: "post",
    path: "/api/mcp/servers/{id}/approve",
    tag: "MCP servers",
    summary: "Approve changed tools",
    description:
      "A tool whose definition changes after it was approved is held back, and so is one that comes later. This approves what they say now. 409: what was seen has changed again.",
    family: "api",
    params: serverId,
    body: {
      schema: approveRequest,
      examples: { All: {}, "What was seen": { tools: [{ name: "list", hash: "5f1c" }] } },
    },
    replies: {
      200: {
        description: "How many were approved.",
        json: {
          schema: z.object({ status: z.literal("approved"), approved: z.int() }).meta({ id: "McpApproved" }),
          examples: { One: { status: "approved", approved: 1 } },
        },
      },
    },
    faults: [404, 409, 507],
  },
  {
    id: "disconnectMcpServer",
    method: "post",
    path: "/api/mcp/disconnect/{id}",
    tag: "MCP servers",
    summary: "Disconnect an MCP server",
    description: "The saved entry stays, inactive.",
    family: "api",
    params: serverId,
    replies: {
      200: {
        description: "It is disconnected.",
        json: {
          schema: z
            .object({ status: z.literal("disconnected"), id: z.string() })
            .meta({ id: "McpDisconnected" }),
          examples: { Files: { status: "disconnected", id: "files" } },
        },
      },
    },
    faults: [404, 507],
  },
  {
    id: "forgetMcpServer",
    method: "delete",
    path: "/api/mcp/saved/{id}",
    tag: "MCP servers",
    summary: "Forget an MCP server",
    description: "Disconnects it and removes what was saved of it.",
    family: "api",
    params: serverId,
    replies: {
      200: {
        description: "It is gone.",
        json: {
          schema: z
            .object({ status: z.literal("deleted"), deleted: z.literal(1) })
            .meta({ id: "McpForgotten" }),
          examples: { Gone: { status: "deleted", deleted: 1 } },
        },
      },
    },
    faults: [404],
  },
] as const satisfies readonly Operation[];
