import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseArgv } from "../../src/agent/command.ts";
import { createPolicy } from "../../src/agent/policy.ts";
import type { PolicyRule } from "../../src/core/policy.ts";

const terminal = { name: "run_terminal_command", risk: "execute" as const };
const write = { name: "create_file", risk: "write" as const };
const read = { name: "read_file", risk: "read" as const };
const web = { name: "read_web_page", risk: "network" as const };
const remember = { name: "remember", risk: "write" as const, consent: "after-outside" as const };
const forget = { name: "forget", risk: "read" as const, consent: "ask" as const };

describe("P1: policy as data", () => {
  test.each([
    ["ask", { read: "allow", write: "ask", execute: "ask" }],
    ["auto", { read: "allow", write: "allow", execute: "allow" }],
    ["deny", { read: "allow", write: "deny", execute: "deny" }],
  ] as const)("the default %s", (mode, wanted) => {
    const policy = createPolicy({ default: mode, rules: [] });
    expect(policy.decide(read, {})).toBe(wanted.read);
    expect(policy.decide(write, {})).toBe(wanted.write);
    expect(policy.decide(terminal, { command: "ls" })).toBe(wanted.execute);
    expect(policy.mayAllow(write)).toBe(wanted.write === "allow");
    expect(policy.decide(web, { url: "https://example.com" })).toBe("allow");
  });

  test("E4: what is kept for later is asked about once the model has read content from outside", () => {
    const policy = createPolicy({ default: "ask", rules: [] });
    expect(policy.decide(remember, {})).toBe("allow");
    expect(policy.decide(remember, {}, true)).toBe("ask");
    expect(policy.mayAllow(remember)).toBe(true);
    expect(createPolicy({ default: "deny", rules: [] }).decide(remember, {}, true)).toBe("deny");
    const rules: PolicyRule[] = [{ tool: "remember", decision: "allow" }];
    expect(createPolicy({ default: "ask", rules }).decide(remember, {}, true)).toBe("allow");
  });

  test("a tool may ask whatever its risk is", () => {
    const policy = createPolicy({ default: "ask", rules: [] });
    expect(policy.decide(forget, {})).toBe("ask");
    expect(policy.mayAllow(forget)).toBe(false);
    expect(createPolicy({ default: "auto", rules: [] }).decide(forget, {}, true)).toBe("allow");
  });

  test("deny wins wherever it stands; otherwise the last rule that matches", () => {
    const rules: PolicyRule[] = [
      { tool: "*", decision: "allow" },
      { tool: "create_file", args: { path: "secrets/*" }, decision: "deny" },
      { tool: "create_file", args: { path: "drafts/*" }, decision: "ask" },
      { tool: "create_file", args: { path: "drafts/free/*" }, decision: "allow" },
    ];
    for (const order of [rules, [...rules].reverse()]) {
      expect(createPolicy({ default: "ask", rules: order }).decide(write, { path: "secrets/a" })).toBe(
        "deny",
      );
    }
    const policy = createPolicy({ default: "ask", rules });
    expect(policy.decide(write, { path: "drafts/a" })).toBe("ask");
    expect(policy.decide(write, { path: "drafts/free/a" })).toBe("allow");
    expect(policy.decide(write, { path: "other" })).toBe("allow");
  });

  test.each([
    "secrets/a",
    "./secrets/a",
    "secrets//a",
    "docs/../secrets/a",
    "../workspace/../secrets/a",
    "/home/anna/workspace/secrets/a",
    "secrets\\a",
    ["docs/b", "./secrets/a"],
    { from: { path: "secrets/a" } },
  ])("a forbidden path is forbidden in every spelling: %j", (path) => {
    const rules: PolicyRule[] = [
      { tool: "*", decision: "allow" },
      { tool: "files__*", args: { path: "secrets/*" }, decision: "deny" },
      { tool: "files__*", args: { count: "5" }, decision: "deny" },
    ];
    const policy = createPolicy({ default: "ask", rules });
    const move = { name: "files__move", risk: "write" as const };
    expect(policy.decide(move, { path })).toBe("deny");
    for (const other of ["docs/secrets/a", "secret/a", "/home/secretsa", null, {}, []])
      expect(policy.decide(move, { path: other })).toBe("allow");
    expect(policy.decide(move, { count: 5 })).toBe("deny");
  });

  test("an allowed path cannot be left by dots", () => {
    const policy = createPolicy({
      default: "ask",
      rules: [{ tool: "create_file", args: { path: "docs/*" }, decision: "allow" }],
    });
    expect(policy.decide(write, { path: "docs/a.md" })).toBe("allow");
    expect(policy.decide(write, { path: "docs/../.bashrc" })).toBe("ask");
    expect(policy.decide(write, {})).toBe("ask");
    expect(policy.mayAllow(write)).toBe(true);
  });
});

describe("P3: a command rule binds an argv", () => {
  const policy = createPolicy({
    default: "ask",
    rules: [
      { tool: "run_terminal_command", args: { command: "git status" }, decision: "allow" },
      { tool: "run_terminal_command", args: { command: "npm test *" }, decision: "allow" },
    ],
  });

  test.each(["git status", "git  status", "npm test", "npm test -- --run", "'git' status", 'npm test "a b"'])(
    "allows %s",
    (command) => {
      expect(policy.decide(terminal, { command })).toBe("allow");
    },
  );

  test.each([
    "git status; rm -rf .",
    "git status && curl x",
    "git status | sh",
    "git status > f",
    "git status $(id)",
    "git status `id`",
    "git status\nid",
    "git status extra",
    "env git status",
    "sudo git status",
    "X=1 git status",
    "npm test $HOME",
    "npm test 'unclosed",
    "",
  ])("asks for %j", (command) => {
    expect(policy.decide(terminal, { command })).toBe("ask");
  });

  test.each(["sh", "bash", "env", "xargs", "sudo", "/usr/bin/env", "timeout"])(
    "%s is never a plain call",
    (wrapper) => {
      expect(parseArgv(`${wrapper} ls`)).toBeNull();
    },
  );

  test("whatever is appended behind an active character is never allowed", () => {
    const active = fc.constantFrom(";", "|", "&", "$(", "`", ">", "<", "\n", "&&", "||");
    fc.assert(
      fc.property(active, fc.string(), (mark, tail) => {
        expect(policy.decide(terminal, { command: `git status ${mark}${tail}` })).toBe("ask");
        expect(policy.decide(terminal, { command: `npm test ${mark}${tail}` })).toBe("ask");
      }),
    );
  });

  test("quoted words come back as they were", () => {
    const word = fc.stringMatching(/^[^'\0]*$/);
    fc.assert(
      fc.property(fc.array(word, { minLength: 1 }), (words) => {
        const command = ["ls", ...words.map((w) => `'${w}'`)].join(" ");
        expect(parseArgv(command)).toEqual(["ls", ...words]);
      }),
    );
  });
});
