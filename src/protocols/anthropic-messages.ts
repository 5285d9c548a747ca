/** The messages door: the Anthropic Messages API, inbound. */
import { decodeMessages, type MessagesRequest, messagesRequest } from "./anthropic-messages-request.ts";
import { MessagesEncoder, PING } from "./anthropic-messages-stream.ts";
import { MessagesCollector } from "./anthropic-messages-whole.ts";
import { errorReply } from "./anthropic-messages-wire.ts";
import type { Codec } from "./codec.ts";

export const anthropicMessages: Codec<MessagesRequest> = {
  door: "messages",
  heartbeat: PING,
  request: messagesRequest,
  decode: decodeMessages,
  encoder: (meta) => new MessagesEncoder(meta),
  collector: (meta) => new MessagesCollector(meta),
  fault: errorReply,
};
