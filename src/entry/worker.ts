/** Cloudflare Workers, or workerd anywhere. */
import { waitUntil } from "cloudflare:workers";
import type { Handler } from "../platform/service.ts";
import { createWorkerHandler } from "../platform/worker.ts";
import { service } from "../service.ts";

let handler: Handler | undefined;

export default {
  fetch(request: Request, env: Record<string, unknown>): Response | Promise<Response> {
    handler ??= createWorkerHandler(env, waitUntil, service);
    return handler(request, { address: () => request.headers.get("cf-connecting-ip") ?? undefined });
  },
};
