import { afterEach, beforeEach, expect, test } from "vitest";
import { scriptedModel } from "../scripted-model.ts";
import { createHome, createService, json, type TestHome, type TestService } from "./service.ts";

let home: TestHome;
const services: TestService[] = [];
beforeEach(async () => {
  home = await createHome();
});
afterEach(async () => {
  for (const service of services.splice(0)) await service.close();
  await home.close();
});

async function toolsOf(env: Record<string, string> = {}) {
  const service = await createService(home, { model: scriptedModel([]), env, tools: "own" });
  services.push(service);
  const { tools } = await json(await service.request("/api/tools"));
  return new Map<string, Record<string, unknown>>(
    tools.map((tool: { name: string }) => [tool.name, tool] as const),
  );
}

test("every tool says what it is, what it takes and what happens to a call", async () => {
  const tools = await toolsOf();
  expect(tools.get("read_file")).toEqual({
    name: "read_file",
    description: expect.stringContaining("file"),
    parameters: expect.objectContaining({ type: "object", required: ["path"] }),
    ...{ source: "dragoman", risk: "read", approval: "allow", varies: false, available: true },
    offered: "always",
  });
  expect(tools.get("run_terminal_command")).toMatchObject({ risk: "execute", approval: "ask" });
  expect(tools.get("create_file")).toMatchObject({ risk: "write", approval: "ask" });
});

test("the operator's rules are in it", async () => {
  const rules = [
    { tool: "create_file", decision: "deny" },
    { tool: "run_terminal_command", args: { command: "git status" }, decision: "allow" },
  ];
  const tools = await toolsOf({ APPROVAL: JSON.stringify({ rules }) });
  expect(tools.get("create_file")).toMatchObject({ approval: "deny", varies: false });
  expect(tools.get("run_terminal_command")).toMatchObject({ approval: "ask", varies: true });
});

test("a tool that this platform cannot run is listed as such", async () => {
  const tools = await toolsOf({ TERMINAL: "off" });
  expect(tools.get("run_terminal_command")).toMatchObject({ available: false });
  expect(tools.get("read_file")).toMatchObject({ available: true });
});

test("the tool that leads a swarm is listed with when runs have it", async () => {
  const listed = (await toolsOf()).get("delegate");
  expect(listed).toMatchObject({
    ...{ source: "dragoman", risk: "read", approval: "allow", available: true, offered: "swarm" },
    parameters: { required: ["tasks"] },
  });
  expect((await toolsOf({ SWARM_DEPTH: "0" })).get("delegate")).toMatchObject({ available: false });
  const APPROVAL = JSON.stringify({ rules: [{ tool: "delegate", decision: "deny" }] });
  expect((await toolsOf({ APPROVAL })).get("delegate")).toMatchObject({ approval: "deny" });
});
