/** What a url answers and a command puts out: as it should be or not, or different from before. */
import type { GuardedFetch } from "../core/fetch.ts";
import type { Platform, Terminal } from "../core/platform.ts";
import type { Expectation, Look } from "../core/watch.ts";
import { AppError } from "../errors.ts";
import { digestOf } from "./watch-digest.ts";
import { type CompileRegex, isMet, type Seen } from "./watch-expect.ts";

/** Bytes of an answer, and characters of an output. */
const BODY_LIMIT = 2 * 1024 * 1024;
const OUTPUT_LIMIT = 200_000;
/** Characters of either that a finding shows. */
const SHOWN = 4_000;

export interface AnswerParts {
  expect: Expectation | undefined;
  digest: Platform["digest"];
  compile: CompileRegex;
  kept: Record<string, unknown> | null;
  timeoutMs: number;
  signal: AbortSignal;
}

/** Throws AppError when it cannot be asked, or answers with a fault that nothing was expected about. */
export async function lookAtUrl(fetch: GuardedFetch, url: string, parts: AnswerParts): Promise<Look> {
  const { expect, kept, timeoutMs, signal } = parts;
  const response = await fetch(url, {
    headers: conditionsOf(kept),
    ...{ maxBytes: BODY_LIMIT, timeoutMs, signal },
  });
  const { status, headers } = response;
  if (status === 304 && kept && typeof kept.digest === "string") {
    await response.body?.cancel();
    return { digest: kept.digest, kept, finding: null };
  }
  if (status >= 400 && expect?.status === undefined) {
    await response.body?.cancel();
    throw new AppError("unreachable", `It answered with status ${status}.`);
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  const text = new TextDecoder().decode(bytes);
  const seen = { status, exitCode: null, text };
  const tags = { etag: headers.get("etag"), modified: headers.get("last-modified") };
  return judged(seen, `status ${status}`, {
    ...{ ...parts, extra: status === 200 ? tags : {} },
    // What is no text may differ and read the same: there each byte counts.
    content: text.includes("\ufffd") ? new TextDecoder("windows-1252").decode(bytes) : text,
  });
}

function conditionsOf(kept: Record<string, unknown> | null): Record<string, string> {
  const { etag, modified } = kept ?? {};
  if (typeof etag === "string") return { "if-none-match": etag };
  return typeof modified === "string" ? { "if-modified-since": modified } : {};
}

export async function lookAtCommand(terminal: Terminal, command: string, parts: AnswerParts): Promise<Look> {
  const { timeoutMs, signal } = parts;
  const result = await terminal.run(command, { timeoutMs, outputLimit: OUTPUT_LIMIT, signal });
  if (result.timedOut || result.cancelled)
    throw new AppError("unreachable", `The command was not over within ${timeoutMs / 1_000} seconds.`);
  const seen = { status: null, exitCode: result.exitCode, text: result.output };
  const ending = result.exitCode === null ? "ended by a signal" : `exit code ${result.exitCode}`;
  return judged(seen, ending, { ...parts, content: result.output });
}

function shownOf(text: string): string {
  if (text.includes("\0")) return "[This is no text.]";
  return text.length > SHOWN ? `${text.slice(0, SHOWN).toWellFormed()}\n…` : text;
}

async function judged(
  seen: Seen,
  head: string,
  {
    expect,
    digest: atOnce,
    compile,
    content,
    extra,
  }: AnswerParts & { content: string; extra?: Record<string, unknown> },
): Promise<Look> {
  const told = (what: string) => `${what} (${head}):\n${shownOf(seen.text)}`;
  if (!expect) {
    const digest = await digestOf(JSON.stringify([seen.status, seen.exitCode, content]), atOnce);
    return { digest, kept: { ...extra, digest }, finding: told("It has changed") };
  }
  const met = isMet(expect, seen, compile);
  const digest = met ? "met" : "unmet";
  const on = expect.on ?? "change";
  const finding =
    on === "change" || on === digest ? told(met ? "It is as expected now" : "It is not as expected") : null;
  return { digest, kept: { ...extra, digest }, finding };
}
