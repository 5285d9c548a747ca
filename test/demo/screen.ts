/** What the demo shows: text as it streams, wrapped to the terminal, with the agent's doings dimmed between it. */
import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

const WIDEST = 100;
const NARROWEST = 40;
const WITHOUT_TERMINAL = 80;
/** Lines of a tool's output that are shown. */
const OUTPUT_LINES = 6;

/** What the service tells of its tools under `x-agent-events: 1`, in either door. */
export interface Activity {
  type: string;
  name?: string;
  args?: string;
  output?: string;
  failed?: boolean;
}

export class Screen {
  readonly #out: NodeJS.WriteStream;
  readonly #width: number;
  #column = 0;
  /** Blanks between the last word and the next, which a line's end swallows. */
  #gap = "";
  /** Nothing of the reply stands below what came before it: line feeds at its start would only tear a hole. */
  #fresh = true;
  /** The beginning of a word that may go on. */
  #word = "";

  constructor(out: NodeJS.WriteStream = process.stdout) {
    this.#out = out;
    const columns = out.isTTY ? out.columns : WITHOUT_TERMINAL;
    this.#width = Math.max(NARROWEST, Math.min(columns, WIDEST)) - 2;
  }

  /** Whole paragraphs. */
  say(text: string, style?: Style): void {
    this.endLine();
    this.stream(text, style);
    this.endLine();
  }

  heading(text: string): void {
    this.endLine();
    this.#out.write(`\n${this.#styled(text, "bold")}\n`);
  }

  /** More of the reply. Words are kept whole, so the last one appears when the next begins. */
  stream(text: string, style?: Style): void {
    for (const c of text) {
      if (c !== " " && c !== "\n") {
        this.#word += c;
        continue;
      }
      this.#endWord(style);
      if (c === " ") this.#gap += c;
      else if (!this.#fresh) this.#newLine();
    }
  }

  activity(it: Activity): void {
    if (it.type === "tool-start") {
      this.endLine();
      this.#dim(`→ ${it.name} ${subject(it.args ?? "")}`);
    } else if (it.type === "tool-end") {
      this.endLine();
      const lines = (it.output ?? "").trimEnd().split("\n");
      for (const line of lines.slice(0, OUTPUT_LINES)) this.#dim(`  ${line}`);
      if (lines.length > OUTPUT_LINES) this.#dim(`  … ${lines.length - OUTPUT_LINES} more lines`);
    }
  }

  check(name: string, good: boolean): void {
    this.endLine();
    this.#out.write(`${good ? this.#styled("✓", "green") : this.#styled("✗", "red")} ${name}\n`);
  }

  /** A line to copy: not wrapped. */
  command(text: string): void {
    this.#out.write(`  ${this.#styled(text, "cyan")}\n`);
  }

  endLine(): void {
    this.#endWord();
    if (this.#column > 0) this.#newLine();
    this.#fresh = true;
  }

  #dim(line: string): void {
    const most = this.#width - 2;
    const shown = line.length > most ? `${line.slice(0, most - 1)}…` : line;
    this.#out.write(`  ${this.#styled(shown, "dim")}\n`);
  }

  #endWord(style?: Style): void {
    if (this.#word === "") return;
    const length = this.#gap.length + this.#word.length;
    if (this.#column > 0 && this.#column + length > this.#width) this.#newLine();
    const text = this.#gap + this.#word;
    this.#out.write(style ? this.#styled(text, style) : text);
    this.#column += text.length;
    this.#word = "";
    this.#gap = "";
    this.#fresh = false;
  }

  #newLine(): void {
    this.#out.write("\n");
    this.#column = 0;
    this.#gap = "";
  }

  /** Colours on a terminal only, and not where NO_COLOR is set. */
  #styled(text: string, style: Style): string {
    return styleText(style, text, { stream: this.#out });
  }
}

/** What a call is about: its path or its command. */
function subject(args: string): string {
  try {
    const { path, command } = JSON.parse(args) as { path?: string; command?: string };
    return path ?? command ?? args;
  } catch {
    return args;
  }
}
