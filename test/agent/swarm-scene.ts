/** A model that answers each agent of a swarm by who it is, and how far it has come. */
import { type Message, textOf } from "../../src/core/message.ts";
import type { ModelAdapter, ModelRequest } from "../../src/core/model.ts";
import { type ScriptedReply, scriptedEvents } from "../scripted-model.ts";

export interface Heard {
  /** The member by its name; the empty string is the lead. */
  who: string;
  /** Results behind the user's last words. */
  results: string[];
  /** The user's last words. */
  said: string;
  request: ModelRequest;
}

export type Part = (heard: Heard) => ScriptedReply & { until?: Promise<unknown> };

export interface SceneModel extends ModelAdapter {
  heard: Heard[];
  /** Model calls under way at the same time, at most. */
  most: number;
  /** Names of those who have been heard, in order. */
  who(): string[];
}

export function sceneModel(part: Part): SceneModel {
  let running = 0;
  const model: SceneModel = {
    provider: "openai",
    heard: [],
    most: 0,
    who: () => model.heard.map(({ who }) => who),
    models: async () => [],
    async *stream(request, signal) {
      const heard = hear(request);
      model.heard.push(heard);
      running++;
      model.most = Math.max(model.most, running);
      try {
        const { until, ...reply } = part(heard);
        const aborted = new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          else signal.addEventListener("abort", () => resolve(), { once: true });
        });
        if (until) await Promise.race([until, aborted]);
        if (!signal.aborted) yield* scriptedEvents(reply);
        if (reply.hang) await aborted;
        if (signal.aborted)
          yield { type: "failed", fault: { code: "cancelled", message: "Cancelled.", status: 499 } };
      } finally {
        running--;
      }
    },
  };
  return model;
}

function hear(request: ModelRequest): Heard {
  const system = request.system.map(({ text }) => text).join("\n");
  const who = /You are ("(?:[^"\\]|\\.)*"), one of several agents/.exec(system)?.[1] ?? '""';
  const last = request.messages.findLastIndex(({ role }) => role === "user");
  const user = request.messages[last];
  const results = request.messages
    .slice(last + 1)
    .filter((message): message is Extract<Message, { role: "tool" }> => message.role === "tool")
    .map((message) => textOf(message));
  return { who: JSON.parse(who), results, said: user ? textOf(user) : "", request: structuredClone(request) };
}

/** A turn that delegates. */
export function delegate(tasks: object[], id = "call_d"): ScriptedReply {
  return { text: "I delegate.", calls: [{ id, name: "delegate", args: { tasks } }] };
}
