/** Model events -> the assistant message they describe. Pure. */
import type { ModelEvent, PartStart } from "./event.ts";
import type { AssistantMessage, AssistantPart, Origin } from "./message.ts";

function start(part: PartStart): AssistantPart {
  switch (part.kind) {
    case "text":
      return { type: "text", text: "" };
    case "reasoning":
      return part.redacted
        ? { type: "reasoning", text: "", redacted: true }
        : { type: "reasoning", text: "" };
    case "refusal":
      return { type: "refusal", text: "" };
    case "call":
      return {
        type: "call",
        id: part.id,
        name: part.name,
        args: "",
        ...(part.freeform ? { freeform: true } : {}),
      };
    case "raw":
      return { type: "raw", family: part.family, block: part.block };
  }
}

/** Takes events one by one; `message` is whole after `done`, and as far as it came after anything else. */
export class Fold {
  readonly message: AssistantMessage;

  constructor(origin?: Origin) {
    this.message = { role: "assistant", content: [], ...(origin ? { origin } : {}) };
  }

  push(event: ModelEvent): void {
    const content = this.message.content;
    switch (event.type) {
      case "part-open":
        content[event.index] = start(event.part);
        break;
      case "part-delta": {
        const part = content[event.index];
        if (part?.type === "call") part.args += event.delta;
        else if (part && "text" in part) part.text += event.delta;
        break;
      }
      case "part-close": {
        const part = content[event.index];
        if (part?.type === "raw") {
          if (event.block !== undefined) part.block = event.block;
        } else if (part && part.type !== "refusal" && part.type !== "image" && part.type !== "file") {
          if (event.seal !== undefined) part.seal = event.seal;
          if (event.extra !== undefined) part.extra = event.extra;
        }
        break;
      }
      case "done":
        this.message.stop = event.stop;
        this.message.usage = event.usage;
        break;
    }
  }
}

export function fold(events: Iterable<ModelEvent>, origin?: Origin): AssistantMessage {
  const state = new Fold(origin);
  for (const event of events) state.push(event);
  return state.message;
}
