/** Mounts a codec: request in the door's words -> a run -> the reply in the door's words, whole or streamed. */
import type { Context, Handler } from "hono";
import type { RunInput } from "../agent/run-input.ts";
import type { ToolSelection } from "../agent/select-tools.ts";
import type { Ask } from "../agent/turn.ts";
import { createId } from "../core/id.ts";
import { AppError } from "../errors.ts";
import type { Codec, Decoded, ReplyMeta } from "../protocols/codec.ts";
import { parseWire } from "../protocols/problem.ts";
import type { Services } from "../services.ts";
import { readJson } from "./body.ts";
import { providerWishOf } from "./credentials.ts";
import type { AppEnv } from "./env.ts";
import { opened, streamed, whole } from "./front-door-replies.ts";
import { clientOf, continued, decidedHere, started } from "./front-door-runs.ts";
import { headerValue } from "./header-value.ts";
import type { Quota } from "./quota.ts";
import { swarmFor, whoAnswers } from "./who-answers.ts";

export function frontDoor<Wire>(codec: Codec<Wire>, services: Services, quota: Quota): Handler<AppEnv> {
  const { config } = services;
  return async (c) => {
    const body = await readJson(c.req.raw, { limit: config.body.v1Limit, timeoutMs: config.body.timeoutMs });
    const decoded = codec.decode(parseWire(codec.request, body), {
      headers: c.req.raw.headers,
      query: new URLSearchParams(c.req.url.split("?")[1] ?? ""),
    });
    const hold = c.req.header("x-on-disconnect") === "continue";
    const client = clientOf(c.req.raw.signal, hold);
    const parked = await decidedHere(services, c.get("owner"), decoded);
    const ask = parked ? null : await askOf(c, codec.door, decoded, services);
    const runId = parked?.id ?? ask?.runId ?? "";
    const turns = parked
      ? [continued(services, parked, askingOf(c), client)]
      : started(services, ask as Ask, decoded.choices, client, quota);
    const each = await opened(turns, client, () => c.set("runId", runId));
    // Given to the response at once: Hono's own way of setting them one by one costs a Headers object more.
    const headers: Record<string, string> = {
      "x-run-id": runId,
      "x-upstream-model": headerValue(parked?.spec.request.model ?? (ask as Ask).target.model),
    };
    const sessionId = each[0]?.turn.sessionId;
    if (ask?.session !== undefined && sessionId !== undefined) headers["x-session-id"] = sessionId;
    const meta: ReplyMeta = {
      model: decoded.request.model,
      requestId: c.get("requestId"),
      createdAt: services.platform.now(),
      choices: decoded.choices,
      agentEvents: c.req.header("x-agent-events") === "1",
      echo: decoded.echo,
    };
    return decoded.stream
      ? streamed(codec, meta, each, client, headers, services)
      : whole(codec, meta, each, client, headers);
  };
}

/** Who asks what of whom. */
async function askOf(c: Context<AppEnv>, door: string, decoded: Decoded, services: Services): Promise<Ask> {
  const { models } = services;
  const owner = c.get("owner");
  const { agent, credentials, target } = await whoAnswers(
    services,
    owner,
    decoded.request,
    providerWishOf(c),
  );
  const { provider, key } = credentials;
  const several = decoded.choices > 1;
  const session = c.req.header("x-session-id");
  if (several && (provider !== "openai" || session !== undefined))
    throw new AppError(
      "unsupported_field",
      session === undefined
        ? `n: ${provider} gives one reply a request. Leave n out, or send the request several times.`
        : "n: a session takes one reply a turn. Leave n out, or leave out x-session-id.",
      { param: "n" },
    );
  return {
    runId: createId("run"),
    owner,
    door,
    adapter: await models.adapter(credentials),
    key,
    callersKey: c.get("providerKey") !== undefined,
    target,
    agent: agent ?? undefined,
    swarm: await swarmFor(services, owner, agent),
    request: decoded.request,
    // Several agents side by side in one workspace would undo each other's work.
    selection: several ? "none" : selectionOf(c.req.header("x-agent-tools")),
    session,
    carriesSeals: decoded.carriesSeals,
    asking: askingOf(c),
  };
}

function selectionOf(header: string | undefined): ToolSelection {
  if (header === undefined) return "default";
  const names = header.split(",").map((name) => name.trim());
  const [first] = names;
  if (names.length === 1 && (first === "all" || first === "none")) return first;
  return names.filter((name) => name !== "");
}

/** These doors have no way to ask but the reply itself. */
function askingOf(c: Context<AppEnv>): RunInput["asking"] {
  return c.req.header("x-approval") === "deny" ? "nobody" : "text";
}
