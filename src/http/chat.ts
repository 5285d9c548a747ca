/** `POST /api/chat` and `POST /api/chat/approve`: runs that go on without their client, and the decisions they wait for. */
import { type Context, Hono } from "hono";
import { type Decision, decideByCode, decideCalls } from "../agent/approvals.ts";
import type { Ask } from "../agent/turn.ts";
import { decodeApprove, decodeChat } from "../protocols/native-chat-request.ts";
import { approveRequest, chatRequest } from "../protocols/native-chat-schema.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";
import { headerValue } from "./header-value.ts";
import { askOf, beginRun, type Caller, goOn } from "./native-run.ts";
import type { Quota } from "./quota.ts";
import { collectRun, type Frames, streamRun } from "./run-stream.ts";
import { readBody } from "./validate.ts";

export function chatRoutes(services: Services, quota: Quota): Hono<AppEnv> {
  const { config, agent } = services;
  const { timeoutMs, v1Limit, apiLimit } = config.body;
  return (
    new Hono<AppEnv>()
      // Attachments come in the body.
      .post("/", async (c) => {
        const wire = await readBody(c, chatRequest, { limit: v1Limit, timeoutMs });
        const wish = decodeChat(wire, config.run);
        const decision = await decideByCode(agent, c.get("owner"), wish.request.messages);
        return decision
          ? decided(c, services, decision, wish.stream)
          : start(c, services, await askOf(services, callerOf(c), wish), wish.stream, quota);
      })
      .post("/approve", async (c) => {
        const wire = await readBody(c, approveRequest, { limit: apiLimit, timeoutMs });
        const { sessionId, calls, approved, scope, stream } = decodeApprove(wire);
        const wish = { sessionId, selected: calls, approved, scope };
        return decided(c, services, await decideCalls(agent, c.get("owner"), wish), stream);
      })
  );
}

function callerOf(c: Context<AppEnv>): Caller {
  const where = "the field api_key";
  return { owner: c.get("owner"), providerKey: c.get("providerKey"), where, client: c.req.raw.signal };
}

async function start(
  c: Context<AppEnv>,
  services: Services,
  ask: Ask,
  stream: boolean,
  quota: Quota,
): Promise<Response> {
  const { sessionId, frames, fault } = await beginRun(services, ask, quota);
  c.set("runId", ask.runId);
  if (fault) {
    c.set("retryable", true);
    throw fault;
  }
  const headers = {
    "x-run-id": ask.runId,
    "x-session-id": sessionId,
    "x-upstream-model": headerValue(ask.target.model),
  };
  return answer(c, services, frames, headers, stream);
}

async function decided(
  c: Context<AppEnv>,
  services: Services,
  decision: Decision,
  stream: boolean,
): Promise<Response> {
  const { runId } = decision;
  c.set("runId", runId);
  const { sessionId, frames } = await goOn(services, c.get("owner"), decision, c.req.raw.signal);
  return answer(c, services, frames, { "x-run-id": runId, "x-session-id": sessionId }, stream);
}

async function answer(
  c: Context<AppEnv>,
  services: Services,
  frames: Frames,
  headers: Record<string, string>,
  stream: boolean,
): Promise<Response> {
  if (stream) return streamRun(frames, headers, services);
  return Response.json(await collectRun(frames, c.req.raw.signal), { headers });
}
