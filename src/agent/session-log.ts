/** One session as a run sees it: its history in front, its new messages appended as they come about. */
import type { Message } from "../core/message.ts";
import type { Sessions } from "../core/store.ts";
import { AppError } from "../errors.ts";
import { messageTokens } from "./estimate.ts";

/** Messages read at once. */
const PAGE = 200;
/** How often an append is tried when other requests write to the same session. */
const APPEND_TRIES = 8;

export class SessionLog {
  readonly id: string;
  readonly #sessions: Sessions;
  readonly #owner: string;
  readonly #window: number | undefined;
  #lastSeq: number;

  private constructor(
    sessions: Sessions,
    owner: string,
    window: number | undefined,
    at: { id: string; lastSeq: number },
  ) {
    this.#sessions = sessions;
    this.#owner = owner;
    this.#window = window;
    this.id = at.id;
    this.#lastSeq = at.lastSeq;
  }

  /** Throws AppError `not_found` for an id that is not the owner's. */
  static async open(
    sessions: Sessions,
    owner: string,
    ref: string,
    window: number | undefined,
  ): Promise<SessionLog> {
    return new SessionLog(sessions, owner, window, await sessions.open(owner, ref));
  }

  /**
   * Stores what is new in a client's messages and returns the whole conversation. Where the session has a history, the
   * client's messages up to its last assistant message are its copy of it, and the server's stands.
   */
  async begin(sent: Message[]): Promise<Message[]> {
    const history = this.#lastSeq === 0 ? [] : await this.#tail();
    const known = history.length === 0 ? -1 : sent.findLastIndex((message) => message.role === "assistant");
    const fresh = sent.slice(known + 1);
    if (fresh.length === 0)
      throw new AppError(
        "invalid_request",
        "messages: the last message is the session's own. Send what comes after it, for example a user message.",
        { param: "messages" },
      );
    await this.append(fresh);
    return [...history, ...fresh];
  }

  async append(messages: Message[]): Promise<void> {
    for (let tries = 0; tries < APPEND_TRIES; tries++) {
      const seq = await this.#sessions.append(this.#owner, this.id, this.#lastSeq, messages);
      if (seq !== null) {
        this.#lastSeq = seq;
        return;
      }
      // Another turn has written meanwhile: its messages stand before ours.
      this.#lastSeq = (await this.#sessions.open(this.#owner, this.id)).lastSeq;
    }
    throw new AppError("conflict", "Too many requests write to this session at once. Send this one again.");
  }

  /** The newest messages, as many as the model's window can hold. */
  async #tail(): Promise<Message[]> {
    const newest: Message[] = [];
    let tokens = 0;
    let before: number | undefined;
    for (;;) {
      const page = await this.#sessions.page(this.#owner, this.id, { before, limit: PAGE });
      for (const { message } of page) {
        newest.push(message);
        tokens += messageTokens(message);
      }
      before = page.at(-1)?.seq;
      if (page.length < PAGE || before === 1 || (this.#window !== undefined && tokens > this.#window)) break;
    }
    return newest.reverse();
  }
}
