/** MCP servers as the store keeps them: what an owner has saved, and the definitions of their tools that were approved. */

export const MCP_TRANSPORTS = ["stdio", "http", "sse"] as const;
export type McpTransport = (typeof MCP_TRANSPORTS)[number];

/** How to reach a server. Nothing in it is secret. */
export interface McpServerSpec {
  /** A slug; the beginning of the names that its tools have here. */
  id: string;
  name: string;
  transport: McpTransport;
  /** Of `stdio`. */
  command: string | null;
  args: string[];
  /** Of `http` and `sse`. */
  url: string | null;
  /** Globs over the server's own names of its tools. An empty `include` is all of them; `exclude` wins. */
  tools: { include: string[]; exclude: string[] };
}

/** What the server gets that nobody else may read. */
export interface McpSecrets {
  env: Record<string, string>;
  headers: Record<string, string>;
}

export interface McpServer extends McpServerSpec {
  owner: string;
  /** {@link McpSecrets} as JSON, sealed; null where there are none. */
  sealed: string | null;
  /** What OAuth keeps (client, tokens, a flow under way), sealed; null where there is none. */
  oauth: string | null;
  active: boolean;
  /** Why it could not be reached when that was last tried, without any secret. */
  lastError: string | null;
  /** It was refused for want of a valid authorization: only a person can mend that. */
  needsReauth: boolean;
  createdAt: Date;
  /** Changes whenever how to reach it changes. */
  updatedAt: Date;
}

/** A tool as its server defines it. */
export interface McpDefinition {
  title?: string | undefined;
  description?: string | undefined;
  inputSchema: Record<string, unknown>;
  outputSchema?: Record<string, unknown> | undefined;
  annotations?: Record<string, unknown> | undefined;
}

/** A definition with its hash, by which another one is told from it. */
export interface McpVersion {
  definition: McpDefinition;
  hash: string;
}

export interface McpTool {
  /** As its server calls it. */
  name: string;
  /** What somebody has approved; null for a tool that came later and waits. */
  approved: McpVersion | null;
  /** What the server says now, where that is not what was approved. The tool is held back while there is one (E5). */
  held: McpVersion | null;
  /** Whether the server lists it now. What it no longer lists stays pinned for the day it comes back. */
  listed: boolean;
}

/** All of an owner's, over one and the same state of the database. */
export interface McpHoldings {
  /** Grows with every change of the owner's servers or tools; 0 where there never was one. */
  revision: number;
  servers: (McpServer & { pinned: McpTool[] })[];
}

export interface McpServers {
  load(owner: string): Promise<McpHoldings>;
  /** 0 where there never was a server. */
  revision(owner: string): Promise<number>;
  /** Owners whose servers or tools have changed since a revision, and the newest revision. From 0: all who ever had any. */
  changes(since: number): Promise<{ revision: number; owners: string[] }>;
  /** null where there is none. */
  get(owner: string, id: string): Promise<McpServer | null>;
  /** Makes or replaces; `oauth` stays as it is where the server stays where it was. Throws AppError `conflict` over the limit. */
  save(
    owner: string,
    spec: McpServerSpec,
    state: {
      sealed: string | null;
      active: boolean;
      lastError: string | null;
      needsReauth?: boolean | undefined;
    },
  ): Promise<McpServer>;
  /** Clears what went wrong before. false where there is none. */
  setActive(owner: string, id: string, active: boolean): Promise<boolean>;
  /** No change of revision: it is only told. */
  setError(owner: string, id: string, lastError: string | null, needsReauth?: boolean): Promise<void>;
  /** With its tools. false where there is none. */
  delete(owner: string, id: string): Promise<boolean>;
  /** These definitions, and no others, are approved. */
  pin(owner: string, id: string, tools: ({ name: string } & McpVersion)[]): Promise<void>;
  /** What the server lists now: a definition that is not the approved one is held, and what is missing is not listed. */
  observe(owner: string, id: string, tools: ({ name: string } & McpVersion)[]): Promise<void>;
  /**
   * Approves what is held: all of it, or what is named where it still has the hash that was seen. Returns how many were.
   */
  approve(
    owner: string,
    id: string,
    seen?: readonly { name: string; hash: string }[] | undefined,
  ): Promise<number>;

  /**
   * What OAuth keeps. `stateHash` names the flow under way, so that its callback finds the server; null where none is.
   * false where the server is gone.
   */
  saveOAuth(
    owner: string,
    id: string,
    oauth: { sealed: string | null; stateHash: string | null },
  ): Promise<boolean>;
  /** The server whose flow has this state. The callback comes from a browser that has no other word for its owner. */
  findByOAuthState(stateHash: string): Promise<McpServer | null>;
  /** Takes the right to refresh the tokens until then, for one of many processes. false while another has it. */
  lease(owner: string, id: string, lease: { holder: string; now: Date; until: Date }): Promise<boolean>;
  release(owner: string, id: string, holder: string): Promise<void>;
}
