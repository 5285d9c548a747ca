/** `search_notes`: which notes of the user speak of something, and where in them. */
import * as z from "zod";
import type { FoundNote, Notes } from "../core/notes.ts";
import { defineTool, type Tool } from "../core/tool.ts";
import { answer, count, cutLine } from "./result.ts";

const DEFAULT_NOTES = 10;
const MAX_NOTES = 50;
const MAX_QUERY_CHARS = 500;
const SHOWN_CHARS = 240;

export function createSearchNotes(notes: Notes): Tool {
  return defineTool({
    name: "search_notes",
    description:
      "Searches the user's notes by words in titles and texts, best match first; without a query it lists the newest. " +
      "Shows id, title, category and where the words stand. Read a whole note with read_note.",
    args: z.strictObject({
      query: z
        .string()
        .max(MAX_QUERY_CHARS)
        .optional()
        .describe("Words to look for. Absent: the newest notes."),
      category: z.string().optional().describe("Only notes of this category."),
      limit: z.int().min(1).max(MAX_NOTES).optional().describe(`Notes to show. Default ${DEFAULT_NOTES}.`),
    }),
    needs: [],
    risk: "read",
    outside: true,
    async run({ query, category, limit = DEFAULT_NOTES }, { owner }) {
      const asked = { query, category, limit };
      let { notes: found } = await notes.list(owner, asked);
      let head = `${count(found.length, "note")}:`;
      if (found.length === 0 && query !== undefined) {
        ({ notes: found } = await notes.list(owner, { ...asked, anyWord: true }));
        head = "No note has all of these words. Some of them are in:";
      }
      if (found.length === 0) return answer(await nothing(owner, query, category));
      return answer([head, ...found.map(describe)].join("\n"));
    },
  });

  async function nothing(owner: string, query: string | undefined, category: string | undefined) {
    const what = query === undefined ? "There are no notes" : "No note has any of these words";
    if (category === undefined) return `${what}.`;
    const names = (await notes.categories(owner)).map((each) => each.category);
    const others = names.length === 0 ? "" : ` The categories are: ${names.join(", ")}.`;
    return `${what} in the category '${category}'.${cutLine(others)}`;
  }
}

function describe({ id, title, category, updatedAt, content, snippet }: FoundNote): string {
  const text = snippet ?? content.slice(0, SHOWN_CHARS).toWellFormed();
  const line = text.replaceAll(/\s+/g, " ").trim();
  const cut = snippet === undefined && content.length > SHOWN_CHARS ? "…" : "";
  const head = `- ${id}: ${title} [${category}, ${updatedAt.toISOString().slice(0, 10)}]`;
  return line === "" ? head : `${head}\n  ${line}${cut}`;
}
