/** Rough token counts, for deciding what fits. On the high side: leaving out too much is cheaper than a refused request. */
import type { Message, Part, TextPart } from "../core/message.ts";
import type { ToolSpec } from "../core/model.ts";

const CHARS_PER_TOKEN = 3.5;
/** A message's own frame. */
const MESSAGE_TOKENS = 8;
/** An image of usual size, whatever the provider. */
const IMAGE_TOKENS = 1600;
/** Base64 characters of a document or a sound that make a token. */
const FILE_CHARS_PER_TOKEN = 24;

/** Latin text at a few characters a token, everything else at one. */
export function textTokens(text: string): number {
  let wide = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x2ff) wide++;
  return Math.ceil((text.length - wide) / CHARS_PER_TOKEN) + wide;
}

export function messageTokens(message: Message): number {
  let sum = MESSAGE_TOKENS;
  for (const part of message.content) sum += partTokens(part);
  return sum;
}

export function promptTokens(prompt: { system: TextPart[]; tools: ToolSpec[] }): number {
  let sum = 0;
  for (const part of prompt.system) sum += textTokens(part.text);
  for (const tool of prompt.tools) sum += textTokens(JSON.stringify(tool));
  return sum;
}

/** Characters of a message, media by what they weigh in tokens: an upper bound that costs next to nothing. */
export function messageWeight(message: Message): number {
  let sum = MESSAGE_TOKENS;
  for (const part of message.content) {
    if (part.type === "call") sum += part.args.length + part.name.length;
    else if ("text" in part)
      sum += part.text.length + (part.type === "reasoning" ? (part.seal?.length ?? 0) : 0);
    else sum += partTokens(part);
  }
  return sum;
}

function partTokens(part: Part): number {
  switch (part.type) {
    case "text":
    case "refusal":
      return textTokens(part.text);
    case "reasoning":
      return textTokens(part.text) + Math.ceil((part.seal?.length ?? 0) / CHARS_PER_TOKEN);
    case "call":
      return textTokens(part.name) + textTokens(part.args);
    case "image":
      return IMAGE_TOKENS;
    case "file":
      return part.source.kind === "data"
        ? Math.ceil(part.source.data.length / FILE_CHARS_PER_TOKEN)
        : IMAGE_TOKENS;
    case "raw":
      return textTokens(JSON.stringify(part.block));
  }
}
