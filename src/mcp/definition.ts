/** What a server says of a tool, made fit for keeping and comparing: bounded, canonical, with a hash (E5). */
import type { McpDefinition, McpVersion } from "../core/mcp.ts";
import { sha256 } from "./names.ts";

/** A tool as its server lists it. Only the shape of the protocol is sure. */
export interface ListedTool {
  name: string;
  title?: string | undefined;
  description?: string | undefined;
  inputSchema: Record<string, unknown>;
  outputSchema?: Record<string, unknown> | undefined;
  annotations?: Record<string, unknown> | undefined;
}

/** Characters of a definition as JSON, and of a tool's name. */
const DEFINITION_LIMIT = 64 * 1024;
const NAME_LIMIT = 256;
/** Characters of all definitions of one server. */
const ALL_LIMIT = 2 * 1024 * 1024;
/** Objects inside one another. */
const DEPTH_LIMIT = 32;

export type NamedVersion = { name: string } & McpVersion;

export interface Definitions {
  tools: NamedVersion[];
  /** What is left out and why, a sentence each. */
  problems: string[];
}

export async function toDefinitions(listed: readonly ListedTool[]): Promise<Definitions> {
  const problems: string[] = [];
  const counts = new Map<string, number>();
  for (const { name } of listed) counts.set(name, (counts.get(name) ?? 0) + 1);
  const tools: NamedVersion[] = [];
  let room = ALL_LIMIT;
  for (const [name, count] of counts) {
    const shown = JSON.stringify(name.slice(0, NAME_LIMIT));
    if (name === "" || name.length > NAME_LIMIT || name.includes("\0") || !name.isWellFormed())
      problems.push(`The tool ${shown} is left out: its name cannot be used.`);
    else if (count > 1) problems.push(`The tool ${shown} is left out: the server lists it ${count} times.`);
    else {
      const version = await toVersion(listed.find((tool) => tool.name === name) as ListedTool);
      room -= version ? JSON.stringify(version.definition).length : 0;
      if (version && room >= 0) tools.push({ name, ...version });
      else if (version) problems.push(`The tool ${shown} is left out: the server has too many long ones.`);
      else problems.push(`The tool ${shown} is left out: its definition is too long or nested too deeply.`);
    }
  }
  return { tools, problems };
}

/** null where it is too large. */
async function toVersion(tool: ListedTool): Promise<McpVersion | null> {
  const { title, description, inputSchema, outputSchema, annotations } = tool;
  const definition: McpDefinition = { title, description, inputSchema, outputSchema, annotations };
  const json = canonical(definition, 0);
  if (json === null || json.length > DEFINITION_LIMIT) return null;
  return { definition: JSON.parse(json) as McpDefinition, hash: await sha256(json) };
}

/** JSON with the members of every object in order; null where it is nested too deeply. */
function canonical(value: unknown, depth: number): string | null {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (depth > DEPTH_LIMIT) return null;
  const isList = Array.isArray(value);
  const members = isList
    ? value.map((item): [string, unknown] => ["", item])
    : Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .sort(([a], [b]) => (a < b ? -1 : 1));
  const parts: string[] = [];
  for (const [key, item] of members) {
    const json = canonical(item, depth + 1);
    if (json === null) return null;
    parts.push(isList ? json : `${JSON.stringify(key)}:${json}`);
  }
  return isList ? `[${parts.join()}]` : `{${parts.join()}}`;
}
