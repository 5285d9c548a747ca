/** The chat completions door, put together. */
import type { Codec } from "./codec.ts";
import { errorReply } from "./openai-chat-error.ts";
import { ChatCollector } from "./openai-chat-reply.ts";
import { decodeChat } from "./openai-chat-request.ts";
import { type ChatRequest, chatRequest } from "./openai-chat-schema.ts";
import { ChatEncoder } from "./openai-chat-stream.ts";

export const openaiChat: Codec<ChatRequest> = {
  door: "chat-completions",
  heartbeat: ": keep-alive\n\n",
  request: chatRequest,
  decode: decodeChat,
  encoder: (meta) => new ChatEncoder(meta),
  collector: (meta) => new ChatCollector(meta),
  fault: errorReply,
};
