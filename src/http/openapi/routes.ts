/** Every route there is, in the order of the documentation. A test compares it with what the app has mounted. */
import { AGENT_ROUTES } from "./agent-routes.ts";
import { CHAT_ROUTES } from "./chat-routes.ts";
import { CRON_ROUTES } from "./cron-routes.ts";
import { DOOR_ROUTES } from "./door-routes.ts";
import { MCP_OAUTH_ROUTES } from "./mcp-oauth-routes.ts";
import { MCP_ROUTES } from "./mcp-routes.ts";
import { MCP_SERVER_ROUTES } from "./mcp-server-routes.ts";
import { MEMORY_ROUTES } from "./memory-routes.ts";
import { MODEL_ROUTES } from "./model-routes.ts";
import { NOTE_ROUTES } from "./note-routes.ts";
import { SERVICE_ROUTES } from "./service-routes.ts";
import { SESSION_ROUTES } from "./session-routes.ts";
import { SPEECH_ROUTES } from "./speech-routes.ts";
import { WATCHDOG_ROUTES } from "./watchdog-routes.ts";
import { WORKSPACE_ROUTES } from "./workspace-routes.ts";

export const ROUTES = [
  ...CHAT_ROUTES,
  ...SESSION_ROUTES,
  ...AGENT_ROUTES,
  ...WORKSPACE_ROUTES,
  ...MCP_ROUTES,
  ...MCP_OAUTH_ROUTES,
  ...MEMORY_ROUTES,
  ...NOTE_ROUTES,
  ...CRON_ROUTES,
  ...WATCHDOG_ROUTES,
  ...DOOR_ROUTES,
  ...MCP_SERVER_ROUTES,
  ...SPEECH_ROUTES,
  ...MODEL_ROUTES,
  ...SERVICE_ROUTES,
] as const;

export type Route = (typeof ROUTES)[number];
