/** `recall`: looks through what was kept about the user. */
import * as z from "zod";
import type { Memory, MemoryVault } from "../core/memory.ts";
import { defineTool, type Tool } from "../core/tool.ts";
import { answer } from "./result.ts";

const DEFAULT_LIMIT = 8;
const MAX_LIMIT = 50;

export function createRecall(vault: MemoryVault): Tool {
  return defineTool({
    name: "recall",
    description:
      "Searches what you remember of the user and their work from earlier conversations, best matches first, each with " +
      "its id and where it comes from. Use it when the past may matter and is not before you.",
    args: z.strictObject({
      query: z.string().trim().min(1).max(500).describe("What it is about, in a few words."),
      category: z.string().trim().min(1).max(64).optional().describe("Only memories of this category."),
      limit: z.int().min(1).max(MAX_LIMIT).optional().describe(`Memories at most. Default ${DEFAULT_LIMIT}.`),
    }),
    needs: [],
    risk: "read",
    async run({ query, category, limit = DEFAULT_LIMIT }, { owner, signal }) {
      const { found, degraded } = await vault.search(owner, query, { category, limit, signal });
      const lines = found.map(({ memory }) => lineOf(memory));
      if (lines.length === 0) lines.push("Nothing that is remembered matches.");
      if (degraded !== null) lines.push(`[${degraded}]`);
      const outside = found.some(({ memory }) => memory.outside);
      return { ...answer(lines.join("\n")), ...(outside ? { outside } : {}) };
    },
  });
}

function lineOf({ id, document, category, origin, outside, lastSeenAt, quote }: Memory): string {
  const source = [
    origin === "agent" ? "noted by you" : origin === "import" ? "imported" : "from the user",
    ...(outside ? ["with content from outside at hand"] : []),
    lastSeenAt.toISOString().slice(0, 10),
    ...(quote === null ? [] : [`the user said: ${JSON.stringify(quote)}`]),
  ];
  return `${id} [${category}] ${document.replace(/\s+/g, " ")} (${source.join("; ")})`;
}
