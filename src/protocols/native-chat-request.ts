/** Requests of the native door -> the core's words. */
import type { Source, UserPart } from "../core/message.ts";
import type { ModelRequest } from "../core/model.ts";
import { AppError } from "../errors.ts";
import { checkImage, sniff } from "./image-bytes.ts";
import { shownArgs } from "./native-chat-args.ts";
import {
  type ApproveRequest,
  type ChatRequest,
  MESSAGE_LIMIT_BYTES,
  type WireAttachment,
} from "./native-chat-schema.ts";
import { base64Of } from "./openai-chat-parts.ts";
import { invalid } from "./problem.ts";

export interface ChatAsk {
  /** One user message. `model` is the word that the client sent, empty when it sent none. */
  request: ModelRequest;
  key: string | undefined;
  /** A provider or an alias of one. */
  provider: string | undefined;
  sessionId: string | undefined;
  /** null: all that policy allows. */
  allowedTools: string[] | null;
  stream: boolean;
  agentName: string | undefined;
  useSwarm: boolean;
  /** The members of the swarm see each other's answers in so many rounds. */
  debate: { rounds: number } | undefined;
  autoApprove: boolean;
  maxSteps: number | undefined;
}

/** Takes what the schema has accepted. `limits` are the operator's. Throws AppError with the field at fault in `param`. */
export function decodeChat(wire: ChatRequest, limits: { maxSteps: number }): ChatAsk {
  checkMessage(wire.message);
  const maxSteps = wire.max_steps ?? undefined;
  if (maxSteps !== undefined && maxSteps > limits.maxSteps)
    throw invalid(
      "max_steps",
      `max_steps has to be at most ${limits.maxSteps}, the limit of this service, but it is ${maxSteps}.`,
    );
  const attachments = (wire.attachments ?? []).map((each, index) =>
    decodeAttachment(each, `attachments[${index}]`),
  );
  const instruction = wire.system_instruction ?? "";
  return {
    request: {
      model: wire.model ?? "",
      system: instruction.trim() === "" ? [] : [{ type: "text", text: instruction }],
      messages: [{ role: "user", content: [{ type: "text", text: wire.message }, ...attachments] }],
      tools: [],
      settings: {},
    },
    key: keyOf(wire.api_key),
    provider: wire.provider ?? undefined,
    sessionId: wire.session_id || undefined,
    allowedTools: wire.allowed_tools ?? null,
    stream: wire.stream === true,
    agentName: wire.agent_name || undefined,
    useSwarm: wire.use_swarm === true,
    debate: wire.swarm ? { rounds: wire.swarm.rounds ?? DEBATE_ROUNDS } : undefined,
    autoApprove: wire.auto_approve === true,
    maxSteps,
  };
}

function checkMessage(message: string): void {
  // No UTF-16 unit takes more than three bytes, so that an ordinary message is not counted.
  if (message.length * 3 <= MESSAGE_LIMIT_BYTES) return;
  if (new TextEncoder().encode(message).length > MESSAGE_LIMIT_BYTES)
    throw invalid(
      "message",
      "message has to be at most 1 MiB of UTF-8. Send long texts as attachments, or in parts.",
    );
}

/** Of a debate, where the request names none. */
const DEBATE_ROUNDS = 2;

/** What a header can carry. */
const KEY = /^[\x21-\x7e]+$/;

function keyOf(wire: string | null | undefined): string | undefined {
  const key = wire?.trim();
  if (!key) return undefined;
  if (!KEY.test(key))
    throw invalid("api_key", "api_key has to be a provider key: printable ASCII characters without spaces.");
  return key;
}

/** Bytes of one inline image. */
const IMAGE_LIMIT_BYTES = 10 * 1024 * 1024;

function decodeAttachment(wire: WireAttachment, at: string): UserPart {
  const { url, data } = wire;
  if (!url === !data) throw invalid(at, `${at} has to hold either url or data.`);
  if (url && !(/^https?:\/\//i.test(url) && URL.canParse(url)))
    throw invalid(
      `${at}.url`,
      `${at}.url has to be an http(s) URL. Send the bytes themselves in ${at}.data.`,
    );
  if (data?.startsWith("data:"))
    throw invalid(
      `${at}.data`,
      `${at}.data has to be plain base64, without "data:…;base64," in front; the type belongs in media_type.`,
    );
  const mediaType = wire.media_type?.trim().toLowerCase() || undefined;
  if (wire.type === "image")
    return { type: "image", source: url ? { kind: "url", url } : imageData(data as string, mediaType, at) };
  if (mediaType === undefined)
    throw invalid(
      `${at}.media_type`,
      `${at}.media_type is missing: say what the file is, for example application/pdf.`,
    );
  const source: Source = url
    ? { kind: "url", url }
    : { kind: "data", mediaType, data: base64Of(data as string, `${at}.data`) };
  return { type: "file", source, mediaType, ...(wire.name ? { name: wire.name } : {}) };
}

/** Without a media type the bytes say what the image is. */
function imageData(data: string, mediaType: string | undefined, at: string): Source {
  const param = `${at}.data`;
  if (data.length * 0.75 > IMAGE_LIMIT_BYTES + 2)
    throw new AppError("payload_too_large", `${param} is larger than 10 MiB, the limit for an image.`, {
      param,
    });
  const actual = sniff(data);
  const fault = checkImage(mediaType ?? actual ?? "image/png", data);
  if (fault !== null) throw invalid(param, `${param} is not a usable image. ${fault}`);
  return { kind: "data", mediaType: actual as string, data: base64Of(data, param) };
}

/** A call as a client names it. Only `id` selects; the rest has to agree with what is stored. */
export interface SelectedCall {
  id: string;
  name: string | undefined;
  args: Record<string, unknown> | undefined;
}

export interface Decision {
  sessionId: string;
  approved: boolean;
  stream: boolean;
  /** Empty: all pending calls of the session. */
  calls: SelectedCall[];
  scope: "once" | "session";
}

export function decodeApprove(wire: ApproveRequest): Decision {
  return {
    sessionId: wire.session_id,
    approved: wire.approved,
    stream: wire.stream === true,
    calls: (wire.pending_calls ?? []).map((each) =>
      typeof each === "string"
        ? { id: each, name: undefined, args: undefined }
        : { id: each.id, name: each.name ?? undefined, args: each.args ?? undefined },
    ),
    scope: wire.scope ?? "once",
  };
}

/** Whether what a client says of a call is what is stored. Arguments are compared as the client was shown them. */
export function agrees(selected: SelectedCall, stored: { name: string; args: string }): boolean {
  if (selected.name !== undefined && selected.name !== stored.name) return false;
  return selected.args === undefined || sameJson(selected.args, shownArgs(stored.args));
}

function sameJson(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every(
    (key) =>
      Object.hasOwn(b, key) &&
      sameJson((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  );
}
