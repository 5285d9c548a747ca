/** Named agents as rows. */
import type { InValue, Row } from "@libsql/client/web";
import { AGENTS_LIMIT, type AgentDraft, type Agents, type NamedAgent } from "../core/agents.ts";
import { createId } from "../core/id.ts";
import type { ProviderName } from "../core/message.ts";
import type { PolicyRule } from "../core/policy.ts";
import { AppError } from "../errors.ts";
import { fromTimeCursor, toCursor } from "./cursor.ts";
import { isConstraint } from "./faults.ts";
import type { Reader } from "./reader.ts";
import { toStorable, toStorableJson } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

const COLUMNS =
  "id, name, description, instructions, provider, model, tools, policy, sub_agents, created_at, updated_at";
/** A name is never like an id. */
const THIS = "owner = ? AND id = coalesce((SELECT id FROM agents WHERE owner = ? AND name = ?), ?)";
const GET = `SELECT ${COLUMNS} FROM agents WHERE ${THIS}`;
const INSERT = `INSERT INTO agents (owner, ${COLUMNS}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
  WHERE (SELECT count(*) FROM agents WHERE owner = ?) < ${AGENTS_LIMIT} RETURNING ${COLUMNS}`;
const FIELDS = ["name", "description", "instructions", "provider", "model", "tools", "policy", "sub_agents"];
/** Each field has two arguments: whether it changes, and to what. */
const UPDATE = `UPDATE agents SET ${FIELDS.map((name) => `${name} = CASE WHEN ? THEN ? ELSE ${name} END`).join(", ")},
    updated_at = max(?, updated_at + 1)
  WHERE ${THIS} RETURNING ${COLUMNS}`;
const DELETE = `DELETE FROM agents WHERE ${THIS}`;
const LIST = `SELECT ${COLUMNS} FROM agents WHERE owner = ? AND (created_at, id) < (?, ?)
  ORDER BY created_at DESC, id DESC LIMIT ?`;
const NAMES = `SELECT name, description FROM agents WHERE owner = ? ORDER BY name LIMIT ${AGENTS_LIMIT}`;
const END_OF_TIME = Number.MAX_SAFE_INTEGER;

export function createAgents(reader: Reader, writer: WriteQueue, now: () => Date): Agents {
  const write = async (sql: string, args: InValue[], name: string | undefined): Promise<Row | undefined> => {
    try {
      return (await writer.batch([{ sql, args }]))[0]?.rows[0];
    } catch (error) {
      if (isConstraint(error)) throw taken(name ?? "");
      throw error;
    }
  };

  return {
    async create(owner, draft) {
      const at = now().getTime();
      const args = [owner, createId("agt"), ...columnsOf(draft), at, at, owner];
      const row = await write(INSERT, args, draft.name);
      if (row) return toAgent(row);
      throw new AppError(
        "conflict",
        `There are ${AGENTS_LIMIT} agents already. Remove one with DELETE /api/agents/{id} first.`,
      );
    },

    async get(owner, ref) {
      const [row] = await reader.rows({ sql: GET, args: these(owner, ref) });
      return row ? toAgent(row) : null;
    },

    async update(owner, ref, change) {
      const present = [
        ...[change.name, change.description, change.instructions, change.provider, change.model],
        ...[change.tools, change.policy, change.subAgents],
      ].map((value) => value !== undefined);
      const values = columnsOf(change);
      const pairs = present.flatMap((given, at) => [given ? 1 : 0, values[at] ?? null]);
      const row = await write(UPDATE, [...pairs, now().getTime(), ...these(owner, ref)], change.name);
      return row ? toAgent(row) : null;
    },

    async delete(owner, ref) {
      const [result] = await writer.batch([{ sql: DELETE, args: these(owner, ref) }]);
      return result?.rowsAffected === 1;
    },

    async list(owner, { limit, cursor }) {
      const from = cursor === undefined ? [END_OF_TIME, ""] : fromTimeCursor(cursor);
      const rows = await reader.page((last, size) => {
        const keys = last ? [last.created_at as number, last.id as string] : from;
        return { sql: LIST, args: [owner, ...keys, size] };
      }, limit + 1);
      const agents = rows.slice(0, limit).map(toAgent);
      const last = agents.at(-1);
      return {
        agents,
        next: rows.length > limit && last ? toCursor(last.createdAt.getTime(), last.id) : null,
      };
    },

    async names(owner) {
      const rows = await reader.rows({ sql: NAMES, args: [owner] });
      return rows.map((row) => ({ name: row.name as string, description: row.description as string }));
    },
  };
}

function these(owner: string, ref: string): InValue[] {
  const storable = toStorable(ref);
  return [owner, owner, storable, storable];
}

/** Of the fields in the table's order; null for what is absent. */
function columnsOf(draft: Partial<AgentDraft>): (string | null)[] {
  const text = (value: string | null | undefined) => (value == null ? null : toStorable(value));
  const json = (value: unknown) => (value == null ? null : toStorableJson(value));
  return [
    ...[text(draft.name), text(draft.description), text(draft.instructions), text(draft.provider)],
    ...[text(draft.model), json(draft.tools), json(draft.policy), json(draft.subAgents)],
  ];
}

function toAgent(row: Row): NamedAgent {
  return {
    id: row.id as string,
    name: row.name as string,
    description: row.description as string,
    instructions: row.instructions as string,
    provider: row.provider as ProviderName | null,
    model: row.model as string | null,
    tools: row.tools === null ? null : (JSON.parse(row.tools as string) as string[]),
    policy: JSON.parse(row.policy as string) as PolicyRule[],
    subAgents: JSON.parse(row.sub_agents as string) as string[],
    createdAt: new Date(row.created_at as number),
    updatedAt: new Date(row.updated_at as number),
  };
}

function taken(name: string): AppError {
  return new AppError(
    "conflict",
    `There is an agent '${name}' already. Change it with PATCH /api/agents/${name}, or choose another name.`,
    { param: "name" },
  );
}
