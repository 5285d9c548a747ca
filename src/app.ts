/** The route map: which path leads where, and what happens to what leads nowhere or throws. */
import { Hono } from "hono";
import { AppError } from "./errors.ts";
import { chatRoutes } from "./http/chat.ts";
import { countTokens } from "./http/count-tokens.ts";
import { docsRoutes } from "./http/docs.ts";
import type { AppEnv } from "./http/env.ts";
import { frontDoor } from "./http/front-doors.ts";
import { guard } from "./http/guard.ts";
import { healthRoutes } from "./http/health.ts";
import { idempotency } from "./http/idempotency.ts";
import { modelRoutes } from "./http/models.ts";
import { errorResponse } from "./http/problem.ts";
import { createQuota, quota } from "./http/quota.ts";
import { requestLog } from "./http/request-log.ts";
import { runRoutes } from "./http/runs.ts";
import { messageRoutes, sessionRoutes } from "./http/sessions.ts";
import { anthropicMessages } from "./protocols/anthropic-messages.ts";
import { openaiChat } from "./protocols/openai-chat.ts";
import type { Services } from "./services.ts";

/** `/v1`, and where SDKs land that put a path of their own behind the base URL: groq-sdk, and those given `…/v1` that add it again. */
const DOORS = ["/v1", "/openai/v1", "/v1/v1"];

export function createApp(services: Services): Hono<AppEnv> {
  const { config, platform } = services;
  const app = new Hono<AppEnv>();
  app.use(requestLog(platform.log));
  app.use(guard(config.access, { secret: platform.secret, redaction: platform.redaction }));
  app.route("/", healthRoutes(services));
  app.route("/", docsRoutes());

  const limits = createQuota({ ...config.quota, now: () => platform.now().getTime() });
  const limited = quota(limits);
  const once = idempotency(services);
  for (const path of ["/api/*", ...DOORS.map((base) => `${base}/*`)]) app.use(path, limited);
  for (const path of ["/api/chat", "/api/chat/approve", "/api/sessions/:id/fork"]) app.use(path, once);
  app.route("/api/chat", chatRoutes(services, limits));
  app.route("/api/runs", runRoutes(services));
  app.route("/api/sessions", sessionRoutes(services));
  app.route("/api/messages", messageRoutes(services));

  const chat = frontDoor(openaiChat, services, limits);
  const messages = frontDoor(anthropicMessages, services, limits);
  const count = countTokens(services);
  for (const base of DOORS) {
    app.post(`${base}/chat/completions`, chat);
    app.post(`${base}/messages`, messages);
    app.post(`${base}/messages/count_tokens`, count);
    app.route(`${base}/models`, modelRoutes(services));
  }

  app.notFound((c) =>
    errorResponse(
      c,
      new AppError(
        "not_found",
        `There is nothing at ${c.req.method} ${c.req.path}. The README lists the endpoints.`,
      ),
    ),
  );
  app.onError((error, c) => {
    if (!(error instanceof AppError))
      platform.log("error", "request failed", {
        request_id: c.get("requestId"),
        error: String(error.stack ?? error),
      });
    return errorResponse(c, error);
  });
  return app;
}
