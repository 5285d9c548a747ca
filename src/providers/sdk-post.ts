/**
 * A vendor SDK's POST for streams. The SDK writes address and headers, once for each set of extra headers, and what it
 * throws is thrown here too; only the body is new in every call, so only the body is made in every call. The SDK's own
 * request path costs as much as all else that a short reply needs.
 */
import type { ToolSpec } from "../core/model.ts";
import type { Fetch } from "./upstream.ts";

interface Built {
  req: { headers?: Headers | undefined };
  url: string;
}

/** What the clients of the SDKs have in common. */
export interface SdkClient {
  buildRequest(options: {
    method: "post";
    path: string;
    body: object;
    headers?: Record<string, string>;
    query?: Record<string, string>;
  }): Promise<Built>;
}

/** `APIError` of the SDK. */
export interface SdkErrors {
  generate(status: number, body: object | undefined, message: string | undefined, headers: Headers): Error;
}

export interface SdkPostOptions {
  client: SdkClient;
  errors: SdkErrors;
  path: string;
  fetch: Fetch;
}

export interface SdkPostExtras {
  headers?: Record<string, string> | undefined;
  query?: Record<string, string> | undefined;
}

/** Resolves with the 2xx response, body unread; rejects with the SDK's error for its status, or with what fetch throws. */
export type SdkPost = (body: object, signal: AbortSignal, extras?: SdkPostExtras) => Promise<Response>;

/** Sets of extra headers that are remembered; clients send the same ones again and again. */
const KEPT = 64;

export function createSdkPost({ client, errors, path, fetch }: SdkPostOptions): SdkPost {
  const kept = new Map<string, Built>();
  return async (body, signal, extras) => {
    const name = extras ? JSON.stringify([extras.headers, extras.query]) : "";
    let built = kept.get(name);
    if (!built) {
      built = await client.buildRequest({ method: "post", path, body: {}, ...extras });
      built = { ...built, req: { ...built.req, headers: plainHeaders(built.req.headers) } };
      if (kept.size >= KEPT) kept.clear();
      kept.set(name, built);
    }
    const response = await fetch(built.url, { ...built.req, body: toJson(body), signal });
    if (response.ok) return response;
    const text = await response.text();
    const parsed = parseObject(text);
    throw errors.generate(response.status, parsed, parsed ? undefined : text, response.headers);
  };
}

const texts = new WeakMap<object, string>();

/** As JSON.stringify, but for frozen tools: they are most of a small request, and their JSON is made once. */
function toJson(body: object): string {
  const { tools, ...rest } = body as { tools?: readonly object[] };
  if (!tools?.some(Object.isFrozen)) return JSON.stringify(body);
  return `${JSON.stringify(rest).slice(0, -1)},"tools":[${tools.map(toolJson).join(",")}]}`;
}

function toolJson(tool: object): string {
  let text = texts.get(tool);
  if (text === undefined) {
    text = JSON.stringify(tool);
    if (Object.isFrozen(tool)) texts.set(tool, text);
  }
  return text;
}

/**
 * What an adapter makes of a tool, remembered for tools that never change (`toolSpec` in core): one of these for each
 * adapter, since each has its own words.
 */
export function rememberTools<Written extends object>(): (tool: ToolSpec, write: () => Written) => Written {
  const written = new WeakMap<ToolSpec, Written>();
  return (tool, write) => {
    if (!Object.isFrozen(tool)) return write();
    let wire = written.get(tool);
    if (wire === undefined) {
      wire = Object.freeze(write());
      written.set(tool, wire);
    }
    return wire;
  };
}

/** Without the SDKs' telemetry: what machine this is concerns nobody, and every header costs its share of each call. */
function plainHeaders(headers: Headers | undefined): Headers {
  const plain = new Headers(headers);
  for (const name of [...plain.keys()]) if (name.startsWith("x-stainless-")) plain.delete(name);
  return plain;
}

function parseObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
