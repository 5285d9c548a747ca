/** Runs and their calls as rows. What is too long for a row that is often rewritten goes on in run_pieces. */
import type { InStatement, InValue, Row } from "@libsql/client/web";
import type { StopReason, ToolResultMessage, Usage } from "../core/message.ts";
import type { CallRecord, CallState, RunRecord, RunSpec, RunStatus } from "../core/run.ts";
import type { Risk } from "../core/tool.ts";
import type { Fault } from "../errors.ts";
import { joinPieces } from "./pieces.ts";
import type { Reader } from "./reader.ts";
import { PIECE_LENGTH, toPieces, toStorable, toStorableJson } from "./text.ts";

/** Characters of a spec, of arguments and of a result that stay in their row. */
export const IN_ROW = 16 * 1024;

const RUN_FIELDS = [
  ...["id", "owner", "session_id", "status", "spec", "spec_pieces", "sealed_key", "history_seq", "steps"],
  ...["last_event", "recoveries", "usage", "stop", "fault", "created_at", "updated_at", "ended_at", "root"],
];
export const RUN_COLUMNS = RUN_FIELDS.join(", ");
/** For a statement that joins the table as `r`. */
export const R_RUN_COLUMNS = RUN_FIELDS.map((name) => `r.${name}`).join(", ");
export const CALL_COLUMNS = `run_id, session_id, call_id, step, position, name, args, args_pieces, risk, state, code_hash,
  expires_at, decided_at, result, result_pieces`;

/** Names of the parts that run_pieces holds. */
export const SPEC = "spec";
export const partOfFrames = (last: number) => `frames ${last}`;
const partOfArgs = (callId: string) => `args ${callId}`;
const partOfResult = (callId: string) => `result ${callId}`;

/** Pieces of runs that a condition finds; its parameters come last. A part that is written again is replaced. */
export function pieceInsert(condition: string): string {
  return `INSERT INTO run_pieces (owner, run_id, part, piece, content)
    SELECT owner, id, ?, ?, ? FROM runs WHERE ${condition}
    ON CONFLICT (run_id, part, piece) DO UPDATE SET content = excluded.content`;
}

export function pieceStatements(
  insert: string,
  part: string,
  rest: string[],
  condition: InValue[],
): InStatement[] {
  return rest.map((content, index) => ({ sql: insert, args: [part, index + 1, content, ...condition] }));
}

/** `RUN_COLUMNS` -> record. */
export async function toRun(reader: Reader, row: Row): Promise<RunRecord> {
  const id = row.id as string;
  const pieces = row.spec_pieces as number;
  const first = row.spec as string;
  const spec = pieces > 1 ? await joinPieces(reader, "run", [id, SPEC], first, pieces) : first;
  const fault = row.fault as string | null;
  const endedAt = row.ended_at as number | null;
  return {
    id,
    owner: row.owner as string,
    sessionId: row.session_id as string,
    root: (row.root as string | null) ?? undefined,
    status: row.status as RunStatus,
    spec: JSON.parse(spec) as RunSpec,
    sealedKey: row.sealed_key as string | null,
    historySeq: row.history_seq as number,
    steps: row.steps as number,
    lastEvent: row.last_event as number,
    recoveries: row.recoveries as number,
    usage: JSON.parse(row.usage as string) as Usage,
    stop: (row.stop as StopReason | null) ?? undefined,
    fault: fault === null ? undefined : (JSON.parse(fault) as Fault),
    createdAt: new Date(row.created_at as number),
    updatedAt: new Date(row.updated_at as number),
    endedAt: endedAt === null ? undefined : new Date(endedAt),
  };
}

/** `CALL_COLUMNS` -> record. */
export async function toCall(reader: Reader, row: Row): Promise<CallRecord> {
  const runId = row.run_id as string;
  const callId = row.call_id as string;
  const whole = (part: string, first: string, pieces: number) =>
    pieces > 1 ? joinPieces(reader, "run", [runId, part], first, pieces) : first;
  const result = row.result as string | null;
  return {
    runId,
    sessionId: row.session_id as string,
    callId,
    step: row.step as number,
    position: row.position as number,
    name: row.name as string,
    args: await whole(partOfArgs(callId), row.args as string, row.args_pieces as number),
    risk: row.risk as Risk,
    state: row.state as CallState,
    codeHash: row.code_hash as string | null,
    expiresAt: toDate(row.expires_at),
    decidedAt: toDate(row.decided_at),
    result:
      result === null
        ? null
        : (JSON.parse(
            await whole(partOfResult(callId), result, row.result_pieces as number),
          ) as ToolResultMessage),
  };
}

export async function toCalls(reader: Reader, rows: Row[]): Promise<CallRecord[]> {
  const calls: CallRecord[] = [];
  for (const row of rows) calls.push(await toCall(reader, row));
  return calls;
}

/** A call as the JSON array that {@link toChunks} puts together, and what does not fit its row. */
export function fromCall(call: CallRecord): { line: string; rest: { part: string; pieces: string[] }[] } {
  const callId = toStorable(call.callId);
  const [args, ...moreArgs] = toPieces(toStorable(call.args), IN_ROW);
  const { result, moreResult } = fromResult(call.result);
  const columns = [
    ...[callId, call.step, call.position, call.name, args, moreArgs.length + 1, call.risk, call.state],
    ...[call.codeHash, call.expiresAt?.getTime() ?? null, call.decidedAt?.getTime() ?? null],
    ...[result, moreResult.length + 1],
  ];
  const rest = [];
  if (moreArgs.length > 0) rest.push({ part: partOfArgs(callId), pieces: moreArgs });
  if (moreResult.length > 0) rest.push({ part: partOfResult(callId), pieces: moreResult });
  return { line: toStorableJson(columns), rest };
}

/** The call's id, its result and the number of its pieces, as {@link fromCall} has them. */
export function fromResultOf(callId: string, message: ToolResultMessage): ReturnType<typeof fromCall> {
  const id = toStorable(callId);
  const { result, moreResult } = fromResult(message);
  const line = toStorableJson([id, result, moreResult.length + 1]);
  return { line, rest: moreResult.length > 0 ? [{ part: partOfResult(id), pieces: moreResult }] : [] };
}

function fromResult(message: ToolResultMessage | null): { result: string | null; moreResult: string[] } {
  if (message === null) return { result: null, moreResult: [] };
  const [result, ...moreResult] = toPieces(toStorableJson(message), IN_ROW);
  return { result, moreResult };
}

/** JSON arrays of lines, each no longer than a value may be. */
export function toChunks(lines: string[]): string[] {
  const chunks: string[] = [];
  let chunk: string[] = [];
  let length = 0;
  for (const line of lines) {
    if (chunk.length > 0 && length + line.length > PIECE_LENGTH) {
      chunks.push(`[${chunk.join()}]`);
      chunk = [];
      length = 0;
    }
    chunk.push(line);
    length += line.length;
  }
  if (chunk.length > 0) chunks.push(`[${chunk.join()}]`);
  return chunks;
}

function toDate(value: Row[string] | undefined): Date | null {
  return typeof value === "number" ? new Date(value) : null;
}
