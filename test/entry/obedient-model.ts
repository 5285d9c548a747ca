/** An upstream whose model does what it is told. */
import { reply, type startUpstream, stream } from "../upstream-server.ts";

/** A model that runs every user message as a command, or with the arguments that it is, and then says that it is done. */
export function obedient(): Parameters<typeof startUpstream>[0] {
  return async (response, request, n) => {
    const messages = request.body.messages as { role: string; content: string }[];
    const last = messages.at(-1);
    if (!last) return reply(400, {})(response, request, n);
    const delta =
      last.role === "tool"
        ? { role: "assistant", content: "done" }
        : {
            role: "assistant",
            tool_calls: [
              {
                index: 0,
                id: `call_${n}`,
                type: "function",
                function: {
                  name: "run_terminal_command",
                  arguments: last.content.startsWith("{")
                    ? last.content
                    : JSON.stringify({ command: last.content }),
                },
              },
            ],
          };
    const chunk = (choice: object) =>
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, ...choice }] })}\n\n`;
    const reason = last.role === "tool" ? "stop" : "tool_calls";
    return stream([
      chunk({ delta, finish_reason: null }),
      chunk({ delta: {}, finish_reason: reason }),
      "data: [DONE]\n\n",
    ])(response, request, n);
  };
}
