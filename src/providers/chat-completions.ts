/** What the adapters of the two chat-completions providers share: one model call, the list of models, odd errors. */
import type { ModelEvent } from "../core/event.ts";
import type { ModelInfo, ModelRequest } from "../core/model.ts";
import { AppError } from "../errors.ts";
import type { ChatDialect, Wire } from "./chat-completions-messages.ts";
import { writeRequest } from "./chat-completions-request.ts";
import { ChatDecoder } from "./chat-completions-stream.ts";
import type { SdkPost } from "./sdk-post.ts";
import { type AdapterOptions, type Fetch, streamUpstream } from "./upstream.ts";
import { upstreamError } from "./upstream-error.ts";

/** The SDK's own clock must never be the one that rings: `streamUpstream` watches. Milliseconds. */
export const SDK_TIMEOUT_MS = 24 * 60 * 60 * 1000;

export function streamChat(
  request: ModelRequest,
  signal: AbortSignal,
  dialect: ChatDialect,
  { key, limits }: AdapterOptions,
  post: SdkPost,
): AsyncGenerator<ModelEvent, void, void> {
  const { provider } = dialect;
  let body: Wire | undefined;
  const open = async (aborted: AbortSignal) => {
    body ??= writeRequest(request, dialect);
    const headers = request.headers?.family === "openai-chat" ? request.headers.fields : undefined;
    return post(body, aborted, headers && { headers });
  };
  const decoder = () => new ChatDecoder(provider, request.model);
  return streamUpstream({ provider, key, open, decoder }, limits, signal);
}

interface WireModel {
  id: string;
  created?: unknown;
  owned_by?: unknown;
}

/** The SDK's answer to `models.list()` in the core's words. Throws AppError. */
export async function listChat(
  provider: "openai" | "groq",
  key: string,
  signal: AbortSignal,
  list: () => Promise<{ data?: unknown }>,
): Promise<ModelInfo[]> {
  let data: unknown;
  try {
    ({ data } = await list());
  } catch (error) {
    if (signal.aborted) throw new AppError("cancelled", "The request was cancelled.", { cause: error });
    throw upstreamError(error, provider, key);
  }
  // Some compatible servers have no list at all, or one of another shape.
  if (!Array.isArray(data)) return [];
  return (data as WireModel[])
    .filter((model) => typeof model?.id === "string")
    .map((model) => ({
      id: model.id,
      ownedBy: typeof model.owned_by === "string" ? model.owned_by : provider,
      ...(typeof model.created === "number" ? { created: model.created } : {}),
    }));
}

/**
 * A `fetch` that brings errors of other shapes into the one that the SDKs read: `{"detail": …}` of FastAPI,
 * `{"message": …}` of vLLM, `[{"error": …}]` of Gemini's compatible interface.
 */
export function fetchWithPlainErrors(inner: Fetch): Fetch {
  return async (input, init) => {
    const response = await inner(input, init);
    if (response.ok) return response;
    const text = await response.text();
    const { status, headers } = response;
    return new Response(plainError(text) ?? text, { status, headers });
  };
}

/** null when the body is no JSON, or has the usual shape. */
function plainError(text: string): string | null {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return null;
  }
  if (Array.isArray(body)) body = body[0];
  if (typeof body !== "object" || body === null) return null;
  const wire = body as Record<string, unknown>;
  if (typeof wire.error === "object" && wire.error !== null) return JSON.stringify(wire);
  const said = wire.message ?? wire.detail ?? wire.error;
  if (said === undefined || said === null) return null;
  const message = typeof said === "string" ? said : JSON.stringify(said);
  return JSON.stringify({ error: { message, type: wire.type, code: wire.code, param: wire.param } });
}
