/** Three upstream protocols, as far as the fault suites need them: requests read and checked, replies written. */

export interface Result {
  id: string;
  text: string;
}

/** What all dialects have in common of a request. */
export interface Heard {
  dialect: "openai" | "anthropic" | "gemini";
  tag: string;
  /** Results behind the user's last words, in order. */
  results: Result[];
  /** Why the real provider would refuse the history. */
  fault?: string;
}

export interface Reply {
  open(): string;
  text(delta: string): string;
  call(call: { id: string; name: string; args: unknown }): string;
  close(): string;
}

export interface Dialect {
  name: Heard["dialect"];
  read(body: Wire): Heard;
  reply(): Reply;
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of three protocols, read where they are known.
type Wire = any;

export function dialectOf(path: string): Dialect | undefined {
  if (path.endsWith("/chat/completions")) return openai;
  if (/\/messages(\?|$)/.test(path)) return anthropic;
  if (path.includes(":streamGenerateContent")) return gemini;
  return undefined;
}

function tagOf(texts: string[]): string {
  for (const text of texts.reverse()) {
    const found = [...text.matchAll(/#([\w-]+)/g)].at(-1)?.[1];
    if (found) return found;
  }
  return "";
}

const textsOf = (content: Wire): string =>
  typeof content === "string" ? content : (content ?? []).map((part: Wire) => part.text ?? "").join("");

const openai: Dialect = {
  name: "openai",
  read({ messages }) {
    const users = messages
      .filter(({ role }: Wire) => role === "user")
      .map(({ content }: Wire) => textsOf(content));
    const lastUser = messages.findLastIndex(({ role }: Wire) => role === "user");
    const results = messages
      .slice(lastUser + 1)
      .filter(({ role }: Wire) => role === "tool")
      .map((message: Wire) => ({ id: message.tool_call_id, text: textsOf(message.content) }));
    return { dialect: "openai", tag: tagOf(users), results, fault: openaiFault(messages) };
  },
  reply() {
    let calls = 0;
    const chunk = (delta: Wire, finish: string | null = null) =>
      frame({
        ...{ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "scripted" },
        choices: [{ index: 0, delta, finish_reason: finish }],
      });
    return {
      open: () => chunk({ role: "assistant", content: "" }),
      text: (content) => chunk({ content }),
      call: ({ id, name, args }) =>
        chunk({
          tool_calls: [
            { index: calls++, id, type: "function", function: { name, arguments: JSON.stringify(args) } },
          ],
        }),
      close: () =>
        `${chunk({}, calls > 0 ? "tool_calls" : "stop")}${frame({
          ...{
            id: "chatcmpl-1",
            object: "chat.completion.chunk",
            created: 1,
            model: "scripted",
            choices: [],
          },
          usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
        })}data: [DONE]\n\n`,
    };
  },
};

function openaiFault(messages: Wire[]): string | undefined {
  let open: string[] = [];
  for (const message of messages) {
    if (message.role === "tool") {
      if (!open.includes(message.tool_call_id)) return `result without a call: ${message.tool_call_id}`;
      open = open.filter((id) => id !== message.tool_call_id);
      continue;
    }
    if (open.length > 0) return `calls without results: ${open}`;
    if (message.role === "assistant") {
      open = (message.tool_calls ?? []).map(({ id }: Wire) => id);
      if (open.length === 0 && textsOf(message.content) === "") return "an assistant message without content";
    } else if (textsOf(message.content) === "") return "an empty message";
  }
  if (open.length > 0) return `calls without results: ${open}`;
  return messages.at(-1)?.role === "assistant" ? "nothing to answer" : undefined;
}

const anthropic: Dialect = {
  name: "anthropic",
  read({ messages }) {
    const blocks = (content: Wire): Wire[] =>
      typeof content === "string" ? [{ type: "text", text: content }] : content;
    const spoken = (message: Wire): string =>
      message.role !== "user"
        ? ""
        : blocks(message.content)
            .map((block) => (block.type === "text" ? block.text : ""))
            .join("");
    const lastUser = messages.findLastIndex((message: Wire) => spoken(message) !== "");
    const results = messages.slice(lastUser + 1).flatMap(({ content }: Wire) =>
      blocks(content)
        .filter(({ type }) => type === "tool_result")
        .map((block) => ({ id: block.tool_use_id, text: textsOf(block.content) })),
    );
    return {
      dialect: "anthropic",
      tag: tagOf(messages.map(spoken)),
      results,
      fault: anthropicFault(messages, blocks),
    };
  },
  reply() {
    let index = 0;
    let open = false;
    let called = false;
    const event = (type: string, rest: Wire) => `event: ${type}\n${frame({ type, ...rest })}`;
    const stop = () => {
      if (!open) return "";
      open = false;
      return event("content_block_stop", { index: index++ });
    };
    const start = (block: Wire) => {
      open = true;
      return event("content_block_start", { index, content_block: block });
    };
    const delta = (what: Wire) => event("content_block_delta", { index, delta: what });
    return {
      open: () =>
        event("message_start", {
          message: {
            ...{ id: "msg_1", type: "message", role: "assistant", model: "scripted", content: [] },
            ...{ stop_reason: null, stop_sequence: null, usage: { input_tokens: 10, output_tokens: 0 } },
          },
        }),
      text: (text) => (open ? "" : start({ type: "text", text: "" })) + delta({ type: "text_delta", text }),
      call({ id, name, args }) {
        called = true;
        return (
          stop() +
          start({ type: "tool_use", id, name, input: {} }) +
          delta({ type: "input_json_delta", partial_json: JSON.stringify(args) }) +
          stop()
        );
      },
      close: () =>
        stop() +
        event("message_delta", {
          delta: { stop_reason: called ? "tool_use" : "end_turn", stop_sequence: null },
          usage: { output_tokens: 5 },
        }) +
        event("message_stop", {}),
    };
  },
};

function anthropicFault(messages: Wire[], blocks: (content: Wire) => Wire[]): string | undefined {
  let open: string[] = [];
  let before = "assistant";
  for (const { role, content } of messages) {
    if (role === before) return `two messages of the ${role} in a row`;
    before = role;
    const all = blocks(content);
    if (all.length === 0 || all.some((block) => block.type === "text" && block.text === ""))
      return "an empty message or block";
    const results = all.filter(({ type }) => type === "tool_result").map((block) => block.tool_use_id);
    if (role === "user" && [...results].sort().join() !== [...open].sort().join())
      return `calls ${open} and results ${results}`;
    open = all.filter(({ type }) => type === "tool_use").map(({ id }) => id);
  }
  return before === "assistant" ? "nothing to answer" : undefined;
}

const gemini: Dialect = {
  name: "gemini",
  read({ contents }) {
    const spoken = ({ role, parts }: Wire): string =>
      role === "user" ? parts.map((part: Wire) => part.text ?? "").join("") : "";
    const lastUser = contents.findLastIndex((content: Wire) => spoken(content) !== "");
    const results = contents
      .slice(lastUser + 1)
      .flatMap(({ parts }: Wire) => parts)
      .filter((part: Wire) => part.functionResponse)
      .map(({ functionResponse }: Wire) => ({
        id: functionResponse.id ?? "",
        text: JSON.stringify(functionResponse.response),
      }));
    return { dialect: "gemini", tag: tagOf(contents.map(spoken)), results, fault: geminiFault(contents) };
  },
  reply() {
    const parts = (each: Wire[], finishReason?: string) =>
      frame({
        candidates: [{ index: 0, content: { role: "model", parts: each }, finishReason }],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
      });
    return {
      open: () => "",
      text: (text) => parts([{ text }]),
      call: ({ id, name, args }) => parts([{ functionCall: { id, name, args } }]),
      close: () => parts([{ text: "" }], "STOP"),
    };
  },
};

function geminiFault(contents: Wire[]): string | undefined {
  let open = 0;
  for (const { role, parts } of contents) {
    if (parts.length === 0) return "a content without parts";
    const results = parts.filter((part: Wire) => part.functionResponse).length;
    if (results !== open) return `${open} calls and ${results} results`;
    open = role === "model" ? parts.filter((part: Wire) => part.functionCall).length : 0;
  }
  return open > 0 || contents.at(-1)?.role === "model" ? "nothing to answer" : undefined;
}

function frame(body: unknown): string {
  return `data: ${JSON.stringify(body)}\n\n`;
}
