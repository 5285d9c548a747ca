/** The provider and the key that a `/v1` request is answered with. */
import type { Context } from "hono";
import type { Credentials, ModelRegistry, ProviderWish } from "../core/model.ts";
import type { AppEnv } from "./env.ts";
import { doorOf } from "./problem.ts";

/** Throws AppError; see ModelRegistry.choose. */
export function credentialsOf(c: Context<AppEnv>, models: ModelRegistry): Credentials {
  return models.choose(providerWishOf(c));
}

export function providerWishOf(c: Context<AppEnv>): ProviderWish {
  return {
    key: c.get("providerKey"),
    provider: c.req.header("x-provider"),
    param: "x-provider",
    where:
      doorOf(c.req.path) === "messages" ? "the x-api-key header" : "the Authorization header (Bearer <key>)",
  };
}
