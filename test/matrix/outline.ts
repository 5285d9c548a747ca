/** What an upstream was told, short enough to be compared by eye. */
import type { Double } from "./double.ts";

/** Roles and words of a history, in order: what is where. Gemini has results as objects. */
export function outline(messages: ReturnType<Double["histories"]>[number] | undefined): string[] {
  return (messages ?? []).flatMap(({ role, content, tool_calls }) => {
    const words =
      typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("");
    const output = role === "tool" && words.startsWith("{") ? resultOf(words) : words;
    if (role === "system") return [];
    const calls = (tool_calls ?? []).map((call) => `call ${call.function.name} ${call.function.arguments}`);
    return [...(words === "" ? [] : [`${role}: ${output}`]), ...calls];
  });
}

function resultOf(json: string): string {
  const { output, error } = JSON.parse(json) as { output?: string; error?: string };
  return output ?? error ?? json;
}
