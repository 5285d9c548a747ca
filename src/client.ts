/**
 * The typed client: `const client = createClient("http://127.0.0.1:8000")`, then `client.api.chat.$post({json: …})`.
 * Every route of the interface document is there, with its request, its replies and its errors.
 */
import { hc } from "hono/client";
import type { AppType } from "./http/openapi/app-type.ts";
import type { ChatEvent } from "./protocols/native-chat-events.ts";

export type { AppType } from "./http/openapi/app-type.ts";
export type { ChatEvent } from "./protocols/native-chat-events.ts";
export type { ChatReply, MessageView, RunView, SessionView } from "./protocols/native-chat-records.ts";
export type { ApproveRequest, ChatRequest } from "./protocols/native-chat-schema.ts";

type Send = (input: string | URL | Request, init?: RequestInit) => Response | Promise<Response>;

export interface ClientOptions {
  /** An access token; where the service has `AUTH=key`, your provider key. On loopback without tokens: nothing. */
  token?: string;
  /** Sent with every request. */
  headers?: Record<string, string>;
  /** In place of the global one. */
  fetch?: Send;
}

/** `baseUrl` is the service's address without a path. A reply is a Response: `ok` tells its JSON from a problem's. */
export function createClient(baseUrl: string, options: ClientOptions = {}) {
  const { token, headers = {}, fetch: send } = options;
  const credentials: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return hc<AppType>(baseUrl, {
    headers: { ...credentials, ...headers },
    ...(send ? { fetch: async (input: Parameters<Send>[0], init?: RequestInit) => send(input, init) } : {}),
  });
}

export type Client = ReturnType<typeof createClient>;

export interface NumberedEvent {
  /** The event's number in its run: what to send as `last-event-id` to go on behind it. */
  id: string;
  event: ChatEvent;
}

/**
 * The events of a streamed reply (`/api/chat`, `/api/chat/approve`, `/api/runs/{id}/events`) as they come. Ends with the
 * stream; leaving the loop cancels it, and the run goes on. Throws when the response is no event stream, so look at its
 * status first, and when the connection breaks.
 */
export async function* chatEvents(response: {
  body: ReadableStream<Uint8Array> | null;
  headers: Headers;
}): AsyncGenerator<NumberedEvent, void, void> {
  const type = response.headers.get("content-type");
  if (!response.body || !type?.startsWith("text/event-stream"))
    throw new TypeError(`The response is no event stream but ${type ?? "empty"}: ask with stream: true.`);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let waiting = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      waiting += decoder.decode(value, { stream: true });
      const frames = waiting.split("\n\n");
      waiting = frames.pop() as string;
      for (const frame of frames) {
        const numbered = eventOf(frame);
        if (numbered) yield numbered;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** null for a comment, which keeps a quiet stream alive. */
function eventOf(frame: string): NumberedEvent | null {
  let id = "";
  let data = "";
  for (const line of frame.split("\n")) {
    if (line.startsWith("id: ")) id = line.slice(4);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  return data === "" ? null : { id, event: JSON.parse(data) as ChatEvent };
}
