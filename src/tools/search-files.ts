/** `search_files`: lines that match a pattern, in all text files of a directory. */
import * as z from "zod";
import type { FileEntry, Workspace } from "../core/platform.ts";
import { defineTool } from "../core/tool.ts";
import type { TextPattern } from "./pattern.ts";
import { answer, count, cutLine, isBinary, MAX_RESULT_CHARS } from "./result.ts";

const DEFAULT_RESULTS = 200;
const MAX_RESULTS = 1_000;
const MAX_FILE_BYTES = 5 * 1024 * 1024;
/** Characters of a found line that are shown. */
const MAX_SHOWN_CHARS = 400;
/**
 * Characters searched between two turns of the event loop, of one line and of several, by a pattern of few steps; one of
 * more gets fewer. They take some ten milliseconds.
 */
const CHARS_PER_TURN = 64 * 1024;
const LEAST_PER_TURN = 256;
const FEW_STEPS = 16;
/** Characters of one line that are searched, in turns. */
const LINE_TURNS = 4;
/** Files opened between two turns of the event loop. */
const FILES_PER_TURN = 50;

export const searchFiles = defineTool({
  name: "search_files",
  description:
    "Searches the text files of the workspace for a regular expression (RE2 syntax, line by line) or a literal " +
    "text and returns `path:line: text` for each line that matches. Skips .git, node_modules, binary files and " +
    "files over 5 MiB.",
  args: z.strictObject({
    pattern: z.string().min(1).describe("What to look for in each line."),
    path: z
      .string()
      .optional()
      .describe("Directory or file to search, relative to the workspace. Default: all."),
    glob: z
      .string()
      .min(1)
      .optional()
      .describe(
        "Only files whose name (or path, if it has a slash) matches, for example *.ts or src/**/*.py.",
      ),
    literal: z.boolean().optional().describe("Take the pattern as plain text. Default false."),
    ignore_case: z.boolean().optional().describe("Take upper and lower case as the same. Default false."),
    max_results: z
      .int()
      .min(1)
      .max(MAX_RESULTS)
      .optional()
      .describe(`Lines to return at most. Default ${DEFAULT_RESULTS}.`),
  }),
  needs: ["files"],
  risk: "read",
  outside: true,
  async run({ pattern, path = "", glob, literal = false, ignore_case = false, max_results }, context) {
    const { files, signal } = context;
    // Loaded with the first search, so that starting the service does not pay for the engine.
    const { compileGlob, compileText } = await import("./pattern.ts");
    const wanted = compileText(pattern, { literal, ignoreCase: ignore_case });
    const matches = glob === undefined ? () => true : compileGlob(glob);
    const start = await files.stat(path);
    const below = start.path === "" ? 0 : start.path.length + 1;
    const search = new Search(files, wanted, max_results ?? DEFAULT_RESULTS, signal);
    const found = start.directory ? files.walk(start.path, signal) : [start];
    for await (const entry of found) {
      const chosen = matches(entry.path) || (start.directory && matches(entry.path.slice(below)));
      if (chosen && !(await search.file(entry))) break;
    }
    return answer(search.report());
  },
});

class Search {
  readonly #files: Workspace;
  readonly #pattern: TextPattern;
  readonly #limit: number;
  readonly #signal: AbortSignal;
  readonly #perTurn: number;
  readonly #longestLine: number;
  readonly #lines: string[] = [];
  #size = 0;
  #searched = 0;
  #tooLarge = 0;
  #cut = false;
  #sinceTurn = 0;

  constructor(files: Workspace, pattern: TextPattern, limit: number, signal: AbortSignal) {
    this.#files = files;
    this.#pattern = pattern;
    this.#limit = limit;
    this.#signal = signal;
    const share = FEW_STEPS / Math.max(FEW_STEPS, pattern.size);
    this.#perTurn = Math.max(LEAST_PER_TURN, Math.floor(CHARS_PER_TURN * share));
    this.#longestLine = LINE_TURNS * this.#perTurn;
  }

  /** false when there is no room for more results. */
  async file(entry: FileEntry): Promise<boolean> {
    if (entry.size > MAX_FILE_BYTES) {
      this.#tooLarge++;
      return true;
    }
    const bytes = await this.#files.read(entry.path).catch(() => null);
    // Removed or closed to us since it was listed.
    if (bytes === null || isBinary(bytes)) return true;
    this.#searched++;
    await this.#turn(this.#perTurn / FILES_PER_TURN);
    const text = new TextDecoder().decode(bytes).replaceAll("\r\n", "\n").replace(/\n$/, "");
    let line = 1;
    for (let from = 0; from < text.length; ) {
      const newline = text.indexOf("\n", Math.min(from + this.#perTurn, text.length));
      const end = newline === -1 ? text.length : newline;
      const block = text.slice(from, end);
      const long = block.length > this.#longestLine;
      const lines = long || this.#pattern.block(block) ? block.split("\n") : null;
      if (lines !== null && !this.#collect(entry.path, lines, line)) return false;
      line += lines?.length ?? countNewlines(block) + 1;
      from = end + 1;
      await this.#turn(block.length);
    }
    return true;
  }

  #collect(path: string, lines: string[], first: number): boolean {
    for (const [index, line] of lines.entries()) {
      const searched = line.length > this.#longestLine ? line.slice(0, this.#longestLine) : line;
      if (!this.#pattern.line(searched)) continue;
      const shown = `${path}:${first + index}: ${cutLine(line, MAX_SHOWN_CHARS)}`;
      this.#size += shown.length + 1;
      this.#cut = this.#lines.length === this.#limit || this.#size > MAX_RESULT_CHARS;
      if (this.#cut) return false;
      this.#lines.push(shown);
    }
    return true;
  }

  async #turn(work: number): Promise<void> {
    this.#sinceTurn += work;
    if (this.#sinceTurn < this.#perTurn) return;
    this.#sinceTurn = 0;
    await new Promise((resolve) => setTimeout(resolve, 0));
    this.#signal.throwIfAborted();
  }

  report(): string {
    const large = this.#tooLarge === 0 ? "" : ` Not searched: ${count(this.#tooLarge, "file")} over 5 MiB.`;
    if (this.#lines.length === 0) return `No match in ${count(this.#searched, "text file")}.${large}`;
    const out = [...this.#lines];
    if (this.#cut) {
      out.push(`[there are more matches: narrow the pattern, the path or the glob, or raise max_results]`);
    }
    if (large !== "") out.push(`[${large.trim()}]`);
    return out.join("\n");
  }
}

function countNewlines(text: string): number {
  let newlines = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) newlines++;
  return newlines;
}
