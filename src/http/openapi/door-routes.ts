/** The routes of `/v1` that official SDKs talk to models through. */
import * as z from "zod";
import { countTokensRequest, messagesRequest } from "../../protocols/anthropic-messages-request.ts";
import { chatRequest } from "../../protocols/openai-chat-schema.ts";
import { chatChunk, chatCompletion, messageEvent, messageReply, tokenCount } from "./door-replies.ts";
import type { Operation } from "./operation.ts";
import { provider } from "./parameters.ts";

const runHeaders = z.object({
  "x-provider": provider,
  "x-session-id": z
    .string()
    .optional()
    .describe(
      "The run belongs to this session: the server keeps the history, and only new messages are needed. `new`, an id of a session, or a label of your own.",
    ),
  "x-agent-tools": z
    .string()
    .optional()
    .describe("`all`, `none`, or names with commas: which of the agent's tools join."),
  "x-agent-events": z.literal("1").optional().describe("Shows in the stream what the agent's tools do."),
  "x-approval": z
    .literal("deny")
    .optional()
    .describe("What would ask for approval is refused, and the model told, instead of asking in the reply."),
  "x-on-disconnect": z
    .literal("continue")
    .optional()
    .describe("Lets the run go on when the client goes. Otherwise it is cancelled."),
});

const messagesHeaders = runHeaders.extend({
  "anthropic-version": z.string().optional().describe("Any is accepted."),
  "anthropic-beta": z.string().optional().describe("Passed on to an Anthropic upstream."),
});

const chatExample = {
  model: "dragoman",
  messages: [{ role: "user", content: "Which files are in your workspace?" }],
};
const weather = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
};

const CHUNK = {
  id: "chatcmpl-example",
  object: "chat.completion.chunk",
  created: 1795000000,
  model: "dragoman",
};
const text = (content: string) => ({
  ...CHUNK,
  choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
});

const USAGE = {
  input_tokens: 812,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 12,
};
const MESSAGE = { id: "msg_example", type: "message", role: "assistant", model: "dragoman" };

export const DOOR_ROUTES = [
  {
    id: "createChatCompletion",
    method: "post",
    path: "/v1/chat/completions",
    tag: "Chat completions",
    summary: "Chat completion",
    description:
      "OpenAI's chat completions, in front of every provider. Tools in the request are the client's and are handed back to it; the agent's own tools run on the server. Fields that are not listed pass to an upstream of the same family. Also answers below `/openai/v1` and `/v1/v1`.",
    family: "chat",
    headers: runHeaders,
    body: {
      schema: chatRequest.meta({ id: "ChatCompletionRequest" }),
      examples: {
        Ask: chatExample,
        Stream: { ...chatExample, stream: true, stream_options: { include_usage: true } },
        "Own tool": {
          model: "dragoman/raw@gpt-5.5",
          messages: [{ role: "user", content: "What is the weather in Lisbon?" }],
          tools: [{ type: "function", function: { name: "get_weather", parameters: weather } }],
        },
      },
    },
    replies: {
      200: {
        description: "The reply: whole, or with `stream: true` as server-sent events.",
        headers: ["x-run-id", "x-session-id", "x-upstream-model"],
        json: {
          schema: chatCompletion,
          examples: {
            Reply: {
              id: "chatcmpl-example",
              object: "chat.completion",
              created: 1795000000,
              model: "dragoman",
              choices: [
                {
                  index: 0,
                  message: { role: "assistant", content: "README.md and package.json.", refusal: null },
                  logprobs: null,
                  finish_reason: "stop",
                },
              ],
              usage: {
                prompt_tokens: 812,
                completion_tokens: 12,
                total_tokens: 824,
                prompt_tokens_details: { cached_tokens: 0 },
                completion_tokens_details: { reasoning_tokens: 0 },
              },
              system_fingerprint: null,
            },
          },
        },
        events: {
          schema: chatChunk,
          framing: "bare",
          examples: {
            Streamed: [
              {
                ...CHUNK,
                choices: [
                  {
                    index: 0,
                    delta: { role: "assistant", content: "" },
                    logprobs: null,
                    finish_reason: null,
                  },
                ],
              },
              text("README.md and "),
              text("package.json."),
              { ...CHUNK, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }] },
            ],
          },
        },
      },
    },
    faults: [409],
  },
  {
    id: "createMessage",
    method: "post",
    path: "/v1/messages",
    tag: "Messages",
    summary: "Message",
    description:
      "Anthropic's Messages API, in front of every provider. The key comes in `x-api-key` or as a Bearer token; any version and any beta is accepted. Tools in the request are the client's; the agent's own run on the server. Also answers below `/openai/v1` and `/v1/v1`.",
    family: "messages",
    query: z.object({ beta: z.enum(["true"]).optional().describe("Passed on to an Anthropic upstream.") }),
    headers: messagesHeaders,
    body: {
      schema: messagesRequest.meta({ id: "MessagesRequest" }),
      examples: {
        Ask: {
          model: "dragoman",
          max_tokens: 4096,
          messages: [{ role: "user", content: "Summarise notes.md in three lines." }],
        },
        "Own tool": {
          model: "dragoman",
          max_tokens: 4096,
          stream: true,
          system: "Answer in one sentence.",
          tools: [{ name: "get_weather", input_schema: weather }],
          messages: [{ role: "user", content: [{ type: "text", text: "What is the weather in Lisbon?" }] }],
        },
      },
    },
    replies: {
      200: {
        description: "The reply: whole, or with `stream: true` as server-sent events.",
        headers: ["x-run-id", "x-session-id", "x-upstream-model"],
        json: {
          schema: messageReply,
          examples: {
            Reply: {
              ...MESSAGE,
              content: [{ type: "text", text: "The notes say three things." }],
              stop_reason: "end_turn",
              stop_sequence: null,
              usage: USAGE,
            },
          },
        },
        events: {
          schema: messageEvent,
          framing: "named",
          examples: {
            Streamed: [
              {
                type: "message_start",
                message: { ...MESSAGE, content: [], stop_reason: null, stop_sequence: null, usage: USAGE },
              },
              { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
              { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "The notes " } },
              {
                type: "content_block_delta",
                index: 0,
                delta: { type: "text_delta", text: "say three things." },
              },
              { type: "content_block_stop", index: 0 },
              {
                type: "message_delta",
                delta: { stop_reason: "end_turn", stop_sequence: null },
                usage: USAGE,
              },
              { type: "message_stop" },
            ],
          },
        },
      },
    },
    faults: [409],
  },
  {
    id: "countTokens",
    method: "post",
    path: "/v1/messages/count_tokens",
    tag: "Messages",
    summary: "Count tokens",
    description:
      "The provider's own count where it has one; otherwise an estimate, marked by `x-estimated: 1`.",
    family: "messages",
    headers: messagesHeaders.pick({ "x-provider": true, "anthropic-version": true, "anthropic-beta": true }),
    body: {
      schema: countTokensRequest.meta({ id: "CountTokensRequest" }),
      examples: {
        Count: { model: "claude-sonnet-5", messages: [{ role: "user", content: "How long is this?" }] },
      },
    },
    replies: {
      200: {
        description: "How many tokens the input has.",
        headers: ["x-upstream-model", "x-estimated"],
        json: { schema: tokenCount, examples: { Count: { input_tokens: 12 } } },
      },
    },
  },
] as const satisfies readonly Operation[];
