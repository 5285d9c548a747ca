/**
 * Prompt caching: where a request says nothing of it, breakpoints are set as a careful agent would set them, since every
 * step of a loop sends the whole conversation again.
 */
import type { MessageCreateParamsStreaming } from "@anthropic-ai/sdk/resources/messages";

/** What the API takes in one request. */
const MOST_BREAKPOINTS = 4;

interface Cacheable {
  type?: string;
  cache_control?: unknown;
  content?: unknown;
}

/**
 * For a request that has none: one breakpoint behind tools and system, and one at the end of each of the last two user
 * turns, so that a step finds what the step before it wrote however many calls lie between. A single question without
 * tools is left alone: writing to the cache costs more than not using it.
 */
export function markForCaching(body: MessageCreateParamsStreaming): void {
  if (body.tools === undefined && body.messages.length < 2) return;
  if (breakpoints(body).length > 0) {
    limitBreakpoints(body);
    return;
  }
  const prefix = Array.isArray(body.system) ? body.system : body.tools;
  mark(prefix as Cacheable[] | undefined);
  let turns = 0;
  for (let i = body.messages.length - 1; i >= 0 && turns < 2; i--) {
    const message = body.messages[i]!;
    if (message.role !== "user") continue;
    mark(message.content as Cacheable[]);
    turns += 1;
  }
}

/** Sets the breakpoint on the last entry, without touching what others may hold. */
function mark(list: Cacheable[] | undefined): void {
  const last = list?.at(-1);
  if (list && last) list[list.length - 1] = { ...last, cache_control: { type: "ephemeral" } };
}

/**
 * A session adds up the breakpoints of all its requests, and the API refuses a fifth: the oldest in the messages go, since
 * the newest reach furthest.
 */
export function limitBreakpoints(body: MessageCreateParamsStreaming): void {
  const found = breakpoints(body);
  let surplus = found.length - MOST_BREAKPOINTS + (body.cache_control ? 1 : 0);
  for (const place of found) {
    if (surplus <= 0) return;
    if (!place.inMessages) continue;
    const { cache_control: _, ...rest } = place.list[place.index]!;
    place.list[place.index] = rest;
    surplus -= 1;
  }
}

interface Place {
  list: Cacheable[];
  index: number;
  inMessages: boolean;
}

/** In the order of the prompt: tools, system, messages. */
function breakpoints(body: MessageCreateParamsStreaming): Place[] {
  const found: Place[] = [];
  const scan = (list: unknown, inMessages: boolean) => {
    if (!Array.isArray(list)) return;
    for (let index = 0; index < list.length; index++) {
      const entry = list[index] as Cacheable;
      if (entry.type === "tool_result") scan(entry.content, inMessages);
      if (entry.cache_control) found.push({ list, index, inMessages });
    }
  };
  scan(body.tools, false);
  scan(body.system, false);
  for (const message of body.messages) scan(message.content, true);
  return found;
}
