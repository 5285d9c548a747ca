/** Arguments of a call: text in the core, since models write what they like; an object in the native door, always. */
import { toArgs } from "../core/args.ts";

/** The key under which text that is no JSON object is shown. */
const RAW_KEY = "_raw";

export function shownArgs(args: string): Record<string, unknown> {
  return toArgs(args) ?? { [RAW_KEY]: args };
}
