/** Memories out of and into the service as JSON Lines: streamed, so that neither way needs more memory than a few lines. */
import type { Context } from "hono";
import type * as z from "zod";
import type { MemoryDraft, MemoryVault } from "../core/memory.ts";
import type { Log } from "../core/platform.ts";
import { AppError } from "../errors.ts";
import { toProblem } from "../protocols/problem.ts";
import { type BodyLimits, streamBytes } from "./body.ts";
import type { AppEnv } from "./env.ts";
import { loggedBody } from "./logged-body.ts";
import { encodeLine, lineToDraft, type memoryImported, memoryLine } from "./memory-records.ts";

export const JSON_LINES = "application/jsonl";
/** By other names. */
const TYPES = /^application\/(?:jsonl|jsonlines|x-ndjson|x-jsonlines|ndjson)$/;
/** Of a whole import, which is never held as a whole. Bytes. */
export const IMPORT_LIMIT = 256 * 1024 * 1024;
/** Bytes. */
const LINE_LIMIT = 256 * 1024;
/** Lines that are written together. */
const LINES_AT_ONCE = 25;
/** Problems that the answer lists. */
const PROBLEMS_LIMIT = 20;

/** All memories of an owner, oldest first, each with its history. */
export function exportLines(vault: MemoryVault, owner: string, log: Log): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const pages = vault.dump(owner);
  const lines = new ReadableStream({
    async pull(controller) {
      const { done, value } = await pages.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value.map(encodeLine).join("")));
    },
    async cancel() {
      await pages.return();
    },
  });
  return loggedBody(lines, log);
}

type Imported = z.infer<typeof memoryImported>;

/** What is wrong with a line is said, and the other lines are imported. Sent again, it changes nothing more. */
export async function importLines(
  c: Context<AppEnv>,
  vault: MemoryVault,
  limits: Omit<BodyLimits, "limit">,
  now: Date,
): Promise<Imported> {
  const type = c.req.header("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (!type || !TYPES.test(type))
    throw new AppError(
      "unsupported_media_type",
      `The content type has to be ${JSON_LINES}: one JSON object a line, as GET /api/memory/export writes them.`,
    );
  const owner = c.get("owner");
  const out: Imported = {
    ...{ status: "imported", created: 0, superseded: 0, unchanged: 0, past: 0, failed: 0, errors: [] },
  };
  const fail = (line: number, message: string) => {
    out.failed++;
    if (out.errors.length < PROBLEMS_LIMIT) out.errors.push({ line, message });
  };
  let drafts: MemoryDraft[] = [];
  const write = async () => {
    for (const { outcome } of await vault.rememberAll(owner, drafts))
      out[outcome === "strengthened" ? "unchanged" : outcome]++;
    drafts = [];
    // A file answers without ever letting go of the event loop.
    await new Promise((resolve) => setTimeout(resolve));
  };
  for await (const { line, bytes } of linesOf(c.req.raw, { ...limits, limit: IMPORT_LIMIT })) {
    const draft = bytes === null ? `is longer than ${LINE_LIMIT / 1024} KiB` : draftOf(bytes, now);
    if (typeof draft === "string") fail(line, draft);
    else if (draft && drafts.push(draft) === LINES_AT_ONCE) await write();
  }
  if (drafts.length > 0) await write();
  return out;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** A sentence about what is wrong with it; null for an empty line. */
function draftOf(bytes: Uint8Array, now: Date): MemoryDraft | string | null {
  let value: unknown;
  try {
    const text = utf8.decode(bytes).trim();
    if (text === "") return null;
    value = JSON.parse(text);
  } catch {
    return "is not JSON in UTF-8";
  }
  const parsed = memoryLine.safeParse(value);
  return parsed.success ? lineToDraft(parsed.data, now) : toProblem(parsed.error, value).message;
}

/** Lines, numbered from 1; null in place of one that is too long. */
async function* linesOf(
  request: Request,
  limits: BodyLimits,
): AsyncGenerator<{ line: number; bytes: Uint8Array | null }, void, void> {
  let line = 1;
  let begun: Uint8Array[] = [];
  let length = 0;
  const take = (piece: Uint8Array) => {
    length += piece.length;
    if (length <= LINE_LIMIT) begun.push(piece.slice());
    else begun = [];
  };
  const whole = () => {
    const bytes = length <= LINE_LIMIT ? joined(begun, length) : null;
    begun = [];
    length = 0;
    return { line: line++, bytes };
  };
  for await (const piece of streamBytes(request, limits)) {
    let from = 0;
    for (let end = piece.indexOf(10); end !== -1; end = piece.indexOf(10, from)) {
      take(piece.subarray(from, end));
      yield whole();
      from = end + 1;
    }
    if (from < piece.length) take(piece.subarray(from));
  }
  if (length > 0) yield whole();
}

function joined(pieces: Uint8Array[], length: number): Uint8Array {
  const out = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}
