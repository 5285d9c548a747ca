/** `POST /v1/messages/count_tokens`: the provider's own count where it has one, otherwise an estimate that says so. */
import type { Handler } from "hono";
import { messageTokens, promptTokens } from "../agent/estimate.ts";
import type { ModelRequest } from "../core/model.ts";
import { countTokensRequest, decodeCountTokens } from "../protocols/anthropic-messages-request.ts";
import { parseWire } from "../protocols/problem.ts";
import type { Services } from "../services.ts";
import { readJson } from "./body.ts";
import { providerWishOf } from "./credentials.ts";
import type { AppEnv } from "./env.ts";
import { headerValue } from "./header-value.ts";
import { whoAnswers } from "./who-answers.ts";

export function countTokens(services: Services): Handler<AppEnv> {
  const { config } = services;
  return async (c) => {
    const body = await readJson(c.req.raw, { limit: config.body.v1Limit, timeoutMs: config.body.timeoutMs });
    const { request } = decodeCountTokens(parseWire(countTokensRequest, body), {
      headers: c.req.raw.headers,
      query: new URLSearchParams(c.req.url.split("?")[1] ?? ""),
    });
    const { credentials, target } = await whoAnswers(services, c.get("owner"), request, providerWishOf(c));
    const adapter = await services.models.adapter(credentials);
    c.header("x-upstream-model", headerValue(target.model));
    if (adapter.countTokens) {
      const tokens = await adapter.countTokens({ ...request, model: target.model }, c.req.raw.signal);
      return c.json({ input_tokens: tokens });
    }
    c.header("x-estimated", "1");
    return c.json({ input_tokens: estimate(request) });
  };
}

function estimate(request: ModelRequest): number {
  return request.messages.reduce((sum, message) => sum + messageTokens(message), promptTokens(request));
}
