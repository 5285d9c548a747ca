/** The route map: which path leads where, and what happens to what leads nowhere or throws. */
import { Hono } from "hono";
import { AppError } from "./errors.ts";
import { agentRoutes } from "./http/agents.ts";
import { automationRoutes } from "./http/automation.ts";
import { chatRoutes } from "./http/chat.ts";
import { countTokens } from "./http/count-tokens.ts";
import { cronRoutes, runAsked } from "./http/cron.ts";
import { docsRoutes } from "./http/docs.ts";
import type { AppEnv } from "./http/env.ts";
import { fileRoutes } from "./http/files.ts";
import { frontDoor } from "./http/front-doors.ts";
import { guard } from "./http/guard.ts";
import { healthRoutes } from "./http/health.ts";
import { idempotency } from "./http/idempotency.ts";
import { uploadAsked } from "./http/images.ts";
import { mcpRoutes } from "./http/mcp.ts";
import { clientMetadataRoutes, mcpOAuthRoutes } from "./http/mcp-oauth.ts";
import { mcpServerRoutes } from "./http/mcp-server.ts";
import { memoryRoutes } from "./http/memory.ts";
import { modelRoutes } from "./http/models.ts";
import { noteRoutes } from "./http/notes.ts";
import { refuseOwnAgent } from "./http/own-agent.ts";
import { errorResponse, MCP_PATH } from "./http/problem.ts";
import { createQuota, quota } from "./http/quota.ts";
import { requestLog } from "./http/request-log.ts";
import { runRoutes } from "./http/runs.ts";
import { messageRoutes, sessionRoutes } from "./http/sessions.ts";
import { audioSpeech, speechRoutes } from "./http/speech.ts";
import { toolRoutes } from "./http/tools.ts";
import { watchdogRoutes } from "./http/watchdogs.ts";
import { anthropicMessages } from "./protocols/anthropic-messages.ts";
import { openaiChat } from "./protocols/openai-chat.ts";
import type { Services } from "./services.ts";

/** `/v1`, and where SDKs land that put a path of their own behind the base URL: groq-sdk, and those given `…/v1` that add it again. */
const DOORS = ["/v1", "/openai/v1", "/v1/v1"];

export function createApp(services: Services): Hono<AppEnv> {
  const { config, platform } = services;
  const app = new Hono<AppEnv>();
  app.use(requestLog(platform.log, services.metrics));
  const { imageLinks } = services;
  app.use(guard(config.access, { secret: platform.secret, redaction: platform.redaction, imageLinks }));
  app.use(refuseOwnAgent(services.mcp.callerMark));
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
  app.route("/api/files", fileRoutes(services));
  app.use("/api/memory", once);
  app.route("/api/memory", memoryRoutes(services));
  app.use("/api/notes", once);
  app.use("/api/notes/upload", idempotency(services, { asked: uploadAsked(services) }));
  app.route("/api/notes", noteRoutes(services));
  app.use("/api/agents", once);
  app.route("/api/agents", agentRoutes(services));
  app.route("/api/tools", toolRoutes(services));
  // Their answers show the secret of a new webhook.
  const sealed = idempotency(services, { secret: true });
  for (const path of ["/api/cron", "/api/watchdog"]) app.use(path, sealed);
  app.use("/api/cron/:id/run", idempotency(services, { asked: runAsked(services) }));
  app.route("/api/cron", cronRoutes(services));
  app.route("/api/watchdog", watchdogRoutes(services));
  app.route("/api/automation", automationRoutes(services));
  app.route("/api/tts", speechRoutes(services));
  app.use("/api/mcp/connect", once);
  app.route("/api/mcp", mcpRoutes(services));
  app.route("/api/mcp/oauth", mcpOAuthRoutes(services));
  app.route("/", clientMetadataRoutes(services));

  app.use(MCP_PATH, limited);
  app.route(MCP_PATH, mcpServerRoutes(services, limits));

  const chat = frontDoor(openaiChat, services, limits);
  const messages = frontDoor(anthropicMessages, services, limits);
  const count = countTokens(services);
  const speech = audioSpeech(services);
  for (const base of DOORS) {
    app.post(`${base}/chat/completions`, chat);
    app.post(`${base}/messages`, messages);
    app.post(`${base}/messages/count_tokens`, count);
    app.post(`${base}/audio/speech`, speech);
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
