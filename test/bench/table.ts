/** A table for a terminal: columns as wide as they need to be, figures to the right. */

export type Line = string[] | "rule";

export function table(head: string[], lines: Line[]): string {
  const rows = [head, ...lines.filter((line) => line !== "rule")];
  const widths = head.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const write = (row: string[]) =>
    widths
      .map((width, i) => (i === 0 ? (row[i] ?? "").padEnd(width) : (row[i] ?? "").padStart(width)))
      .join("  ")
      .trimEnd();
  const rule = widths.map((width) => "─".repeat(width)).join("  ");
  return [write(head), rule, ...lines.map((line) => (line === "rule" ? rule : write(line)))].join("\n");
}

/** Three digits that matter. */
export function figure(value: number, unit = ""): string {
  if (!Number.isFinite(value)) return "–";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${unit && ` ${unit}`}`;
}

export function ratio(value: number, base: number): string {
  return Number.isFinite(value / base) ? `${(value / base).toFixed(2)}×` : "–";
}
