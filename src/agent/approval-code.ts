/**
 * Approval in a chat that has no other way to approve: the words that ask, the short code that stands for one call,
 * and the answer read back from the user's next message. Pure but for randomness and hashing.
 */

/** Without 0, O, 1 and I: people copy codes by eye. */
const ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
/** 40 bits, for a code that works once, for its owner only, and expires. */
const CODE_LENGTH = 8;

export interface CallToApprove {
  /** What would run, made visible; see core/preview.ts. */
  preview: string;
  code: string;
}

export interface CodeDecision {
  decision: "allowed" | "denied";
  code: string;
}

export function createCode(): string {
  let code = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(CODE_LENGTH))) code += ALPHABET[byte & 31];
  return code;
}

/** SHA-256, hex: what is stored in place of the code. */
export async function hashCode(code: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(code));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The assistant's message that asks. `expiresAt`: ISO 8601, UTC. */
export function approvalText(calls: readonly CallToApprove[], expiresAt: string): string {
  const until = `${expiresAt.slice(0, 10)} ${expiresAt.slice(11, 16)} UTC`;
  const [only] = calls;
  if (only && calls.length === 1)
    return `This needs your approval before it runs:\n\n${fenced(only.preview)}\n\n${ask(only.code)} The code is good until ${until}.`;
  const each = calls.map(
    ({ preview, code }, index) => `**${index + 1}.**\n\n${fenced(preview)}\n\n${ask(code)}`,
  );
  return `These ${calls.length} calls need your approval before they run. Decide on each in a message of its own; the codes are good until ${until}.\n\n${each.join("\n\n")}`;
}

function ask(code: string): string {
  return `Reply with exactly \`approve ${code}\` or \`deny ${code}\`.`;
}

/** A Markdown code block whose fence is longer than any in the text, so that the text cannot end it. */
function fenced(text: string): string {
  let ticks = 2;
  for (const [run] of text.matchAll(/`{3,}/g)) ticks = Math.max(ticks, run.length);
  const fence = "`".repeat(ticks + 1);
  return `${fence}\n${text}\n${fence}`;
}

/** Characters of the longest message that may be a decision, white space included. */
const DECISION_LIMIT = 100;
/** One pair of quotes or backticks around the whole or around the code, as they come along when text is copied. */
const DECISION = /^([`'"]?)(approve|deny)[ \t]+(`?)([2-9A-HJ-NP-Z]{8})\3\1$/i;

/**
 * The decision that a message is, or null for any other message: it counts only when it is the whole of it. Whether
 * the code means anything is for the store to say; one that it does not know makes the message an ordinary one.
 */
export function parseDecision(message: string): CodeDecision | null {
  if (message.length > DECISION_LIMIT) return null;
  const found = DECISION.exec(message.trim());
  if (!found) return null;
  const [, , word = "", , code = ""] = found;
  return { decision: word.toLowerCase() === "approve" ? "allowed" : "denied", code: code.toUpperCase() };
}
