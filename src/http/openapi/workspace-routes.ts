/** `/api/files` and `/api/tools`. */
import * as z from "zod";
import { fileList } from "../files.ts";
import { toolList } from "../tools.ts";
import type { Operation } from "./operation.ts";

const MODIFIED = "2026-11-20T10:00:00.000Z";

export const WORKSPACE_ROUTES = [
  {
    id: "listFiles",
    method: "get",
    path: "/api/files",
    tag: "Files",
    summary: "List a folder",
    description: "Of the workspace, and nothing outside it.",
    family: "api",
    query: z.object({
      path: z.string().optional().describe("Relative to the workspace. Default: the workspace itself."),
      limit: z.int().min(1).max(10_000).optional().describe("Entries of one page. Default 1,000."),
      cursor: z.string().optional().describe("`next_cursor` of the page before."),
    }),
    replies: {
      200: {
        description: "What is in it.",
        json: {
          schema: fileList,
          examples: {
            Folder: {
              directory: ".",
              files: [
                { name: "src", is_dir: true, size: 0, modified_at: MODIFIED },
                { name: "notes.md", is_dir: false, size: 1204, modified_at: MODIFIED },
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
    id: "readFile",
    method: "get",
    path: "/api/files/content",
    tag: "Files",
    summary: "Fetch a file",
    description: "Its bytes, or with `range` some of them. What a browser could run is saved and not shown.",
    family: "api",
    query: z.object({
      path: z.string().describe("Relative to the workspace."),
      download: z.string().optional().describe("Set to anything: to be saved, whatever it is."),
    }),
    headers: z.object({
      range: z.string().optional().describe("`bytes=0-1023`, `bytes=1024-`, `bytes=-512`."),
      "if-range": z.string().optional().describe("The etag that `range` is meant for."),
      "if-none-match": z.string().optional().describe("The etag that you have already."),
    }),
    replies: {
      200: { description: "The file.", bytes: ["*/*"], headers: ["etag"] },
      206: {
        description: "The bytes that were asked for.",
        bytes: ["*/*"],
        headers: ["etag", "content-range"],
      },
      304: { description: "You have it already." },
    },
    faults: [400, 404, 409, 416],
  },
  {
    id: "listTools",
    method: "get",
    path: "/api/tools",
    tag: "Tools",
    summary: "List the tools",
    description: "The agent's own and those of the connected MCP servers.",
    family: "api",
    replies: {
      200: {
        description: "All there are.",
        json: {
          schema: toolList,
          examples: {
            Tools: {
              tools: [
                {
                  name: "read_file",
                  description: "Reads a text file of the workspace.",
                  parameters: {
                    type: "object",
                    properties: { path: { type: "string" } },
                    required: ["path"],
                  },
                  source: "dragoman",
                  risk: "read",
                  approval: "allow",
                  varies: false,
                  available: true,
                  offered: "always",
                },
              ],
            },
          },
        },
      },
    },
  },
] as const satisfies readonly Operation[];
