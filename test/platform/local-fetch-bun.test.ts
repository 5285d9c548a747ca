/** E1 on Bun: the tests of local-fetch.test.ts there, where node:http is another one. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { bunPath } from "../runtimes.ts";

const LEAST = 280;

test("the guarded fetch of Bun passes what that of Node passes", async () => {
  const cwd = fileURLToPath(new URL("../../", import.meta.url));
  const args = ["test", "./test/platform/local-fetch.test.ts"];
  // What it reports goes to stderr; a failure rejects with it.
  const { stderr } = await promisify(execFile)(bunPath(), args, { cwd, maxBuffer: 16 * 1024 * 1024 });
  expect(Number(/(\d+) pass/.exec(stderr)?.[1])).toBeGreaterThan(LEAST);
  expect(stderr).toMatch(/\b0 fail/);
});
