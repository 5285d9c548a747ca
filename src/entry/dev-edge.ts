/** `npm run dev:edge`: Workers on this machine. */
import { serveEdge } from "../platform/local-edge.ts";
import { SETTINGS_TABLE } from "../settings.ts";

await serveEdge(Object.keys(SETTINGS_TABLE));
