/** What a caller may say of a server. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { connectRequest, toServer, toSlug } from "../../src/mcp/server-spec.ts";

const read = (body: unknown) => toServer(connectRequest.parse(body));

describe("a server", () => {
  test("is a program, or an address", () => {
    expect(read({ name: "My Files!", command: "npx", args: ["-y", "x"], env: { A: "1" } })).toEqual({
      spec: {
        ...{
          id: "my-files",
          name: "My Files!",
          transport: "stdio",
          command: "npx",
          args: ["-y", "x"],
          url: null,
        },
        tools: { include: [], exclude: [] },
      },
      secrets: { env: { A: "1" }, headers: {} },
    });
    expect(
      read({ server_id: "a_B", url: "https://x.example/mcp#part", headers: { "x-key": "k" } }),
    ).toMatchObject({
      spec: { id: "a_B", name: "a_B", transport: "http", url: "https://x.example/mcp" },
      secrets: { env: {}, headers: { "x-key": "k" } },
    });
    expect(read({ server_id: "saved" })).toBeNull();
  });

  test.each([
    [{}, "how to reach"],
    [{ name: "x", transport: "stdio" }, "command is required"],
    [{ name: "x", transport: "http", command: "x" }, "does not go with"],
    [{ name: "x", transport: "stdio", command: "x", url: "http://x" }, "does not go with"],
    [{ name: "x", url: "ftp://x" }, "http or https"],
    [{ name: "x", url: "https://user:secret@x.example/" }, "headers"],
    [{ name: "!!!", url: "https://x.example/" }, "server_id"],
  ])("%j is refused with a sentence", (body, sentence) => {
    expect(() => read(body)).toThrow(sentence);
  });

  test.each([
    { server_id: "a__b", url: "https://x.example" },
    { server_id: "../x", url: "https://x.example" },
    { name: "x", url: "https://x.example", headers: { "Mcp-Session-Id": "1" } },
    { name: "x", url: "https://x.example", headers: { "x-dragoman-caller": "1" } },
    { name: "x", url: "https://x.example", headers: { "x-a": "1\r\nx-b: 2" } },
    { name: "x", url: "https://x.example", headers: { "a b": "1" } },
    { name: "x", command: "x", env: { "A=B": "1" } },
    { name: "x", command: "x\0y" },
    { name: "x", command: "x", args: ["\0"] },
  ])("%j is not of the form", (body) => {
    expect(connectRequest.safeParse(body).success).toBe(false);
  });

  test("a slug is one for every name that has letters or digits", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 80 }), (name) => {
        const slug = toSlug(name);
        if (slug !== "") expect(connectRequest.safeParse({ server_id: slug }).success).toBe(true);
        expect(slug.length).toBeLessThanOrEqual(32);
      }),
    );
  });
});
