/** Every route there is, in the order of the documentation. A test compares it with what the app has mounted. */
import { CHAT_ROUTES } from "./chat-routes.ts";
import { DOOR_ROUTES } from "./door-routes.ts";
import { MODEL_ROUTES } from "./model-routes.ts";
import { SERVICE_ROUTES } from "./service-routes.ts";
import { SESSION_ROUTES } from "./session-routes.ts";

export const ROUTES = [
  ...CHAT_ROUTES,
  ...SESSION_ROUTES,
  ...DOOR_ROUTES,
  ...MODEL_ROUTES,
  ...SERVICE_ROUTES,
] as const;

export type Route = (typeof ROUTES)[number];
