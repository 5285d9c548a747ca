import { describe, expect, test } from "vitest";
import * as z from "zod";
import { offeredTools, tools } from "../../src/tools/registry.ts";

describe("registry", () => {
  test("the tools, their risks and needs are the contract", () => {
    expect(tools.map(({ name, risk, needs }) => [name, risk, [...needs].sort()])).toEqual([
      ["run_terminal_command", "execute", ["files", "terminal"]],
      ["create_file", "write", ["files"]],
      ["read_file", "read", ["files"]],
      ["edit_file", "write", ["files"]],
      ["list_files", "read", ["files"]],
      ["search_files", "read", ["files"]],
    ]);
  });

  test("a tool whose needs are not met is not offered", () => {
    expect(offeredTools(new Set(["files"])).map((tool) => tool.name)).not.toContain("run_terminal_command");
    expect(offeredTools(new Set(["files", "terminal"]))).toEqual(tools);
    expect(offeredTools(new Set())).toEqual([]);
  });

  test.each(tools.map((tool) => [tool.name, tool] as const))(
    "the schema of %s is plain enough for every provider",
    (_, tool) => {
      const schema = z.toJSONSchema(tool.args) as Record<string, unknown>;
      expect(schema).toMatchObject({ type: "object", additionalProperties: false });
      expect(JSON.stringify(schema)).not.toMatch(/\$ref|anyOf|oneOf|allOf|9007199254740991/);
      for (const property of Object.values(schema.properties as Record<string, Record<string, unknown>>)) {
        expect(property.description).toEqual(expect.any(String));
        expect(["string", "integer", "boolean"]).toContain(property.type);
      }
      expect(z.toJSONSchema(tool.args, { io: "input" })).toEqual(schema);
    },
  );
});
