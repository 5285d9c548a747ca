/** E5: names that every provider takes, and that stay apart. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { toolName } from "../../src/mcp/names.ts";

const id = fc.stringMatching(/^[a-z0-9]{1,12}(-[a-z0-9]{1,12})?$/);

test("a name is the server's and the tool's, with what no provider takes replaced", async () => {
  expect(await toolName("files", "read_file")).toBe("files__read_file");
  expect(await toolName("files", "read.file/now")).toBe("files__read_file_now");
});

test("any name fits, and those that are cut are told apart by their hash", async () => {
  const name = fc.oneof(
    fc.string({ maxLength: 200, unit: "grapheme" }),
    fc.stringMatching(/^[a-zA-Z0-9_-]{50,120}$/),
  );
  await fc.assert(
    fc.asyncProperty(id, name, name, async (server, a, b) => {
      const [first, second] = [await toolName(server, a), await toolName(server, b)];
      expect(first).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(first.startsWith(`${server}__`)).toBe(true);
      expect(await toolName(server, a)).toBe(first);
      const isPlain = (text: string) => /^[A-Za-z0-9_-]*$/.test(text);
      if (a !== b && isPlain(a) && isPlain(b)) expect(second).not.toBe(first);
    }),
  );
});
