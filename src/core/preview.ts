/**
 * A call as the person who decides about it sees it: all that would run, nothing cut, nothing that hides (P3). Pure.
 *
 * A character that shows nothing, or turns its neighbours round, is written as `⟨U+202E⟩`, and `⟨` itself is written
 * that way too: a preview says one thing only.
 */
import { toArgs } from "./args.ts";

/** Tools whose call is a command line: it is shown as such. */
const COMMAND_TOOLS = new Set(["run_terminal_command"]);

/** Spaces in a row, and lines that end in a row, beyond which what follows could be out of sight. */
const SPACES_LIMIT = 32;
const LINE_ENDS_LIMIT = 3;

/**
 * Controls, format and bidi characters, surrogates, private and unassigned ones, separators, fillers, the blank braille
 * pattern, the bracket of the marks. Spaces and line ends are plain while they are few.
 */
const HIDDEN = /[ \n]{4,}|(?![ \n])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\u27e8]/gu;

export function isCommand(name: string): boolean {
  return COMMAND_TOOLS.has(name);
}

/** Whether the next command starts where this call's ends. */
function leads(name: string, args: string): boolean {
  const parsed = isCommand(name) ? toArgs(args) : null;
  return parsed !== null && typeof parsed.cwd !== "string" && parsed.background !== true;
}

/** What would run, call for call in this order, when the first command starts in `directory`. */
export function previewsOf(calls: readonly { name: string; args: string }[], directory: string): string[] {
  let start: string | null = directory;
  return calls.map(({ name, args }) => {
    const preview = previewOf(name, args, start);
    if (leads(name, args)) start = null;
    return preview;
  });
}

/**
 * What would run: the command line of a command tool with its other arguments behind it, otherwise `name(arguments)`.
 * @param directory workspace path where a command starts that does not say so itself; empty is the root, null where a
 * command before it ends.
 */
export function previewOf(name: string, args: string, directory: string | null = ""): string {
  const parsed = toArgs(args);
  if (parsed === null) return `${reveal(name)}(${reveal(args)})`;
  const { command, ...others } = parsed;
  if (isCommand(name) && typeof command === "string") {
    const starts = typeof others.cwd === "string" ? "" : directory;
    const rest = Object.entries(starts ? { ...others, cwd: starts } : others).map(
      ([key, value]) => `${reveal(key)}: ${reveal(JSON.stringify(value))}`,
    );
    if (starts === null) rest.push("cwd: where the command before it ends");
    return rest.length === 0 ? reveal(command) : `${reveal(command)}\n⟨${rest.join(", ")}⟩`;
  }
  const shown = Object.keys(parsed).length === 0 ? "" : JSON.stringify(parsed, null, 2);
  return `${reveal(name)}(${reveal(shown)})`;
}

/** Text with everything in it visible. Different texts stay different. */
export function reveal(text: string): string {
  return text.replace(HIDDEN, (found) =>
    found[0] === " " || found[0] === "\n" ? gap(found) : mark(found, 1),
  );
}

/** Spaces and line ends: as they are, unless they push what follows out of sight. */
function gap(blank: string): string {
  const stretches = blank.match(/ +|\n+/g) as string[];
  let lineEnds = 0;
  let spaces = 0;
  for (const { length, 0: first } of stretches) {
    if (first === "\n") lineEnds += length;
    else spaces = Math.max(spaces, length);
  }
  if (lineEnds <= LINE_ENDS_LIMIT && spaces <= SPACES_LIMIT) return blank;
  return stretches.map((stretch) => mark(stretch, stretch.length)).join("");
}

function mark(character: string, times: number): string {
  const code = (character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0");
  return times === 1 ? `⟨U+${code}⟩` : `⟨U+${code} ×${times}⟩`;
}
