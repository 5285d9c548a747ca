/** Log lines: LogTape's formats, our levels, and the last place at which a secret could leave. */
import {
  getAnsiColorFormatter,
  getJsonLinesFormatter,
  type LogLevel as TapeLevel,
  type TextFormatter,
} from "@logtape/logtape";
import type { Log, LogLevel } from "../core/platform.ts";
import type { Redaction } from "../core/redaction.ts";

export interface LogOptions {
  level: LogLevel | "silent";
  format: "json" | "pretty";
  /** Values that are cut out of every line, wherever they stand in it. */
  secrets: readonly string[];
  /** Keys of callers, which come and go. */
  redaction?: Redaction;
  /** Takes one line, its line feed included. Must neither wait nor throw. */
  write(line: string): void;
}

const RANK: Record<LogLevel | "silent", number> = { debug: 0, info: 1, warning: 2, error: 3, silent: 4 };
const CATEGORY = ["dragoman"];
/** Shorter values are words that lines hold by chance. */
const SECRET_LEAST = 6;

/** There is no process-wide configuration behind it: services in one process log apart from each other. */
export function createLog(options: LogOptions): Log {
  const least = RANK[options.level];
  const format = options.format === "json" ? jsonFormat() : prettyFormat();
  const redact = createCutter(options.secrets);
  const clean = options.redaction?.clean ?? ((value) => value);
  return (level, message, fields) => {
    if (RANK[level] < least) return;
    const line = format({
      category: CATEGORY,
      level: level as TapeLevel,
      message: [clean(message)],
      rawMessage: clean(message),
      timestamp: Date.now(),
      properties: clean(fields ?? {}),
    });
    options.write(redact(line));
  };
}

function jsonFormat(): TextFormatter {
  return getJsonLinesFormatter({ properties: "flatten", message: "template" });
}

function prettyFormat(): TextFormatter {
  return getAnsiColorFormatter({
    timestamp: "time",
    category: () => "",
    format: ({ timestamp, level, message, record }) => {
      let line = `${timestamp ?? ""} ${level} ${message}`;
      for (const [name, value] of Object.entries(record.properties))
        line += ` \x1b[2m${name}=\x1b[0m${plain(value)}`;
      return line;
    },
  });
}

function plain(value: unknown): string {
  // Escapes line feeds and control characters, so that a field cannot forge a line.
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "undefined");
  return /^[\x21-\x7e]+$/.test(text) ? text : JSON.stringify(text);
}

function createCutter(secrets: readonly string[]): (line: string) => string {
  const needles = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < SECRET_LEAST) continue;
    needles.add(secret);
    // As it stands inside a JSON string.
    needles.add(JSON.stringify(secret).slice(1, -1));
  }
  if (needles.size === 0) return (line) => line;
  return (line) => {
    let out = line;
    for (const needle of needles) if (out.includes(needle)) out = out.replaceAll(needle, "[redacted]");
    return out;
  };
}
