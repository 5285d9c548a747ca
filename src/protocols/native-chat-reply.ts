/** The events of a run -> one body, for `stream: false` and for what a run has answered already. */
import { AppError } from "../errors.ts";
import type { ChatEvent, ToolActivity, WirePendingCall } from "./native-chat-events.ts";
import type { ChatReply } from "./native-chat-records.ts";

type Done = Extract<ChatEvent, { type: "done" }>;
type Failed = Extract<ChatEvent, { type: "error" }>;

/** Takes one stream of a run, or several in a row: the last one says how it stands, all of them what was done. */
export class ReplyCollector {
  #tools: ToolActivity[] = [];
  #pending: WirePendingCall[] = [];
  #end: Done | Failed | null = null;

  push(event: ChatEvent): void {
    switch (event.type) {
      case "session":
        this.#pending = [];
        this.#end = null;
        break;
      case "tool_result": {
        const { type: _, ...activity } = event;
        this.#tools.push(activity);
        break;
      }
      case "auth_required":
        this.#pending = event.pending_calls;
        break;
      case "done":
      case "error":
        this.#end = event;
        break;
    }
  }

  /** Throws the fault of a run that failed: such a reply has no body. */
  body(): ChatReply {
    const end = this.#end;
    if (end === null) throw new Error("the reply was asked for before its run had ended or paused");
    if (end.type === "error") {
      const { code, error, status, param, retry_after: retryAfter } = end;
      throw new AppError(code, error, { status, param, retryAfter });
    }
    return {
      session_id: end.session_id,
      run_id: end.run_id,
      message_id: end.message_id,
      reply: end.reply,
      auth_required: end.auth_required,
      pending_calls: end.auth_required ? this.#pending : [],
      tools: this.#tools,
      usage: end.usage,
      stop_reason: end.stop_reason,
    };
  }
}
