/** MCP servers, and the definitions of their tools that somebody has approved. */
import type { InStatement, Row } from "@libsql/client/web";
import type {
  McpDefinition,
  McpServer,
  McpServerSpec,
  McpServers,
  McpTool,
  McpVersion,
} from "../core/mcp.ts";
import { AppError } from "../errors.ts";
import type { Reader } from "./reader.ts";
import { isStorable, toStorable, toStorableJson } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Servers of one owner. */
const SERVERS_LIMIT = 100;

const COLUMNS = `owner, id, name, transport, command, args, url, tools, sealed, oauth, active, last_error,
  needs_reauth, created_at, updated_at`;
const REVISION = "SELECT revision FROM mcp_owners WHERE owner = ?";
const SERVERS = `SELECT ${COLUMNS} FROM mcp_servers WHERE owner = ? ORDER BY created_at DESC, id`;
const TOOLS = `SELECT server_id, name, definition, hash, held, held_hash, listed FROM mcp_tools
  WHERE owner = ? ORDER BY server_id, position, name`;
const GET = `SELECT ${COLUMNS} FROM mcp_servers WHERE owner = ? AND id = ?`;
const CHANGES = "SELECT owner, revision FROM mcp_owners WHERE revision > ? ORDER BY revision";
const SAVE = `INSERT INTO mcp_servers (${COLUMNS})
  SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, ?
  WHERE (SELECT count(*) FROM mcp_servers WHERE owner = ? AND id <> ?) < ${SERVERS_LIMIT}
  ON CONFLICT (owner, id) DO UPDATE SET name = excluded.name, transport = excluded.transport,
    command = excluded.command, args = excluded.args, url = excluded.url, tools = excluded.tools,
    sealed = excluded.sealed, active = excluded.active, last_error = excluded.last_error,
    needs_reauth = excluded.needs_reauth,
    oauth = CASE WHEN url IS excluded.url THEN oauth END,
    oauth_state = CASE WHEN url IS excluded.url THEN oauth_state END,
    updated_at = max(updated_at + 1, excluded.updated_at)
  RETURNING ${COLUMNS}`;
const SET_ACTIVE =
  "UPDATE mcp_servers SET active = ?, last_error = NULL, needs_reauth = 0 WHERE owner = ? AND id = ?";
const SET_ERROR = "UPDATE mcp_servers SET last_error = ?, needs_reauth = ? WHERE owner = ? AND id = ?";
const DELETE = "DELETE FROM mcp_servers WHERE owner = ? AND id = ?";
const BUMP = `INSERT INTO mcp_owners (owner, revision)
  SELECT ?, coalesce(max(revision), 0) + 1 FROM mcp_owners WHERE true
  ON CONFLICT (owner) DO UPDATE SET revision = excluded.revision`;
const UNPIN = "DELETE FROM mcp_tools WHERE owner = ? AND server_id = ?";
const PIN = `INSERT INTO mcp_tools (owner, server_id, name, position, definition, hash, listed)
  SELECT owner, id, ?, ?, ?, ?, 1 FROM mcp_servers WHERE owner = ? AND id = ?`;
const UNLIST = "UPDATE mcp_tools SET listed = 0 WHERE owner = ? AND server_id = ?";
/** What is the approved definition again is held no more. */
const OBSERVE = `INSERT INTO mcp_tools (owner, server_id, name, position, held, held_hash, listed)
  SELECT owner, id, ?, ?, ?, ?, 1 FROM mcp_servers WHERE owner = ? AND id = ?
  ON CONFLICT (owner, server_id, name) DO UPDATE SET listed = 1, position = excluded.position,
    held = CASE WHEN hash IS excluded.held_hash THEN NULL ELSE excluded.held END,
    held_hash = CASE WHEN hash IS excluded.held_hash THEN NULL ELSE excluded.held_hash END`;
const APPROVE = `UPDATE mcp_tools SET definition = held, hash = held_hash, held = NULL, held_hash = NULL
  WHERE owner = ? AND server_id = ? AND held IS NOT NULL`;
const APPROVE_SEEN = `${APPROVE} AND name = ? AND held_hash = ?`;
const SAVE_OAUTH = "UPDATE mcp_servers SET oauth = ?, oauth_state = ? WHERE owner = ? AND id = ?";
const BY_STATE = `SELECT ${COLUMNS} FROM mcp_servers WHERE oauth_state = ?`;
const LEASE = `UPDATE mcp_servers SET lease_holder = ?, lease_until = ? WHERE owner = ? AND id = ?
  AND (lease_holder IS NULL OR lease_holder = ? OR lease_until <= ?)`;
const RELEASE = `UPDATE mcp_servers SET lease_holder = NULL, lease_until = NULL
  WHERE owner = ? AND id = ? AND lease_holder = ?`;

export function createMcpServers(reader: Reader, writer: WriteQueue, now: () => Date): McpServers {
  /** The statements, and the owner's new revision; the result of the first. */
  async function change(owner: string, ...statements: InStatement[]) {
    const results = await writer.batch([...statements, { sql: BUMP, args: [owner] }]);
    return results;
  }

  return {
    async load(owner) {
      const args = [owner];
      const [revision, servers, tools] = await reader.batch([
        { sql: REVISION, args },
        { sql: SERVERS, args },
        { sql: TOOLS, args },
      ]);
      const pinned = Map.groupBy(tools!.rows, (row) => row.server_id as string);
      return {
        revision: (revision!.rows[0]?.revision as number | undefined) ?? 0,
        servers: servers!.rows.map((row) => ({
          ...toServer(row),
          pinned: (pinned.get(row.id as string) ?? []).map(toTool),
        })),
      };
    },

    async revision(owner) {
      const [row] = await reader.rows({ sql: REVISION, args: [owner] });
      return (row?.revision as number | undefined) ?? 0;
    },

    async changes(since) {
      const rows = await reader.rows({ sql: CHANGES, args: [since] });
      const revision = (rows.at(-1)?.revision as number | undefined) ?? since;
      return { revision, owners: rows.map((row) => row.owner as string) };
    },

    async get(owner, id) {
      if (!isStorable(id)) return null;
      const [row] = await reader.rows({ sql: GET, args: [owner, id] });
      return row ? toServer(row) : null;
    },

    async save(owner, spec, { sealed, active, lastError, needsReauth = false }) {
      const at = now().getTime();
      const server = [owner, spec.id, ...columnsOf(spec), sealed];
      const state = [active ? 1 : 0, storable(lastError), needsReauth ? 1 : 0, at, at];
      const [saved] = await change(owner, { sql: SAVE, args: [...server, ...state, owner, spec.id] });
      const row = saved?.rows[0];
      if (row) return toServer(row);
      throw new AppError(
        "conflict",
        `There are ${SERVERS_LIMIT} saved servers already. Remove one with DELETE /api/mcp/saved/{id} first.`,
      );
    },

    async setActive(owner, id, active) {
      if (!isStorable(id)) return false;
      const args = [active ? 1 : 0, owner, id];
      const [result] = await change(owner, { sql: SET_ACTIVE, args });
      return result?.rowsAffected === 1;
    },

    async setError(owner, id, lastError, needsReauth = false) {
      const args = [storable(lastError), needsReauth ? 1 : 0, owner, id];
      await writer.batch([{ sql: SET_ERROR, args }]);
    },

    async delete(owner, id) {
      if (!isStorable(id)) return false;
      const [, result] = await change(
        owner,
        { sql: UNPIN, args: [owner, id] },
        { sql: DELETE, args: [owner, id] },
      );
      return result?.rowsAffected === 1;
    },

    async pin(owner, id, tools) {
      const pins = tools.map(({ name, definition, hash }, position) => ({
        sql: PIN,
        args: [toStorable(name), position, toStorableJson(definition), hash, owner, id],
      }));
      await change(owner, { sql: UNPIN, args: [owner, id] }, ...pins);
    },

    async observe(owner, id, tools) {
      const seen = tools.map(({ name, definition, hash }, position) => ({
        sql: OBSERVE,
        args: [toStorable(name), position, toStorableJson(definition), hash, owner, id],
      }));
      await change(owner, { sql: UNLIST, args: [owner, id] }, ...seen);
    },

    async approve(owner, id, seen) {
      const statements =
        seen === undefined
          ? [{ sql: APPROVE, args: [owner, id] }]
          : seen.map(({ name, hash }) => ({
              sql: APPROVE_SEEN,
              args: [owner, id, toStorable(name), toStorable(hash)],
            }));
      const results = await change(owner, ...statements);
      return results.slice(0, -1).reduce((sum, { rowsAffected }) => sum + rowsAffected, 0);
    },

    async saveOAuth(owner, id, { sealed, stateHash }) {
      const [result] = await change(owner, { sql: SAVE_OAUTH, args: [sealed, stateHash, owner, id] });
      return result?.rowsAffected === 1;
    },

    async findByOAuthState(stateHash) {
      if (!isStorable(stateHash)) return null;
      const [row] = await reader.rows({ sql: BY_STATE, args: [stateHash] });
      return row ? toServer(row) : null;
    },

    async lease(owner, id, { holder, now: at, until }) {
      const args = [holder, until.getTime(), owner, id, holder, at.getTime()];
      const [result] = await writer.batch([{ sql: LEASE, args }]);
      return result?.rowsAffected === 1;
    },

    async release(owner, id, holder) {
      await writer.batch([{ sql: RELEASE, args: [owner, id, holder] }]);
    },
  };
}

function storable(text: string | null): string | null {
  return text === null ? null : toStorable(text);
}

function columnsOf({ name, transport, command, args, url, tools }: McpServerSpec): (string | null)[] {
  return [
    ...[toStorable(name), transport, storable(command), toStorableJson(args)],
    ...[storable(url), toStorableJson(tools)],
  ];
}

function toServer(row: Row): McpServer {
  return {
    owner: row.owner as string,
    id: row.id as string,
    name: row.name as string,
    transport: row.transport as McpServer["transport"],
    command: row.command as string | null,
    args: JSON.parse(row.args as string) as string[],
    url: row.url as string | null,
    tools: JSON.parse(row.tools as string) as McpServer["tools"],
    sealed: row.sealed as string | null,
    oauth: row.oauth as string | null,
    active: row.active === 1,
    lastError: row.last_error as string | null,
    needsReauth: row.needs_reauth === 1,
    createdAt: new Date(row.created_at as number),
    updatedAt: new Date(row.updated_at as number),
  };
}

function toTool(row: Row): McpTool {
  return {
    name: row.name as string,
    approved: toVersion(row.definition, row.hash),
    held: toVersion(row.held, row.held_hash),
    listed: row.listed === 1,
  };
}

function toVersion(definition: unknown, hash: unknown): McpVersion | null {
  if (typeof definition !== "string") return null;
  return { definition: JSON.parse(definition) as McpDefinition, hash: hash as string };
}
