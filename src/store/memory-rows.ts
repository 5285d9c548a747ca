/** Memories as rows, and the statements that change them. */
import type { InStatement, InValue, Row } from "@libsql/client/web";
import type { Memory, MemoryOrigin } from "../core/memory.ts";
import type { MemoryChange, MemoryRow, Standing } from "../core/memory-rows.ts";
import { toStorable } from "./text.ts";

const FIELDS = [
  ...[
    "id",
    "document",
    "category",
    "importance",
    "origin",
    "outside",
    "source_session_id",
    "source_message_id",
  ],
  ...["quote", "seen_count", "last_seen_at", "created_at", "updated_at", "valid_to", "superseded_by"],
];
export const MEMORY_COLUMNS = FIELDS.join(", ");
/** For a statement that joins the table as `m`. */
export const M_MEMORY_COLUMNS = FIELDS.map((name) => `m.${name}`).join(", ");

const INSERT = `INSERT INTO memories (owner, slot, value, ${MEMORY_COLUMNS})
  VALUES (?, ?, ?${", ?".repeat(FIELDS.length)})`;
/** Owner and category are tokens of their own, so that a search only ever walks through what it may find. */
const INDEX = `INSERT INTO memory_index (rowid, owner, content)
  SELECT row, 'o' || hex(owner) || ' c' || hex(category), ? FROM memories
  WHERE id = ? AND owner = ? AND valid_to IS NULL`;
const UNINDEX = `DELETE FROM memory_index WHERE rowid = (SELECT row FROM memories
  WHERE id = ? AND owner = ? AND valid_to IS NULL)`;
const STRENGTHEN = `UPDATE memories SET seen_count = seen_count + 1, importance = max(importance, ?),
  last_seen_at = max(last_seen_at, ?), quote = coalesce(quote, ?),
  source_message_id = CASE WHEN source_session_id IS NULL THEN coalesce(?, source_message_id) ELSE source_message_id END,
  source_session_id = coalesce(source_session_id, ?)
  WHERE id = ? AND owner = ? AND valid_to IS NULL`;
const SUPERSEDE = `UPDATE memories SET valid_to = ?, superseded_by = ?
  WHERE id = ? AND owner = ? AND valid_to IS NULL`;
const EDIT = `UPDATE memories SET embedded = CASE WHEN document = ?1 THEN embedded ELSE '' END, document = ?1, slot = ?2,
  value = ?3, category = ?4, importance = ?5, updated_at = ?6 WHERE id = ?7 AND owner = ?8 AND valid_to IS NULL`;

export function toMemory(row: Row): Memory {
  return {
    id: row.id as string,
    document: row.document as string,
    category: row.category as string,
    importance: row.importance as number,
    origin: row.origin as MemoryOrigin,
    outside: row.outside === 1,
    sessionId: row.source_session_id as string | null,
    messageId: row.source_message_id as string | null,
    quote: row.quote as string | null,
    seenCount: row.seen_count as number,
    lastSeenAt: new Date(row.last_seen_at as number),
    createdAt: new Date(row.created_at as number),
    updatedAt: new Date(row.updated_at as number),
    supersededBy: row.superseded_by as string | null,
    validTo: row.valid_to === null ? null : new Date(row.valid_to as number),
  };
}

export function toStanding(row: Row): Standing {
  return {
    row: row.row as number,
    memory: toMemory(row),
    slot: row.slot as string,
    value: row.value as string,
  };
}

/** `must`: the statement has to change a row, or else somebody has been there first. */
export function changeStatements(
  owner: string,
  change: MemoryChange,
): { statement: InStatement; must?: boolean }[] {
  switch (change.type) {
    case "insert":
      return insertStatements(owner, change.row);
    case "supersede": {
      const args = [change.at.getTime(), change.by, change.id, owner];
      return [{ statement: { sql: SUPERSEDE, args } }];
    }
    case "strengthen": {
      const { importance, at, receipt, id } = change;
      const quote = receipt.quote === null ? null : toStorable(receipt.quote);
      const args = [importance, at.getTime(), quote, receipt.messageId, receipt.sessionId, id, owner];
      return [{ statement: { sql: STRENGTHEN, args }, must: true }];
    }
    case "edit": {
      const { memory, slot, value, terms } = change.row;
      const { document, category, importance, updatedAt, id } = memory;
      const texts = [toStorable(document), toStorable(slot), toStorable(value), toStorable(category)];
      const key = [id, owner];
      return [
        ...(change.past ? insertStatements(owner, change.past) : []),
        { statement: { sql: UNINDEX, args: key } },
        { statement: { sql: EDIT, args: [...texts, importance, updatedAt.getTime(), ...key] }, must: true },
        { statement: { sql: INDEX, args: [toStorable(terms), ...key] } },
      ];
    }
  }
}

function insertStatements(
  owner: string,
  { memory, slot, value, terms }: MemoryRow,
): { statement: InStatement }[] {
  const { id, document, category, importance, origin, outside, sessionId, messageId, quote } = memory;
  const { seenCount, lastSeenAt, createdAt, updatedAt, validTo, supersededBy } = memory;
  const clean = (text: string | null) => (text === null ? null : toStorable(text));
  const args: InValue[] = [
    ...[
      owner,
      toStorable(slot),
      toStorable(value),
      id,
      toStorable(document),
      toStorable(category),
      importance,
    ],
    ...[origin, outside ? 1 : 0, clean(sessionId), clean(messageId), clean(quote), seenCount],
    ...[
      lastSeenAt.getTime(),
      createdAt.getTime(),
      updatedAt.getTime(),
      validTo?.getTime() ?? null,
      supersededBy,
    ],
  ];
  const insert = { statement: { sql: INSERT, args } };
  if (validTo) return [insert];
  return [insert, { statement: { sql: INDEX, args: [toStorable(terms), id, owner] } }];
}
