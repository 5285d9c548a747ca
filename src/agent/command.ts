/**
 * A shell command as a plain argv, where it is one. A rule may allow an argv and never a prefix of text: `git status`
 * must not let `git status; curl …` through (GHSA-796m-2973-wc5q).
 */

/** Characters that make a shell do more than run one program with the words that are shown. */
const ACTIVE = new Set([
  ";",
  "|",
  "&",
  "$",
  "`",
  ">",
  "<",
  "\n",
  "\r",
  "(",
  ")",
  "{",
  "}",
  "*",
  "?",
  "[",
  "]",
  "~",
  "#",
  "!",
  "\0",
]);

/** Programs that run what their arguments say: allowing one of them by name would allow everything. */
const WRAPPERS = new Set([
  ...[
    "env",
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "fish",
    "xargs",
    "sudo",
    "doas",
    "su",
    "nohup",
    "nice",
    "timeout",
  ],
  ...[
    "time",
    "exec",
    "eval",
    "command",
    "builtin",
    "source",
    ".",
    "find",
    "ssh",
    "setsid",
    "watch",
    "parallel",
  ],
]);

/** The words of a command, or null when it is more than one plain program call. Quotes group; backslashes escape. */
export function parseArgv(command: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let i = 0; i < command.length; i++) {
    const c = command[i] as string;
    if (quote === "'") {
      if (c === "'") quote = "";
      else word += c;
    } else if (quote === '"') {
      if (c === '"') quote = "";
      else if (c === "$" || c === "`" || c === "\\" || c === "!") return null;
      else word += c;
    } else if (c === "'" || c === '"') {
      quote = c;
      word ??= "";
    } else if (c === "\\") {
      return null;
    } else if (c === " " || c === "\t") {
      if (word !== null) words.push(word);
      word = null;
    } else if (ACTIVE.has(c)) {
      return null;
    } else {
      word = (word ?? "") + c;
    }
  }
  if (quote) return null;
  if (word !== null) words.push(word);
  const program = words[0];
  if (program === undefined || program.includes("=")) return null;
  return WRAPPERS.has(program.slice(program.lastIndexOf("/") + 1)) ? null : words;
}
