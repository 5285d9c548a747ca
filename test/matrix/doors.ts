/** The two doors as their users see them: the official SDK, and a conversation kept the way its documentation says. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { checkChunks, checkEvents } from "./wire.ts";

export interface ClientTool {
  name: string;
  description: string;
  schema: { type: "object"; [key: string]: unknown };
}

export interface AskOptions {
  stream?: boolean;
  tools?: ClientTool[];
  /** A JSON schema for the answer. */
  schema?: Record<string, unknown>;
  signal?: AbortSignal;
  /** Called with every piece of text of a stream. */
  onText?(text: string): void;
}

export interface Answer {
  text: string;
  reasoning: string;
  calls: { id: string; name: string; args: unknown }[];
  /** In the door's own word. */
  stop: string | null | undefined;
  usage: { input: number; output: number } | undefined;
}

/** One conversation of one client: what is said and answered is kept by the client, as the door's protocol has it. */
export interface Chat {
  user(text: string, image?: Image): void;
  results(...results: { id: string; output: string }[]): void;
  ask(options?: AskOptions): Promise<Answer>;
}

export interface Image {
  mediaType: "image/png";
  data: string;
}

export interface ChatOptions {
  url: string;
  key: string;
  model: string;
  headers?: Record<string, string>;
}

export interface Door {
  name: string;
  path: string;
  /** The SDK's error classes, which have the same names in both. */
  sdk: typeof OpenAI | typeof Anthropic;
  stops: { end: string; calls: string };
  chat(options: ChatOptions): Chat;
  /** A streamed request without the SDK. */
  raw(options: ChatOptions, text: string, signal?: AbortSignal): Promise<Response>;
  /** Throws where a whole response body breaks the protocol's order. Returns how it ended. */
  check(sse: string): "end" | "error";
}

const MAX_TOKENS = 512;

class ChatCompletions implements Chat {
  readonly #client: OpenAI;
  readonly #model: string;
  readonly #messages: OpenAI.ChatCompletionMessageParam[] = [];

  constructor({ url, key, model, headers }: ChatOptions) {
    this.#client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, defaultHeaders: headers });
    this.#model = model;
  }

  user(text: string, image?: Image): void {
    const url = image && `data:${image.mediaType};base64,${image.data}`;
    const content = url
      ? [
          { type: "text" as const, text },
          { type: "image_url" as const, image_url: { url } },
        ]
      : text;
    this.#messages.push({ role: "user", content });
  }

  results(...results: { id: string; output: string }[]): void {
    for (const { id, output } of results)
      this.#messages.push({ role: "tool", tool_call_id: id, content: output });
  }

  async ask({ stream, tools, schema, signal, onText }: AskOptions = {}): Promise<Answer> {
    const body = {
      model: this.#model,
      messages: this.#messages,
      ...(tools
        ? {
            tools: tools.map(({ name, description, schema: parameters }) => ({
              type: "function" as const,
              function: { name, description, parameters },
            })),
          }
        : {}),
      ...(schema
        ? {
            response_format: {
              type: "json_schema" as const,
              json_schema: { name: "reply", schema, strict: true },
            },
          }
        : {}),
    };
    const reply = stream
      ? await this.#streamed({ ...body, stream_options: { include_usage: true } }, signal, onText)
      : await this.#client.chat.completions.create(body, { signal });
    const choice = reply.choices[0]!;
    const { message } = choice;
    const calls = (message.tool_calls ?? []).filter((call) => call.type === "function");
    // What the documentation of the protocol replays: nothing of the reasoning.
    this.#messages.push({
      role: "assistant",
      content: message.content,
      ...(calls.length > 0
        ? {
            tool_calls: calls.map(({ id, type, function: { name, arguments: args } }) => ({
              id,
              type,
              function: { name, arguments: args },
            })),
          }
        : {}),
    });
    const { usage } = reply;
    return {
      text: message.content ?? "",
      reasoning: (message as { reasoning_content?: string }).reasoning_content ?? "",
      calls: calls.map((call) => ({
        id: call.id,
        name: call.function.name,
        args: JSON.parse(call.function.arguments),
      })),
      stop: choice.finish_reason,
      usage: usage && { input: usage.prompt_tokens, output: usage.completion_tokens },
    };
  }

  async #streamed(
    body: Parameters<OpenAI["chat"]["completions"]["stream"]>[0],
    signal: AbortSignal | undefined,
    onText: ((text: string) => void) | undefined,
  ): Promise<OpenAI.ChatCompletion> {
    const stream = this.#client.chat.completions.stream(body, { signal });
    let reasoning = "";
    stream.on("chunk", (chunk) => {
      const delta = chunk.choices[0]?.delta as { content?: string; reasoning_content?: string } | undefined;
      if (delta?.content) onText?.(delta.content);
      reasoning += delta?.reasoning_content ?? "";
    });
    const reply = await stream.finalChatCompletion();
    const message = { ...reply.choices[0]!.message, reasoning_content: reasoning };
    return { ...reply, choices: [{ ...reply.choices[0]!, message }] };
  }
}

class Messages implements Chat {
  readonly #client: Anthropic;
  readonly #model: string;
  readonly #messages: Anthropic.MessageParam[] = [];

  constructor({ url, key, model, headers }: ChatOptions) {
    this.#client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0, defaultHeaders: headers });
    this.#model = model;
  }

  user(text: string, image?: Image): void {
    this.#messages.push({
      role: "user",
      content: [
        ...(image
          ? [
              {
                type: "image" as const,
                source: { type: "base64" as const, media_type: image.mediaType, data: image.data },
              },
            ]
          : []),
        { type: "text", text },
      ],
    });
  }

  results(...results: { id: string; output: string }[]): void {
    this.#messages.push({
      role: "user",
      content: results.map(({ id, output }) => ({ type: "tool_result", tool_use_id: id, content: output })),
    });
  }

  async ask({ stream, tools, schema, signal, onText }: AskOptions = {}): Promise<Answer> {
    const body = {
      model: this.#model,
      max_tokens: MAX_TOKENS,
      messages: this.#messages,
      ...(tools
        ? {
            tools: tools.map(({ name, description, schema }) => ({
              name,
              description,
              input_schema: schema,
            })),
          }
        : {}),
      ...(schema ? { output_config: { format: { type: "json_schema" as const, schema } } } : {}),
    };
    let reply: Anthropic.Message;
    if (stream) {
      const events = this.#client.messages.stream(body, { signal });
      if (onText) events.on("text", onText);
      reply = await events.finalMessage();
    } else reply = await this.#client.messages.create(body, { signal });
    this.#messages.push({ role: "assistant", content: reply.content });
    const texts: string[] = [];
    let reasoning = "";
    const calls: Answer["calls"] = [];
    for (const block of reply.content) {
      if (block.type === "text") texts.push(block.text);
      else if (block.type === "thinking") reasoning += block.thinking;
      else if (block.type === "tool_use") calls.push({ id: block.id, name: block.name, args: block.input });
    }
    const { input_tokens: input, output_tokens: output } = reply.usage;
    return { text: texts.join("\n\n"), reasoning, calls, stop: reply.stop_reason, usage: { input, output } };
  }
}

async function post({ url, key, headers }: ChatOptions, path: string, body: unknown, signal?: AbortSignal) {
  return fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });
}

export const chatCompletions: Door = {
  name: "chat completions",
  path: "/v1/chat/completions",
  sdk: OpenAI,
  stops: { end: "stop", calls: "tool_calls" },
  chat: (options) => new ChatCompletions(options),
  raw: (options, text, signal) =>
    post(
      options,
      "/v1/chat/completions",
      {
        model: options.model,
        messages: [{ role: "user", content: text }],
        stream: true,
        stream_options: { include_usage: true },
      },
      signal,
    ),
  check: checkChunks,
};

export const messages: Door = {
  name: "messages",
  path: "/v1/messages",
  sdk: Anthropic,
  stops: { end: "end_turn", calls: "tool_use" },
  chat: (options) => new Messages(options),
  raw: (options, text, signal) =>
    post(
      options,
      "/v1/messages",
      {
        model: options.model,
        max_tokens: MAX_TOKENS,
        messages: [{ role: "user", content: text }],
        stream: true,
      },
      signal,
    ),
  check: checkEvents,
};

export const DOORS: readonly Door[] = [chatCompletions, messages];
