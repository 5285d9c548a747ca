/** Cloudflare Workers, or workerd anywhere. */
import { waitUntil } from "cloudflare:workers";
import type { Handler } from "../platform/service.ts";
import { createWorkerHandler } from "../platform/worker.ts";
import { service } from "../service.ts";

type Env = Record<string, unknown>;

let handler: Handler | undefined;

function handlerOf(env: Env): Handler {
  handler ??= createWorkerHandler(env, waitUntil, service);
  return handler;
}

export default {
  fetch(request: Request, env: Env): Response | Promise<Response> {
    return handlerOf(env)(request, { address: () => request.headers.get("cf-connecting-ip") ?? undefined });
  },
  /**
   * The cron trigger of wrangler.toml. Each has a service of its own: what a request of this isolate has left when it was
   * cut off looks, in the service that it belongs to, as if somebody were still at it.
   */
  async scheduled(_event: unknown, env: Env): Promise<void> {
    await createWorkerHandler(env, waitUntil, service).tick?.();
  },
};
