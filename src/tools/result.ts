/** What tools answer with: text in bounded size. */
import type { ToolOutput } from "../core/tool.ts";

/** Characters of one result: enough for a screenful of anything, a small part of any model's window. */
export const MAX_RESULT_CHARS = 32_000;
/** Characters shown of one line. */
export const MAX_LINE_CHARS = 2_000;
/** Bytes looked at to tell text from binary. */
const SNIFFED_BYTES = 8_192;

export function answer(text: string): ToolOutput {
  return { content: [{ type: "text", text }] };
}

/** The tool did its work, but what was asked for could not be done; the sentence says what to do instead. */
export function refusal(sentence: string): ToolOutput {
  return { content: [{ type: "text", text: sentence }], failed: true };
}

export function cutLine(line: string, limit: number = MAX_LINE_CHARS): string {
  if (line.length <= limit) return line;
  const last = line.charCodeAt(limit - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit;
  return `${line.slice(0, end)}… [${line.length - end} more characters in this line]`;
}

export function isBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, SNIFFED_BYTES).includes(0);
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Lines as an editor counts them: a line end at the very end starts no new one. */
export function countLines(text: string): number {
  if (text === "") return 0;
  let lines = text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}
