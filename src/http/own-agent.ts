/**
 * Refuses what this service's own connections to MCP servers send: an address of theirs may lead back here through a proxy or
 * under another name, and the agent could decide its own approvals (P4).
 */
import type { MiddlewareHandler } from "hono";
import { AppError } from "../errors.ts";
import type { AppEnv } from "./env.ts";

const HEADER = "x-dragoman-caller";

export function refuseOwnAgent(mark: Promise<string>): MiddlewareHandler<AppEnv> {
  return async function ownAgent(c, next) {
    const caller = c.req.header(HEADER);
    if (caller !== undefined && caller === (await mark))
      throw new AppError(
        "forbidden",
        "This request comes from the service's own agent, which may not call it.",
      );
    return next();
  };
}
