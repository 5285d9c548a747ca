import { describe, expect, test } from "vitest";
import * as z from "zod";
import { parseConfig } from "../../src/config.ts";
import { createTools } from "../../src/tools/registry.ts";

const tools = createTools(parseConfig({}, { runtime: "node" }));

describe("registry", () => {
  test("the tools, their risks and needs are the contract", () => {
    expect(tools.map(({ name, risk, needs }) => [name, risk, [...needs].sort()])).toEqual([
      ["run_terminal_command", "execute", ["files", "terminal"]],
      ["read_terminal_output", "read", ["terminal"]],
      ["stop_terminal_command", "read", ["terminal"]],
      ["create_file", "write", ["files"]],
      ["read_file", "read", ["files"]],
      ["edit_file", "write", ["files"]],
      ["list_files", "read", ["files"]],
      ["search_files", "read", ["files"]],
      ["search_web", "network", []],
      ["read_web_page", "network", []],
    ]);
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
