/** `GET /api/tools`: what the agent can do here, and what happens when it wants to. */
import { Hono } from "hono";
import * as z from "zod";
import { createPolicy } from "../agent/policy.ts";
import { DECISIONS } from "../core/policy.ts";
import { toolSpec } from "../core/tool.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";

export const toolView = z
  .object({
    name: z.string(),
    description: z.string(),
    parameters: z.record(z.string(), z.unknown()).describe("JSON schema of its arguments."),
    source: z.string().describe("`dragoman`, or the id of an MCP server."),
    risk: z.enum(["read", "write", "execute", "network"]),
    approval: z
      .enum(DECISIONS)
      .describe("What happens to a call: `allow` runs it, `ask` waits for a person, `deny` refuses it."),
    varies: z
      .boolean()
      .describe(
        "Whether that may differ from call to call, by its arguments or by what the agent has read before.",
      ),
    available: z
      .boolean()
      .describe("Whether this platform has what the tool needs, and the operator lets it be used."),
    offered: z
      .enum(["always", "swarm"])
      .describe(
        "When runs have it, where policy and their own lists let them: `swarm` only with `use_swarm`, and where an agent with `sub_agents` leads.",
      ),
  })
  .meta({ id: "Tool" });

export const toolList = z.object({ tools: z.array(toolView) }).meta({ id: "ToolList" });

export function toolRoutes({ agent, platform, config }: Services): Hono<AppEnv> {
  const policy = createPolicy(config.approval);

  return new Hono<AppEnv>().get("/", async (c) => {
    const owner = c.get("owner");
    const hasTerminal = platform.terminal?.(owner) !== undefined;
    const all = await agent.tools.of(owner);
    const swarm = agent.swarm?.listed;
    const tools = (swarm ? [...all, swarm] : all).map((tool): z.output<typeof toolView> => {
      const spec = toolSpec(tool);
      return {
        name: tool.name,
        description: tool.description,
        parameters: spec.kind === "function" ? (spec.parameters ?? {}) : {},
        source: tool.source ?? "dragoman",
        risk: tool.risk,
        approval: policy.decide(tool, {}),
        varies: policy.varies(tool),
        available:
          tool === swarm ? agent.swarm?.reaches(0) === true : hasTerminal || !tool.needs.includes("terminal"),
        offered: tool === swarm ? "swarm" : "always",
      };
    });
    return c.json({ tools });
  });
}
