import { expect, test } from "vitest";
import { createRedaction } from "../../src/core/redaction.ts";
import { createLog, type LogOptions } from "../../src/platform/log.ts";

function logTo(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const log = createLog({
    level: "info",
    format: "json",
    secrets: [],
    write: (line) => lines.push(line),
    ...options,
  });
  return { log, lines };
}

test("a line is one JSON object with its fields beside the message", () => {
  const { log, lines } = logTo();
  log("warning", "request", { path: "/v1/messages", status: 502, request_id: "req_1" });
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^\{.*\}\n$/);
  expect(JSON.parse(lines[0] as string)).toMatchObject({
    message: "request",
    path: "/v1/messages",
    status: 502,
    request_id: "req_1",
  });
});

test("lines below the level are not made", () => {
  for (const [level, expected] of [
    ["debug", 4],
    ["info", 3],
    ["warning", 2],
    ["error", 1],
    ["silent", 0],
  ] as const) {
    const { log, lines } = logTo({ level });
    for (const each of ["debug", "info", "warning", "error"] as const) log(each, "x");
    expect(lines).toHaveLength(expected);
  }
});

test.each(["json", "pretty"] as const)("K2: no secret leaves in a %s line, wherever it stands", (format) => {
  const secrets = ["sk-canary-0123456789", 'quoted"secret\\here'];
  const { log, lines } = logTo({ format, secrets });
  for (const secret of secrets) {
    log("error", `it said ${secret}`, { error: `Bearer ${secret}!`, nested: { list: [secret] } });
    log("error", "name", { [secret]: 1 });
  }
  expect(lines).toHaveLength(4);
  for (const line of lines) {
    expect(line).toContain("[redacted]");
    expect(line).not.toContain("canary");
    expect(line).not.toContain("here");
  }
});

test.each(["json", "pretty"] as const)(
  "K2: no caller's key leaves in a %s line while it is held",
  (format) => {
    const redaction = createRedaction();
    const { log, lines } = logTo({ format, redaction });
    // As a caller might choose it in order to break the line.
    const keys = ["sk-canary-0123456789", '","level":"canary', "nt:a-canary-behind-n"];
    for (const key of keys) redaction.hold(key);
    for (const key of keys)
      log("error", `it said ${key}`, {
        error: `a\n${key}\nb`,
        nested: { list: [key] },
        [key]: 1,
      });
    for (const line of lines) {
      expect(line.match(/\[key\]/g)).toHaveLength(4);
      for (const key of keys) expect(line).not.toContain(key);
      if (format === "json")
        expect(JSON.parse(line)).toMatchObject({ level: "ERROR", nested: { list: ["[key]"] } });
    }
  },
);

test.each(["json", "pretty"] as const)("a field cannot forge a second %s line", (format) => {
  const { log, lines } = logTo({ format });
  log("info", "request", { path: "/a\n12:00 ERR forged", agent: "\u001b[2J" });
  expect(lines).toHaveLength(1);
  expect(lines[0]?.trimEnd()).not.toContain("\n");
  expect(lines[0]).not.toContain("\u001b[2J");
});

test("two logs of one process do not meet", () => {
  const a = logTo();
  const b = logTo({ level: "debug" });
  b.log("debug", "x");
  expect([a.lines.length, b.lines.length]).toEqual([0, 1]);
});
