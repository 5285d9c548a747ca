/** The tools that the conformance suite calls by name, served as ours are: they show what a tool can answer with. */
import * as z from "zod";
import { AppError } from "../../src/errors.ts";
import type { McpCaller } from "../../src/http/mcp-calls.ts";
import type { ServedResult, ServedTool } from "../../src/mcp/server.ts";

/** A red pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/** A header without samples. */
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

type Content = Extract<ServedResult, { content: unknown }>["content"];

function answering(name: string, content: Content): ServedTool<McpCaller> {
  return tool(name, async () => ({ content }));
}

function tool(name: string, run: ServedTool<McpCaller>["run"], more: Partial<ServedTool<McpCaller>> = {}) {
  return { name, title: name, description: name, args: z.object({}), hints: {}, run, ...more };
}

const resource = (uri: string, mimeType: string, text: string) =>
  ({ type: "resource", resource: { uri, mimeType, text } }) as const;
const address = z.object({ street: z.string(), city: z.string() }).partial().meta({ id: "address" });

export const CONFORMANCE_TOOLS: ServedTool<McpCaller>[] = [
  answering("test_simple_text", [{ type: "text", text: "This is a simple text response for testing." }]),
  answering("test_image_content", [{ type: "image", data: PNG, mimeType: "image/png" }]),
  answering("test_audio_content", [{ type: "audio", data: WAV, mimeType: "audio/wav" }]),
  answering("test_embedded_resource", [
    resource("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ]),
  answering("test_multiple_content_types", [
    { type: "text", text: "Multiple content types test:" },
    { type: "image", data: PNG, mimeType: "image/png" },
    resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ]),
  tool("test_error_handling", async () => {
    throw new AppError("invalid_request", "This tool intentionally returns an error for testing");
  }),
  tool(
    "test_tool_with_progress",
    async (_, { progress }) => {
      for (const word of ["begins", "is half done", "ends"]) progress(word);
      return { content: [{ type: "text", text: "It has told three times." }] };
    },
    { long: true },
  ),
  tool("json_schema_2020_12_tool", async () => ({ content: [] }), {
    args: z.strictObject({ name: z.string(), address }).partial(),
  }),
];
