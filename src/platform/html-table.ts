/** Tables that hold data, as Markdown tables; those that only lay out a page are none. */
import type { Rule } from "turndown";

const MAX_COLUMNS = 60;
/** Characters of one cell. */
const MAX_CELL_CHARS = 2_000;

export function tableRules(): Record<string, Rule> {
  const known = new WeakMap<Element, boolean>();
  const isData = (node: Element): boolean => {
    const table = node.closest("table");
    if (!table) return false;
    const answer = known.get(table) ?? isDataTable(table);
    known.set(table, answer);
    return answer;
  };
  return {
    cell: {
      filter: ["td", "th"],
      replacement: (content, cell) => {
        if (!isData(cell)) return `\n\n${content}\n\n`;
        const text = content.replaceAll(/\s+/g, " ").replaceAll("|", "\\|").trim();
        const clipped = text.length <= MAX_CELL_CHARS ? text : `${text.slice(0, MAX_CELL_CHARS)}…`;
        return ` ${clipped} |${"  |".repeat(spanOf(cell) - 1)}`;
      },
    },
    row: {
      filter: "tr",
      replacement: (content, row) => (isData(row) ? `\n|${content}` : `\n\n${content}\n\n`),
    },
    rows: {
      filter: ["thead", "tbody", "tfoot"],
      replacement: (content, rows) => (isData(rows) ? `\n${content}` : `\n\n${content}\n\n`),
    },
    caption: {
      filter: "caption",
      replacement: (content) => `\n\n**${content.replaceAll(/\s+/g, " ").trim()}**\n\n`,
    },
    table: {
      filter: "table",
      replacement: (content, table) => `\n\n${isData(table) ? written(content) : content}\n\n`,
    },
  };
}

function written(content: string): string {
  const lines = content.split("\n").filter((line) => /[^|\s]/.test(line));
  const rows = lines.filter((line) => line.startsWith("|"));
  const width = rows.reduce((most, row) => Math.max(most, columnsOf(row)), 0);
  const [head, ...rest] = rows.map((row) => row + "  |".repeat(width - columnsOf(row)));
  const title = lines.filter((line) => !line.startsWith("|")).map((line) => `${line}\n\n`);
  return `${title.join("")}${[head, `|${" --- |".repeat(width)}`, ...rest].join("\n")}`;
}

function columnsOf(row: string): number {
  return (row.match(/(?<!\\)\|/g)?.length ?? 1) - 1;
}

function isDataTable(table: Element): boolean {
  const role = table.getAttribute("role");
  if (role === "presentation" || role === "none") return false;
  if (table.querySelector("table, pre, h1, h2")) return false;
  const rows = [...table.querySelectorAll("tr")];
  const widest = rows.reduce((most, row) => Math.max(most, row.childElementCount), 0);
  return widest >= 2 && (rows.length >= 2 || table.querySelector("th") !== null);
}

function spanOf(cell: Element): number {
  const span = Number(cell.getAttribute("colspan") ?? 1);
  return Number.isInteger(span) && span > 1 ? Math.min(span, MAX_COLUMNS) : 1;
}
