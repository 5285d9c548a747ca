/**
 * What is in memory of the owners' servers, so that a request finds its tools without a question to anybody. On Node and Bun
 * it is told of changes by {@link Shelf.tick}; on Workers, where nothing runs between requests, it looks when it has grown old.
 */
import type { McpServers } from "../core/mcp.ts";
import type { Platform } from "../core/platform.ts";
import type { Tool } from "../core/tool.ts";
import type { Link } from "./link.ts";
import { type Offer, type PinnedServer, type RunTool, ToolMaker } from "./mcp-tools.ts";

/** On Workers: definitions are looked at again after, and waited for after. Milliseconds. */
const FRESH_MS = 5_000;
const STALE_MS = 60_000;
/** Owners that are read at once. */
const AT_ONCE = 8;
const NONE: readonly Tool[] = Object.freeze([]);

/** All of an owner's. */
export interface Holdings {
  revision: number;
  servers: PinnedServer[];
  offer: Offer;
  /** By server id; empty on Workers. */
  links: Map<string, Link>;
  /** What the servers' own lists had wrong, when they were last read. */
  complaints: Map<string, string[]>;
  readonly maker: ToolMaker;
  readAt: number;
}

export interface ShelfHost {
  store: McpServers;
  platform: Pick<Platform, "log" | "background">;
  staysConnected: boolean;
  /** Whether a server may be connected at all. */
  mayConnect(server: PinnedServer): boolean;
  /** Whether somebody is connecting it just now, and will put its link here. */
  isBusy(owner: string, id: string): boolean;
  createLink(server: PinnedServer): Link;
  run: RunTool;
}

export class Shelf {
  readonly #host: ShelfHost;
  readonly #owners = new Map<string, Holdings>();
  /** Work on an owner's holdings, one after the other. */
  readonly #lines = new Map<string, Promise<void>>();
  /** Whether the owners in memory are all there are. */
  #isComplete = false;
  #revision = 0;
  #isClosed = false;

  constructor(host: ShelfHost) {
    this.#host = host;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get(owner: string): Holdings | undefined {
    return this.#owners.get(owner);
  }

  /** At once where the owner's servers are in memory, or nobody's are missing there. */
  toolsOf(owner: string): readonly Tool[] | Promise<readonly Tool[]> {
    const held = this.#owners.get(owner);
    if (held) return this.#host.staysConnected ? held.offer.tools : this.#fresh(owner, held);
    if (this.#isComplete) return NONE;
    return this.read(owner).then(
      ({ offer }) => offer.tools,
      (error) => this.#unread(error),
    );
  }

  /** Learns what other processes have changed; the first time, of everybody. */
  async tick(): Promise<void> {
    const { store } = this.#host;
    const { revision, owners } = await store.changes(this.#revision);
    const learn = async () => {
      for (let owner = owners.pop(); owner !== undefined && !this.#isClosed; owner = owners.pop()) {
        const held = this.#owners.get(owner);
        if (!held || held.revision !== (await store.revision(owner))) await this.read(owner);
      }
    };
    // A few at a time: at the start it may be everybody.
    await Promise.all(Array.from({ length: AT_ONCE }, learn));
    this.#revision = revision;
    this.#isComplete = true;
    for (const [owner, { servers }] of this.#owners) if (servers.length === 0) this.#owners.delete(owner);
  }

  /**
   * Reads an owner's servers anew, connects and disconnects what has to be, and makes the tools that are offered. `change` is
   * made before that. `isUnchanged`: nothing has to be read for it.
   */
  read(owner: string, change?: (held: Holdings) => void, isUnchanged = false): Promise<Holdings> {
    // On Workers a line could wait for a request that has ended, unnoticed.
    if (!this.#host.staysConnected) return this.#readNow(owner, change, isUnchanged);
    const turn = (this.#lines.get(owner) ?? Promise.resolve()).then(() =>
      this.#readNow(owner, change, isUnchanged),
    );
    const settled: Promise<void> = turn.then(
      () => this.#leaveLine(owner, settled),
      () => this.#leaveLine(owner, settled),
    );
    this.#lines.set(owner, settled);
    return turn;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const links = [...this.#owners.values()].flatMap((held) => [...held.links.values()]);
    await Promise.all(links.map((link) => link.close()));
  }

  #leaveLine(owner: string, last: Promise<void>): void {
    if (this.#lines.get(owner) === last) this.#lines.delete(owner);
  }

  async #readNow(
    owner: string,
    change: ((held: Holdings) => void) | undefined,
    isUnchanged: boolean,
  ): Promise<Holdings> {
    const { store, staysConnected, run } = this.#host;
    const known = this.#owners.get(owner);
    const found = isUnchanged && known ? known : await store.load(owner);
    const held: Holdings = known ?? {
      ...{ revision: 0, servers: [], offer: { tools: NONE, problems: new Map() }, maker: new ToolMaker(run) },
      ...{ links: new Map(), complaints: new Map(), readAt: 0 },
    };
    change?.(held);
    // What was asked for earlier may come later.
    if (found.revision >= held.revision) {
      held.revision = found.revision;
      held.servers = found.servers;
    }
    held.readAt = performance.now();
    const { servers } = held;
    if (staysConnected && !this.#isClosed) this.#reconcile(held);
    const offer = await held.maker.make(servers.filter((server) => this.#mayOffer(server, held)));
    // The list is the same one as long as it holds the same tools.
    held.offer = isSame(offer.tools, held.offer.tools) ? { ...offer, tools: held.offer.tools } : offer;
    if (servers.length === 0 && this.#isComplete) this.#owners.delete(owner);
    else this.#owners.set(owner, held);
    return held;
  }

  /** One link for each active server, to where it is now. */
  #reconcile({ servers, links }: Holdings): void {
    const active = new Map(servers.filter((server) => server.active).map((server) => [server.id, server]));
    for (const [id, link] of links) {
      const server = active.get(id);
      // Somebody has authorized it, perhaps with another process.
      const isAuthorized = link.status === "needs_reauth" && server?.needsReauth === false;
      if (link.server.updatedAt.getTime() === server?.updatedAt.getTime() && !isAuthorized) continue;
      links.delete(id);
      this.#host.platform.background(link.close());
    }
    for (const [id, server] of active) {
      if (links.has(id) || this.#host.isBusy(server.owner, id)) continue;
      const link = this.#host.createLink(server);
      links.set(id, link);
      link.ready().catch(() => {});
    }
  }

  #mayOffer(server: PinnedServer, { links }: Holdings): boolean {
    if (!server.active || !this.#host.mayConnect(server)) return false;
    return this.#host.staysConnected ? (links.get(server.id)?.isUsable ?? false) : !server.needsReauth;
  }

  /** What is in memory, a little old at most. */
  #fresh(owner: string, held: Holdings): readonly Tool[] | Promise<readonly Tool[]> {
    const age = performance.now() - held.readAt;
    if (age < FRESH_MS) return held.offer.tools;
    const look = this.#look(owner, held).catch((error) => {
      this.#unread(error);
      return held;
    });
    if (age > STALE_MS) return look.then(({ offer }) => offer.tools);
    this.#host.platform.background(look);
    return held.offer.tools;
  }

  async #look(owner: string, held: Holdings): Promise<Holdings> {
    if ((await this.#host.store.revision(owner)) !== held.revision) return this.read(owner);
    held.readAt = performance.now();
    return held;
  }

  /** A run can do without them better than without an answer. */
  #unread(error: unknown): readonly Tool[] {
    this.#host.platform.log("warning", "the MCP servers of an owner could not be read", {
      error: String(error),
    });
    return NONE;
  }
}

function isSame(a: readonly Tool[], b: readonly Tool[]): boolean {
  return a.length === b.length && a.every((tool, i) => tool === b[i]);
}
