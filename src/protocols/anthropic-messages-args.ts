/** Arguments of a call: text in the core, since models write what they like; an object in this protocol, always. */
import { type Block, isObject } from "./anthropic-messages-blocks.ts";

/** The key under which arguments that are no JSON object are shown to the client, as text. */
const RAW_KEY = "_raw";

/** Arguments as the `input` object that the protocol requires. */
export function inputOf(args: string): Block {
  if (args === "") return {};
  const input = parseObject(args);
  return input ?? { [RAW_KEY]: args };
}

/** The way back, for a call that the client replays. */
export function argsOf(input: Block): string {
  const raw = input[RAW_KEY];
  if (typeof raw === "string" && parseObject(raw) === null && Object.keys(input).length === 1) return raw;
  return JSON.stringify(input);
}

function parseObject(text: string): Block | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
