/**
 * The MCP servers of all owners: connected, disconnected, approved, and their tools as tools of the agent.
 *
 * On Node and Bun every active server has one connection for as long as the process lives. On Workers nothing outlives a
 * request: there the tools come from the stored definitions, and a connection is opened when a call needs it and closed with
 * the calls of its turn.
 */
import type { McpSecrets, McpServer, McpServers } from "../core/mcp.ts";
import type { Platform } from "../core/platform.ts";
import type { Tool } from "../core/tool.ts";
import { AppError } from "../errors.ts";
import type { Authorizations } from "./authorizations.ts";
import { McpCalls } from "./calls.ts";
import type { Connection, ConnectionEvents } from "./connection.ts";
import type { Failure } from "./faults.ts";
import { Shelf } from "./holdings.ts";
import { Link } from "./link.ts";
import type { ToolRef } from "./mcp-tools.ts";
import { sha256 } from "./names.ts";
import { Opener, type OpenerHost } from "./opener.ts";
import { SecretBox, type Vault } from "./secrets.ts";
import { type ConnectRequest, toServer } from "./server-spec.ts";
import { type McpView, viewOf } from "./view.ts";

export interface McpHost extends OpenerHost {
  store: McpServers;
  platform: Pick<Platform, "runtime" | "fetch" | "mcpStdio" | "log" | "background" | "redaction">;
  /** Seals what servers get that nobody may read; absent where the service has no secret. */
  vault: Vault | undefined;
  /** What the mark of the service's own requests is made from, the same for all its processes. Long and random. */
  secret: string | undefined;
  /** For servers that want OAuth. */
  authorizations: Pick<Authorizations, "fetchFor" | "configure">;
}

export interface Connected {
  id: string;
  /** As models are given them. */
  tools: string[];
  /** Why some are not offered; null where all are. */
  problem: string | null;
}

export class McpConnections {
  readonly #host: McpHost;
  readonly #staysConnected: boolean;
  readonly #secrets: SecretBox;
  readonly #shelf: Shelf;
  readonly #opener: Opener;
  readonly #connecting = new Set<string>();
  /** What the service's own requests bear, so that it knows them when they come back to it (P4). */
  readonly callerMark: Promise<string>;

  constructor(host: McpHost) {
    this.#host = host;
    this.#staysConnected = host.platform.runtime !== "workerd";
    const staysConnected = this.#staysConnected;
    const { store, platform } = host;
    const calls = new McpCalls({
      staysConnected,
      connection: (ref, events) => this.#connectionFor(ref, events),
      renew: async ({ owner, serverId }, connection) =>
        this.#shelf.get(owner)?.links.get(serverId)?.renew(connection),
      isOffered: (ref) => this.#isOffered(ref),
      background: (work) => platform.background(work),
    });
    this.callerMark = sha256(`dragoman mcp caller ${host.secret ?? crypto.randomUUID()}`);
    this.#secrets = new SecretBox(host.vault, platform.redaction);
    this.#shelf = new Shelf({
      ...{ store, platform, staysConnected },
      mayConnect: ({ transport }) => transport !== "stdio" || !host.stdioRefusal,
      isBusy: (owner, id) => this.#connecting.has(keyOf(owner, id)),
      createLink: (server) => this.#createLink(server),
      run: (ref, args, context) => calls.run(ref, args, context),
    });
    this.#opener = new Opener(host, this.#secrets, this.#shelf, this.callerMark);
  }

  /** What an owner's runs may be offered; see {@link Shelf.toolsOf}. */
  of(owner: string): readonly Tool[] | Promise<readonly Tool[]> {
    return this.#shelf.toolsOf(owner);
  }

  /** Learns what other processes have changed; the first time, connects what is to be connected. */
  async tick(): Promise<void> {
    if (this.#staysConnected && !this.#shelf.isClosed) await this.#shelf.tick();
  }

  close(): Promise<void> {
    return this.#shelf.close();
  }

  /** Saves a server, connects it and approves its tools as they are. Throws AppError. */
  async connect(owner: string, request: ConnectRequest): Promise<Connected> {
    const given = toServer(request);
    const id = given?.spec.id ?? request.server_id ?? "";
    return this.#alone(owner, id, async () => {
      const saved = given ? null : await this.#saved(owner, id);
      const spec = given?.spec ?? (saved as McpServer);
      this.#opener.check(spec);
      const secrets = given?.secrets ?? (await this.#secrets.open(saved as McpServer));
      const sealed = saved ? saved.sealed : await this.#secrets.seal(secrets);
      const server = await this.#host.store.save(owner, spec, { sealed, active: false, lastError: null });
      if (request.oauth !== undefined) await this.#host.authorizations.configure(server, request.oauth);
      await this.#shelf.read(owner);
      return this.#establish(server, secrets, "pin");
    });
  }

  /** Connects a saved server again, with the definitions that are approved; where none are, those that it has now. */
  async reconnect(owner: string, id: string): Promise<Connected> {
    return this.#alone(owner, id, async () => {
      const server = await this.#saved(owner, id);
      const { servers } = await this.#host.store.load(owner);
      const isNew = !servers.find((other) => other.id === id)?.pinned.length;
      const links = this.#shelf.get(owner)?.links;
      const link = links?.get(id);
      links?.delete(id);
      await link?.close();
      return this.#establish(server, await this.#secrets.open(server), isNew ? "pin" : "observe");
    });
  }

  /** Keeps the saved entry, inactive. Throws AppError `not_found`. */
  async disconnect(owner: string, id: string): Promise<void> {
    if (!(await this.#host.store.setActive(owner, id, false))) throw noServer(id);
    await this.#shelf.read(owner);
  }

  /** Disconnects and forgets. Throws AppError `not_found`. */
  async forget(owner: string, id: string): Promise<void> {
    if (!(await this.#host.store.delete(owner, id))) throw noServer(id);
    await this.#shelf.read(owner);
  }

  /** Approves definitions that are held back. Throws AppError `not_found`, or `conflict` where what was seen has changed since. */
  async approve(
    owner: string,
    id: string,
    seen?: readonly { name: string; hash: string }[] | undefined,
  ): Promise<number> {
    await this.#saved(owner, id);
    const approved = await this.#host.store.approve(owner, id, seen);
    await this.#shelf.read(owner);
    if (seen && approved < seen.length)
      throw new AppError(
        "conflict",
        `${approved} of ${seen.length} definitions were approved: the others have changed again, or are not held back. Look at GET /api/mcp/servers.`,
      );
    return approved;
  }

  /** What there is, for people. */
  async view(owner: string): Promise<McpView> {
    const { servers, offer, links, complaints } = await this.#shelf.read(owner);
    const secrets = new Map(
      await Promise.all(
        servers.map(async (server) => [server.id, await this.#secrets.names(server)] as const),
      ),
    );
    return viewOf({ servers, offer, links, complaints, secrets, staysConnected: this.#staysConnected });
  }

  /** One connection attempt at a time for a server: two that are saved at once would take each other's place. */
  async #alone<T>(owner: string, id: string, work: () => Promise<T>): Promise<T> {
    const key = keyOf(owner, id);
    if (this.#connecting.has(key))
      throw new AppError("conflict", `The server ${id} is being connected already. Try again in a moment.`, {
        retryAfter: 1,
      });
    this.#connecting.add(key);
    try {
      return await work();
    } finally {
      this.#connecting.delete(key);
    }
  }

  /** Connects, reads the tools, and makes the server active. A failure is stored with the server, and thrown. */
  async #establish(server: McpServer, secrets: McpSecrets, tools: "pin" | "observe"): Promise<Connected> {
    const { store } = this.#host;
    const { owner, id } = server;
    const link = this.#createLink({ ...server, active: true });
    const { connection, definitions } = await this.#opener
      .open(server, secrets, link.events)
      .catch(async (error: Error & { failure?: Failure }) => {
        const needsReauth = error.failure?.kind === "unauthorized";
        await store.setError(owner, id, error.message, needsReauth);
        await this.#shelf.read(owner);
        throw new AppError(
          "unreachable",
          needsReauth ? `${error.message} ${reauthAdvice(id)}` : error.message,
        );
      });
    await store[tools](owner, id, definitions.tools);
    if (!(await store.setActive(owner, id, true))) {
      await connection.close();
      throw noServer(id);
    }
    if (this.#staysConnected) link.adopt(connection);
    else await connection.close();
    const { offer } = await this.#shelf.read(owner, (held) => {
      held.complaints.set(id, definitions.problems);
      if (this.#staysConnected) held.links.set(id, link);
    });
    const problems = [...definitions.problems, ...(offer.problems.get(id) ?? [])];
    const names = offer.tools.filter((tool) => tool.source === id).map((tool) => tool.name);
    return { id, tools: names, problem: problems.length > 0 ? problems.join(" ") : null };
  }

  async #saved(owner: string, id: string): Promise<McpServer> {
    const server = await this.#host.store.get(owner, id);
    if (!server) throw noServer(id);
    return server;
  }

  #createLink(server: McpServer): Link {
    return new Link(server, {
      open: (of, events, signal) => this.#opener.openObserved(of, events, signal),
      onToolsChanged: (link, connection) =>
        this.#host.platform.background(this.#opener.observe(link.server, connection)),
      onStatus: (link) => this.#host.platform.background(this.#noteStatus(link)),
    });
  }

  /** What has gone wrong, or right again, decides about the tools that are offered. */
  async #noteStatus(link: Link): Promise<void> {
    const { owner, id } = link.server;
    const { status, error } = link;
    const held = this.#shelf.get(owner);
    if (held?.links.get(id) !== link || this.#shelf.isClosed) return;
    this.#host.platform.log(status === "connected" ? "info" : "warning", `MCP server ${status}`, {
      ...{ owner, server: id, ...(error === null ? {} : { error }) },
    });
    const stored = held.servers.find((server) => server.id === id);
    const lastError = status === "connected" ? null : error;
    const needsReauth = status === "needs_reauth";
    if (stored && (stored.lastError !== lastError || stored.needsReauth !== needsReauth))
      await this.#host.store.setError(owner, id, lastError, needsReauth);
    await this.#shelf.read(owner);
  }

  #isOffered({ owner, serverId, name, hash }: ToolRef): boolean {
    const server = this.#shelf.get(owner)?.servers.find(({ id }) => id === serverId);
    const tool = server?.pinned.find((pinned) => pinned.name === name);
    return server?.active === true && tool?.approved?.hash === hash && !tool.held && tool.listed;
  }

  /** Throws an Error with a sentence. */
  async #connectionFor({ owner, serverId }: ToolRef, events: ConnectionEvents): Promise<Connection> {
    const { servers, links } = this.#staysConnected
      ? (this.#shelf.get(owner) ?? (await this.#shelf.read(owner)))
      : await this.#shelf.read(owner);
    const server = servers.find(({ id, active }) => id === serverId && active);
    if (!server) throw new Error(`The MCP server ${serverId} is not connected any more.`);
    const link = links.get(serverId);
    if (link) return link.ready();
    if (this.#staysConnected) throw new Error(`The MCP server ${serverId} is being connected just now.`);
    try {
      const connection = await this.#opener.openObserved(server, events);
      if (server.lastError !== null) await this.#host.store.setError(owner, serverId, null);
      return connection;
    } catch (error) {
      const { message, failure } = error as { message: string; failure?: Failure };
      await this.#host.store.setError(owner, serverId, message, failure?.kind === "unauthorized");
      throw error;
    }
  }
}

function keyOf(owner: string, id: string): string {
  return JSON.stringify([owner, id]);
}

function noServer(id: string): AppError {
  return new AppError(
    "not_found",
    `There is no saved MCP server '${id.slice(0, 64)}'. GET /api/mcp/servers lists them.`,
  );
}

function reauthAdvice(id: string): string {
  return `Open GET /api/mcp/oauth/${id}/start to authorize it, or connect it again with the right headers.`;
}
