/**
 * `/mcp`: Dragoman as a tool of other programs. Who calls, with whose key, and when a call is given up; what the tools do is
 * in mcp-agent-tools.ts, mcp-record-tools.ts and mcp-knowledge-tools.ts, the protocol in mcp/server.ts.
 */
import { type Context, Hono } from "hono";
import { createId } from "../core/id.ts";
import { AppError } from "../errors.ts";
import type { Served, ServedTool } from "../mcp/server.ts";
import { toProblem } from "../protocols/problem.ts";
import type { Services } from "../services.ts";
import { readJson } from "./body.ts";
import type { AppEnv } from "./env.ts";
import { agentTools } from "./mcp-agent-tools.ts";
import { type McpCaller, ServedCalls } from "./mcp-calls.ts";
import { knowledgeTools } from "./mcp-knowledge-tools.ts";
import { recordTools } from "./mcp-record-tools.ts";
import { errorResponse } from "./problem.ts";
import type { Quota } from "./quota.ts";
import { STREAM_HEADERS, streamBody } from "./sse.ts";

const INSTRUCTIONS = `Dragoman is an agent that works on a server: it reads and writes files in its workspace, runs commands, reads the web and uses tools of its own. ask_agent gives it a task and waits for its reply; send the session_id of the reply to go on in the same conversation. When a reply has auth_required true, the agent waits for a decision on its pending_calls: show them to the person you work for, and pass what that person has decided to decide_approval. Never decide by yourself.`;

/** What a header can carry as a key. */
const KEY = /^[\x21-\x7e]+$/;
/** Characters of the session word that clients repeat. */
const SESSION = /^[\x21-\x7e]{1,128}$/;

/** `more`: tools beside those of the service. */
export function mcpServerRoutes(
  services: Services,
  quota: Quota,
  more: readonly ServedTool<McpCaller>[] = [],
): Hono<AppEnv> {
  const { config, platform } = services;
  const limits = { limit: config.body.apiLimit, timeoutMs: config.body.timeoutMs };
  const calls = new ServedCalls(services);
  const served: Served<McpCaller> = {
    tools: [...agentTools(services, quota), ...recordTools(services), ...knowledgeTools(services), ...more],
    instructions: INSTRUCTIONS,
    explain: (error, args) => toProblem(error, args).message,
    log: platform.log,
  };

  async function answer(c: Context<AppEnv>): Promise<Response> {
    const caller = callerOf(c, calls);
    const body = await readJson(c.req.raw, limits);
    // Loaded when it is first asked for: most services are never asked.
    const { readMessages, serve } = await import("../mcp/server.ts");
    const { requests, begins, long } = readMessages(served, body);
    // The first one has been counted with the request that brought it.
    for (let i = 1; i < requests; i++) quota.request(caller.owner);
    const asked = {
      ...{ caller, request: c.req.raw, body, cancel: caller.calls.cancel },
      clean: <T>(value: T) => c.get("redaction")?.clean(value) ?? value,
    };
    const response = await serve(served, asked, long);
    if (!response.ok) throw await refusal(response);
    const isStream = response.headers.get("content-type") === "text/event-stream";
    if (isStream && response.body) return streamed(c, response.body, caller);
    // Not a session: a word by which the requests of one client, and so what they cancel, are told apart.
    if (begins) response.headers.set("mcp-session-id", createId("mcp"));
    return response;
  }

  function streamed(c: Context<AppEnv>, body: ReadableStream<Uint8Array>, { calls }: McpCaller): Response {
    const reader = body.getReader();
    // Nobody else could get the reply: a stateless server has nowhere to keep it.
    const goesOn = c.req.header("x-on-disconnect") === "continue";
    const leave = () => {
      if (!goesOn) calls.giveUp();
    };
    const { signal } = c.req.raw;
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
    const stream = streamBody(texts(reader), {
      onClose(delivered) {
        if (delivered) return;
        leave();
        platform.background(reader.cancel());
      },
      log: platform.log,
    });
    return new Response(stream, { headers: STREAM_HEADERS });
  }

  return new Hono<AppEnv>().post("/", answer).all("/", (c) => {
    const fault = new AppError(
      "method_not_allowed",
      "This MCP server keeps no sessions and sends nothing unasked: send every message with POST.",
    );
    const response = errorResponse(c, fault);
    response.headers.set("allow", "POST");
    return response;
  });
}

/** What the SDK has refused as a whole, with the marks that all our faults have. */
async function refusal(response: Response): Promise<AppError> {
  const { error } = (await response.json()) as { error: { message: string } };
  return new AppError("invalid_request", `${error.message}.`, { status: response.status });
}

/** The Bearer token says who calls, where there are tokens, and is the provider key with AUTH=key. */
function callerOf(c: Context<AppEnv>, calls: ServedCalls): McpCaller {
  const key = c.req.header("x-provider-key")?.trim() || undefined;
  if (key !== undefined) {
    c.get("redaction")?.hold(key);
    if (!KEY.test(key))
      throw new AppError("invalid_request", "x-provider-key has to be a provider key: ASCII without spaces.");
  }
  const shown = c.req.header("mcp-session-id");
  const session = shown !== undefined && SESSION.test(shown) ? shown : undefined;
  const owner = c.get("owner");
  return {
    owner,
    providerKey: key ?? c.get("providerKey"),
    provider: c.req.header("x-provider")?.trim() || undefined,
    calls: calls.of(owner, session),
  };
}

async function* texts(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield decoder.decode(value, { stream: true });
  }
}
