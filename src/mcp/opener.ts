/** Opens connections, and compares what servers list with what was approved (E5). */
import type { McpSecrets, McpServer, McpServers } from "../core/mcp.ts";
import type { Platform } from "../core/platform.ts";
import type { AppError } from "../errors.ts";
import type { Authorizations } from "./authorizations.ts";
import type { Connection, ConnectionEvents } from "./connection.ts";
import { type Definitions, toDefinitions } from "./definition.ts";
import type { Failure } from "./faults.ts";
import type { Shelf } from "./holdings.ts";
import type { SecretBox } from "./secrets.ts";

export interface OpenerHost {
  store: McpServers;
  platform: Pick<Platform, "fetch" | "mcpStdio" | "log">;
  authorizations: Pick<Authorizations, "fetchFor">;
  /** Addresses that callers give are the operator's own choice. */
  trusted: boolean;
  /** Why programs may not be started; undefined where they may. */
  stdioRefusal: AppError | undefined;
  /** Milliseconds until a connection stands, and between two signs of life of a call. */
  connectMs: number;
  callMs: number;
}

export class Opener {
  readonly #host: OpenerHost;
  readonly #secrets: SecretBox;
  readonly #shelf: Shelf;
  readonly #callerMark: Promise<string>;

  constructor(host: OpenerHost, secrets: SecretBox, shelf: Shelf, callerMark: Promise<string>) {
    this.#host = host;
    this.#secrets = secrets;
    this.#shelf = shelf;
    this.#callerMark = callerMark;
  }

  /** Throws AppError where servers of its kind may not be connected here. */
  check({ transport }: Pick<McpServer, "transport">): void {
    if (transport === "stdio" && this.#host.stdioRefusal) throw this.#host.stdioRefusal;
  }

  /** A connection, and what the server lists. Throws an Error with a sentence, and a `failure` where the server was at fault. */
  async open(
    server: McpServer,
    secrets: McpSecrets,
    events: ConnectionEvents,
    signal?: AbortSignal,
  ): Promise<{ connection: Connection; definitions: Definitions }> {
    this.check(server);
    // What speaks MCP is loaded when the first server is met.
    const { Connection } = await import("./connection.ts");
    const { platform, trusted, connectMs, callMs, stdioRefusal, authorizations } = this.#host;
    const fetch = server.transport === "stdio" ? platform.fetch : await authorizations.fetchFor(server);
    const connection = await Connection.open(
      server,
      secrets,
      {
        ...{ fetch, trusted, connectMs, callMs },
        stdio: stdioRefusal ? undefined : platform.mcpStdio,
        callerMark: await this.#callerMark,
      },
      events,
      signal,
    );
    const stop = () => void connection.close();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      return { connection, definitions: await toDefinitions(await connection.list()) };
    } catch (error) {
      const failure = connection.failureOf(error);
      const sentence = connection.explain(server.name, failure);
      await connection.close();
      throw Object.assign(new Error(sentence), { failure } satisfies { failure: Failure });
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** A connection of an active server, whose tools have been compared. Throws as `open`. */
  async openObserved(server: McpServer, events: ConnectionEvents, signal?: AbortSignal): Promise<Connection> {
    const secrets = await this.#secrets.open(server);
    const { connection, definitions } = await this.open(server, secrets, events, signal);
    try {
      await this.#compare(server, definitions);
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /** Reads the tools again; what is wrong with them is logged. */
  async observe(server: McpServer, connection: Connection): Promise<void> {
    try {
      await this.#compare(server, await toDefinitions(await connection.list()));
    } catch (error) {
      this.#host.platform.log("warning", "a changed list of tools could not be read", {
        owner: server.owner,
        server: server.id,
        error: connection.explain(server.name, connection.failureOf(error)),
      });
    }
  }

  /** Holds back what is not as it was approved. */
  async #compare({ owner, id }: McpServer, { tools, problems }: Definitions): Promise<void> {
    const pinned = this.#shelf.get(owner)?.servers.find((server) => server.id === id)?.pinned ?? [];
    const known = new Map(pinned.map((tool) => [tool.name, tool]));
    const isAsKnown =
      tools.length === pinned.filter(({ listed }) => listed).length &&
      tools.every(({ name, hash }) => {
        const tool = known.get(name);
        return tool?.listed === true && (tool.held?.hash ?? tool.approved?.hash) === hash;
      });
    if (!isAsKnown) {
      this.#host.platform.log("warning", "the tools of an MCP server have changed", { owner, server: id });
      await this.#host.store.observe(owner, id, tools);
    }
    await this.#shelf.read(owner, (held) => held.complaints.set(id, problems), isAsKnown);
  }
}
