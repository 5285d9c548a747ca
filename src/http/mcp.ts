/** `/api/mcp`: the MCP servers whose tools the agent has. */
import { Hono } from "hono";
import * as z from "zod";
import { connectRequest } from "../mcp/server-spec.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";
import { readBody } from "./validate.ts";

const APPROVALS_LIMIT = 500;

export const approveRequest = z
  .looseObject({
    tools: z
      .array(z.looseObject({ name: z.string().min(1), hash: z.string().min(1) }))
      .max(APPROVALS_LIMIT)
      .nullish()
      .describe("What was seen in `held_back`. Default: all that is held back now."),
  })
  .meta({ id: "McpApproveRequest" });

export function mcpRoutes({ mcp, config }: Services): Hono<AppEnv> {
  const limits = { limit: config.body.apiLimit, timeoutMs: config.body.timeoutMs };
  return new Hono<AppEnv>()
    .get("/servers", async (c) => c.json(await mcp.view(c.get("owner"))))
    .post("/connect", async (c) => {
      const request = await readBody(c, connectRequest, limits);
      const { id, tools, problem } = await mcp.connect(c.get("owner"), request);
      return c.json({ status: "connected", id, tools, problem }, 201);
    })
    .post("/servers/:id/approve", async (c) => {
      const { tools } = hasBody(c.req.raw) ? await readBody(c, approveRequest, limits) : {};
      const approved = await mcp.approve(c.get("owner"), c.req.param("id"), tools ?? undefined);
      return c.json({ status: "approved", approved });
    })
    .post("/disconnect/:id", async (c) => {
      await mcp.disconnect(c.get("owner"), c.req.param("id"));
      return c.json({ status: "disconnected", id: c.req.param("id") });
    })
    .delete("/saved/:id", async (c) => {
      await mcp.forget(c.get("owner"), c.req.param("id"));
      return c.json({ status: "deleted", deleted: 1 });
    });
}

/** Whoever approves all of it need not send anything. */
function hasBody({ headers }: Request): boolean {
  if (headers.has("content-type") || headers.has("transfer-encoding")) return true;
  return (headers.get("content-length") ?? "0") !== "0";
}
