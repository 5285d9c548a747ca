/** The tools of `/mcp` that look at what is known: memories and notes. */
import * as z from "zod";
import type { ServedTool } from "../mcp/server.ts";
import type { Services } from "../services.ts";
import type { McpCaller } from "./mcp-calls.ts";
import { encodeMemory, memoryView } from "./memory-records.ts";
import { encodeNote, noteView } from "./notes.ts";

const PAGE = 20;
const LARGEST_PAGE = 200;

const query = z.string().trim().min(1).max(500);
const limit = z.int().min(1).max(LARGEST_PAGE).default(PAGE).describe("Entries of one answer.");
const category = z.string().trim().min(1).max(100).optional().describe("Only those of this category.");

const memoryArgs = z.object({ query: query.describe("What it is about, in words."), category, limit });
const memoryResult = z.object({ memories: z.array(memoryView).describe("The best matches first.") });

const { content: _, ...heading } = noteView.shape;
const noteHeading = z.object(heading);
const notesArgs = z.object({
  query: query.optional().describe("Words that all have to be there. Without them: the newest changes."),
  category,
  limit,
  cursor: z.string().optional().describe("`next_cursor` of the answer before."),
});
const notesResult = z.object({ notes: z.array(noteHeading), next_cursor: z.string().nullable() });
const noteArgs = z.object({ note_id: z.string().min(1) });
const noteResult = z.object(noteView.shape);

const READS = { readOnlyHint: true, openWorldHint: false } as const;

export function knowledgeTools({ memory, store }: Services): ServedTool<McpCaller>[] {
  const searchMemory: ServedTool<McpCaller, z.infer<typeof memoryArgs>> = {
    name: "search_memory",
    title: "Search the memory",
    description: "What the agent remembers of the person it works for: facts, each with where it comes from.",
    args: memoryArgs,
    result: memoryResult,
    hints: READS,
    async run({ query, ...options }, { caller: { owner } }) {
      const { found } = await memory.search(owner, query, options);
      return { structured: { memories: found.map((each) => encodeMemory(each.memory)) } };
    },
  };

  const searchNotes: ServedTool<McpCaller, z.infer<typeof notesArgs>> = {
    name: "search_notes",
    title: "Search the notes",
    description: "The notes that have these words, without their contents: read_note has those.",
    args: notesArgs,
    result: notesResult,
    hints: READS,
    async run(args, { caller: { owner } }) {
      const { notes, next } = await store.notes.list(owner, args);
      const headings = notes.map((note) => {
        const { content: _, ...rest } = encodeNote(note);
        return rest;
      });
      return { structured: { notes: headings, next_cursor: next } };
    },
  };

  const readNote: ServedTool<McpCaller, z.infer<typeof noteArgs>> = {
    name: "read_note",
    title: "Read a note",
    description: "One note in whole, as Markdown.",
    args: noteArgs,
    result: noteResult,
    hints: READS,
    async run({ note_id: id }, { caller: { owner } }) {
      return { structured: encodeNote(await store.notes.get(owner, id)) };
    },
  };

  return [searchMemory, searchNotes, readNote] as ServedTool<McpCaller>[];
}
