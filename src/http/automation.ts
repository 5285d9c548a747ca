/** `POST /api/automation/tick`: for hosts where nothing runs between requests and no trigger of their own calls. */
import { Hono } from "hono";
import { AppError } from "../errors.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";

export function automationRoutes(services: Services): Hono<AppEnv> {
  const { config, store } = services;
  return new Hono<AppEnv>().post("/tick", async (c) => {
    // With AUTH=key anybody who has a provider key is let in, and no one of them is the operator.
    if (config.access.mode === "key")
      throw new AppError(
        "forbidden",
        "Only the operator may tick, and with AUTH=key there is no token of the operator's. Set ACCESS_TOKENS instead, or let the service run where it has its own clock.",
      );
    await services.tick();
    const next = await store.automation.nextDue();
    return c.json({ status: "ticked", next_due: next?.toISOString() ?? null });
  });
}
