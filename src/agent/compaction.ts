/**
 * Conversations that outgrow their model: a summary, written by the model itself, takes the place of the oldest turns
 * when the model reads the history. What is stored of the conversation stays as it was. A run that gets no summary goes
 * on with what trim.ts leaves of its history.
 */
import { Fold } from "../core/fold.ts";
import { type Message, textOf, type Usage, type UserMessage } from "../core/message.ts";
import type { ModelAdapter, ModelRequest } from "../core/model.ts";
import type { Log } from "../core/platform.ts";
import type { Sessions, Summary } from "../core/store.ts";
import { type Fault, toFault } from "../errors.ts";
import { messageTokens, messageWeight, textTokens } from "./estimate.ts";
import { type SessionTail, summaryMessage } from "./session-history.ts";
import { summaryPrompt, transcriptOf } from "./summary-prompt.ts";
import { messageBudget } from "./trim.ts";

/** Of what a request has for messages, the share beyond which they are compacted. */
const FULL = 0.7;
/** The share that stays word for word at least, in whole turns, where there is as much. */
const LEAST_KEPT = 0.25;
/** The share that stays word for word at most, but for the turn under way. */
const MOST_KEPT = 0.5;
/** Turns that stay word for word where they fit, the one under way among them. */
const TURNS_KEPT = 2;
/** With less than this nothing is left of a conversation either way. Tokens. */
const LEAST_ROOM = 1000;
/** A part smaller than this is not worth a model call while everything fits. */
const LEAST_GAIN = 0.1;
/** A summary's length at most. Tokens, and the share of what a request has for messages. */
const SUMMARY_TOKENS = 4096;
const SUMMARY_SHARE = 0.2;
/** Output asked for at most: the summary, and what a model thinks before it writes. Tokens, and the share of the window. */
const REPLY_TOKENS = 12_288;
const REPLY_SHARE = 0.25;
/** Quick look: with fewer characters than this share of the window's tokens there is nothing to do. */
const SMALL = 0.125;

/** What a run is about to send. */
export interface History {
  /** With all tools; its messages are not looked at. */
  request: ModelRequest;
  /** What stands before the run, as it is in the session. */
  base: readonly Message[];
  /** What the run has made. */
  made: readonly Message[];
  /** Tokens that the run may still use. */
  spare: number;
}

export interface Compacted {
  /** Of the model call, whether or not it was of use. */
  usage: Usage;
  /** Absent where no summary came of it: the history stays as it is. */
  done?: {
    /** How many messages at the start of `base` the summary now stands for, with the summary that stood there. */
    messages: number;
    summary: UserMessage;
    tokensBefore: number;
    tokensAfter: number;
  };
}

/** null: nothing was to be done, or it could not be tried. Never throws. */
export type Compaction = (history: History, signal: AbortSignal) => Promise<Compacted | null>;

export interface CompactionOptions {
  adapter: ModelAdapter;
  sessions: Pick<Sessions, "summarise">;
  owner: string;
  sessionId: string;
  runId: string;
  /** Tokens. */
  window: number;
  /** What the run begins with. */
  tail: Pick<SessionTail, "summary" | "seqs">;
  log: Log;
}

/** The compaction of one run. After an attempt that failed there is no other. */
export function createCompaction(options: CompactionOptions): Compaction {
  const { window, log, runId } = options;
  let { summary, seqs } = options.tail;
  let failed = false;

  return async (history, signal) => {
    if (failed || isSmall(history, window)) return null;
    const room = messageBudget(history.request, window);
    if (room < LEAST_ROOM) return null;
    const cut = cutOf(history, summary ? messageTokens(summaryMessage(summary.text)) : 0, room);
    const upTo = seqs[(cut?.messages ?? 0) - 1];
    if (!cut || upTo === undefined) return null;
    const most = Math.floor(Math.min(SUMMARY_TOKENS, room * SUMMARY_SHARE));
    const older = history.base.slice(0, cut.messages);
    const request = summaryRequest(history.request, { summary, older, most, window });
    // What the summary costs has to leave the run enough to answer.
    if (cut.older + (request.settings.maxTokens ?? 0) > history.spare / 2) return null;
    const reply = await writeSummary(options.adapter, request, signal);
    const { usage } = reply;
    try {
      if ("fault" in reply) throw new Unfit(reply.fault.message, reply.fault.code);
      const next: Summary = { upTo, text: shortened(reply.text, most) };
      const message = summaryMessage(next.text);
      const tokens = messageTokens(message);
      if (next.text === "") throw new Unfit("it is empty");
      if (tokens >= cut.older) throw new Unfit("it is longer than what it stands for");
      await store(options, next, { summary, seqs: seqs.slice(0, cut.messages) });
      summary = next;
      seqs = seqs.slice(cut.messages);
      const tokensAfter = cut.tokens - cut.older + tokens;
      return {
        usage,
        done: { messages: cut.messages, summary: message, tokensBefore: cut.tokens, tokensAfter },
      };
    } catch (error) {
      failed = true;
      const { code } = error instanceof Unfit ? error : toFault(error);
      if (code !== "cancelled")
        log("warning", "no summary of the conversation, its beginning is left out instead", {
          ...{ run_id: runId, code, error: String(error) },
        });
      return { usage };
    }
  };
}

/** A summary that cannot be used. */
class Unfit extends Error {
  readonly code: string;

  constructor(message: string, code = "upstream_error") {
    super(message);
    this.code = code;
  }
}

function isSmall({ base, made }: History, window: number): boolean {
  let weight = 0;
  for (const message of base) weight += messageWeight(message);
  for (const message of made) weight += messageWeight(message);
  return weight < window * SMALL;
}

interface Cut {
  /** Messages at the start of the base that are to be summarised. */
  messages: number;
  /** Tokens of them, with those of the summary that stood before them. */
  older: number;
  /** Tokens of the whole history. */
  tokens: number;
}

/** Where to cut: at the start of a turn, with no result behind the cut whose call is before it. null: nowhere, or no need. */
function cutOf({ base, made }: History, summary: number, room: number): Cut | null {
  const sizes = base.map(messageTokens);
  let tokens = summary;
  for (const size of sizes) tokens += size;
  let kept = 0;
  for (const message of made) kept += messageTokens(message);
  tokens += kept;
  if (tokens <= room * FULL) return null;
  const starts = turnStarts(base);
  let messages = 0;
  let turns = 0;
  for (let at = base.length - 1; at >= 0; at--) {
    kept += sizes[at] as number;
    if (!starts.has(at)) continue;
    if (messages > 0 && kept > room * MOST_KEPT) break;
    messages = at;
    if (++turns >= TURNS_KEPT && kept >= room * LEAST_KEPT) break;
  }
  let gain = 0;
  for (let at = 0; at < messages; at++) gain += sizes[at] as number;
  if (messages === 0 || (tokens <= room && gain < room * LEAST_GAIN)) return null;
  return { messages, older: summary + gain, tokens };
}

/** Positions where the user begins to speak, but for those with a result behind them whose call stands before. */
function turnStarts(messages: readonly Message[]): Set<number> {
  /** Call id -> the last message so far that makes the call. */
  const callers = new Map<string, number>();
  const callerOf = messages.map((message, at) => {
    if (message.role === "assistant")
      for (const part of message.content) if (part.type === "call") callers.set(part.id, at);
    return message.role === "tool" ? (callers.get(message.callId) ?? at) : at;
  });
  const starts = new Set<number>();
  let earliest = messages.length;
  for (let at = messages.length - 1; at >= 0; at--) {
    earliest = Math.min(earliest, callerOf[at] as number);
    if (speaks(messages[at]) && !speaks(messages[at - 1]) && earliest === at) starts.add(at);
  }
  return starts;
}

/** What comes in one go is one turn, the operator's words in between included. */
function speaks(message: Message | undefined): boolean {
  return message?.role === "user" || message?.role === "system";
}

function summaryRequest(
  { model, user, headers }: ModelRequest,
  from: { summary: Summary | null; older: readonly Message[]; most: number; window: number },
): ModelRequest {
  const { most, window, summary, older } = from;
  const maxTokens = Math.floor(Math.min(REPLY_TOKENS, window * REPLY_SHARE));
  const system = summaryPrompt(most);
  const room = window - maxTokens - textTokens(system.text);
  return {
    ...{ model, user, headers, tools: [], settings: { maxTokens } },
    system: [system],
    messages: [{ role: "user", content: [transcriptOf(older, summary?.text, room)] }],
  };
}

type Reply = { usage: Usage } & ({ text: string } | { fault: Fault });

async function writeSummary(
  adapter: ModelAdapter,
  request: ModelRequest,
  signal: AbortSignal,
): Promise<Reply> {
  const fold = new Fold();
  let usage: Usage = { input: 0, output: 0 };
  for await (const event of adapter.stream(request, signal)) {
    if (event.type === "failed") return { usage, fault: event.fault };
    if (event.type === "done") usage = event.usage;
    fold.push(event);
  }
  const { stop } = fold.message;
  if (stop === "refusal" || stop === "content-filter")
    return { usage, fault: { code: "upstream_error", message: `it was refused (${stop})`, status: 502 } };
  return { usage, text: textOf(fold.message).trim() };
}

async function store(
  { sessions, owner, sessionId }: CompactionOptions,
  next: Summary,
  from: { summary: Summary | null; seqs: readonly number[] },
): Promise<void> {
  const { summary, seqs } = from;
  const after = summary?.upTo ?? (seqs[0] as number) - 1;
  const source = { after, messages: seqs.length, summary: summary !== null };
  if (!(await sessions.summarise(owner, sessionId, next, source)))
    throw new Unfit("a message that it tells of was deleted meanwhile", "conflict");
}

/** Models write more than they are asked to, and one with a small window may have to go on after one with a large one. */
export function shortened(words: string, tokens: number): string {
  let out = words;
  for (let size = textTokens(out); size > tokens; size = textTokens(out))
    out = out.slice(0, Math.floor((out.length * tokens) / size) - 1).trimEnd();
  return out.length === words.length ? out : `${out.toWellFormed()}…`;
}
