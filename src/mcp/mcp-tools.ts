/** The approved tools of an owner's servers as tools of the agent, under names of ours (E5). */
import * as z from "zod";
import { matchGlob } from "../core/glob.ts";
import type { McpDefinition, McpServer, McpTool } from "../core/mcp.ts";
import type { Tool, ToolContext, ToolOutput } from "../core/tool.ts";
import { toolName } from "./names.ts";
import { toParameters } from "./parameters.ts";
import { plainText } from "./plain-text.ts";

/** Characters of a description that models are shown. */
const DESCRIPTION_LIMIT = 4_000;

/** The server checks its own arguments. */
const args = z.record(z.string(), z.unknown());

export type PinnedServer = McpServer & { pinned: McpTool[] };

/** One tool of one server, in the version that was approved. */
export interface ToolRef {
  owner: string;
  serverId: string;
  /** As its server calls it. */
  name: string;
  hash: string;
  definition: McpDefinition;
}

export type RunTool = (
  ref: ToolRef,
  args: Record<string, unknown>,
  context: ToolContext,
) => Promise<ToolOutput>;

export interface Offer {
  tools: readonly Tool[];
  /** By server: why tools of it are not offered, a sentence each. */
  problems: ReadonlyMap<string, string[]>;
}

/** Keeps the tools that it has made: what has not changed stays the same object. */
export class ToolMaker {
  readonly #run: RunTool;
  #made = new Map<string, Tool | string>();

  constructor(run: RunTool) {
    this.#run = run;
  }

  /** The tools of these servers, in their order. */
  async make(servers: readonly PinnedServer[]): Promise<Offer> {
    const kept = new Map<string, Tool | string>();
    const byName = new Map<string, { serverId: string; tool: Tool }[]>();
    const problems = new Map<string, string[]>();
    const complain = (id: string, sentence: string) =>
      problems.set(id, [...(problems.get(id) ?? []), sentence]);
    for (const server of servers) {
      for (const { name, approved, held, listed } of server.pinned) {
        if (!approved || held || !listed || !isWanted(server, name)) continue;
        const key = JSON.stringify([server.id, name, approved.hash]);
        const tool =
          this.#made.get(key) ??
          (await this.#create({ ...approved, owner: server.owner, serverId: server.id, name }));
        kept.set(key, tool);
        if (typeof tool === "string") complain(server.id, tool);
        else byName.set(tool.name, [...(byName.get(tool.name) ?? []), { serverId: server.id, tool }]);
      }
    }
    this.#made = kept;
    const tools: Tool[] = [];
    for (const [name, claims] of byName) {
      if (claims.length === 1) tools.push((claims[0] as { tool: Tool }).tool);
      else
        for (const serverId of new Set(claims.map((claim) => claim.serverId)))
          complain(serverId, `${claims.length} tools would be named ${name}; none of them is offered.`);
    }
    return { tools, problems };
  }

  /** A sentence where models cannot be given it. */
  async #create(ref: ToolRef): Promise<Tool | string> {
    const { definition, serverId, name } = ref;
    try {
      return {
        name: await toolName(serverId, name),
        description: describe(definition, serverId, name),
        args: args as z.ZodType<unknown>,
        parameters: toParameters(definition.inputSchema),
        needs: [],
        risk: definition.annotations?.readOnlyHint === true ? "read" : "write",
        source: serverId,
        outside: true,
        run: (given, context) => this.#run(ref, given as Record<string, unknown>, context),
      };
    } catch (error) {
      return `The tool ${JSON.stringify(plainText(name, 80))} is not offered: ${(error as Error).message}.`;
    }
  }
}

function isWanted({ tools: { include, exclude } }: McpServer, name: string): boolean {
  if (exclude.some((glob) => matchGlob(glob, name))) return false;
  return include.length === 0 || include.some((glob) => matchGlob(glob, name));
}

function describe({ description, title }: McpDefinition, serverId: string, name: string): string {
  const text = plainText(description ?? title ?? "", DESCRIPTION_LIMIT).trim();
  return text === "" ? `${plainText(name, 80)}, a tool of the MCP server ${serverId}.` : text;
}
