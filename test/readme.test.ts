import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { SETTINGS } from "../src/settings.ts";

test("the README's table of settings is the one that the service reads", () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const rows = readme.split("\n").filter((line) => /^\| `[A-Z0-9_]+` \|/.test(line));
  const code = (value: string) => (value === "none" || /[` ]/.test(value) ? value : `\`${value}\``);
  expect(rows).toEqual(
    SETTINGS.map(
      ({ name, default: fallback, description }) => `| \`${name}\` | ${code(fallback)} | ${description} |`,
    ),
  );
});
