/** The two official SDKs, each as an application would use it: a base URL, a key, and a streamed reply. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { type SseEvent, SseParser } from "../../src/providers/sse.ts";
import type { Activity, Screen } from "./screen.ts";

/** Any key of the right shape will do: the model server of the demo asks for none. */
const OPENAI_KEY = "sk-demo-not-a-real-key-000000";
const ANTHROPIC_KEY = "sk-ant-demo-not-a-real-key-00";
const HEADERS = { "x-agent-events": "1" };
const MODEL = "dragoman";

/** Resolves with the whole reply. */
export async function askOpenAI(url: string, ask: string, screen: Screen): Promise<string> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: OPENAI_KEY, maxRetries: 0 });
  const stream = await client.chat.completions.create(
    { model: MODEL, stream: true, messages: [{ role: "user", content: ask }] },
    { headers: HEADERS },
  );
  let reply = "";
  for await (const chunk of stream) {
    // Beside the fields of the API, where no client looks that has not asked for it.
    const { agent_event: activity } = chunk as { agent_event?: Activity };
    if (activity) screen.activity(activity);
    const text = chunk.choices[0]?.delta.content ?? "";
    reply += text;
    screen.stream(text);
  }
  return reply;
}

/** Resolves with the whole reply. */
export async function askAnthropic(url: string, ask: string, screen: Screen): Promise<string> {
  const client = new Anthropic({
    baseURL: url,
    apiKey: ANTHROPIC_KEY,
    maxRetries: 0,
    fetch: async (input, init) => watched(await fetch(input, init), (activity) => screen.activity(activity)),
  });
  const stream = client.messages.stream(
    { model: MODEL, max_tokens: 2048, messages: [{ role: "user", content: ask }] },
    { headers: HEADERS },
  );
  stream.on("text", (text) => screen.stream(text));
  const message = await stream.finalMessage();
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** In this door the activity travels in pings, which the SDK keeps to itself: so they are read on the way. */
function watched(response: Response, show: (activity: Activity) => void): Response {
  if (!response.ok || !response.body) return response;
  const parser = new SseParser();
  const watch = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      controller.enqueue(bytes);
      const events: SseEvent[] = [];
      parser.push(bytes, events);
      const pings = events.filter(({ event, data }) => event === "ping" && data.includes("agent_event"));
      // After the SDK has shown the text that stood before them.
      if (pings.length > 0)
        setImmediate(() => {
          for (const { data } of pings) show((JSON.parse(data) as { agent_event: Activity }).agent_event);
        });
    },
  });
  const { status, headers } = response;
  return new Response(response.body.pipeThrough(watch), { status, headers });
}
