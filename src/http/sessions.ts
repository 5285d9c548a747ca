/** `/api/sessions` and `/api/messages`: conversations that the server keeps. */
import { Hono } from "hono";
import * as z from "zod";
import { AGENT } from "../agent/target.ts";
import { encodeMessage, encodeSession } from "../protocols/native-chat-records.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";
import { pageOf, readBody } from "./validate.ts";

/** Characters. */
const TITLE_LIMIT = 200;
/** Characters of a search. */
const QUERY_LIMIT = 500;
/** Runs of a session looked at in one go. */
const RUNS_AT_ONCE = 50;

export const sessionPatch = z
  .looseObject({ title: z.string().trim().min(1).max(TITLE_LIMIT) })
  .meta({ id: "SessionPatch", examples: [{ title: "The tests that fail" }] });

export const forkRequest = z
  .looseObject({
    message_id: z.string().min(1).nullish().describe("The last message that is taken along. Default: all."),
  })
  .meta({ id: "ForkRequest", examples: [{ message_id: "msg_example" }, {}] });

export function sessionRoutes(services: Services): Hono<AppEnv> {
  const { store, runs, memory, config } = services;
  const limits = { limit: config.body.apiLimit, timeoutMs: config.body.timeoutMs };

  /** Stops what runs or waits in a session, newest first: a session has one turn, which is the newest run. */
  async function stopRuns(owner: string, sessionId: string): Promise<void> {
    const { runs: newest } = await store.runs.list(owner, { sessionId, limit: RUNS_AT_ONCE });
    for (const { id, status } of newest)
      if (status === "running" || status === "paused") await runs.stop(owner, id);
  }

  return new Hono<AppEnv>()
    .get("/", async (c) => {
      const query = c.req.query("q")?.trim().slice(0, QUERY_LIMIT) || undefined;
      const { sessions, next } = await store.sessions.list(c.get("owner"), { ...pageOf(c), query });
      return c.json({ sessions: sessions.map(encodeSession), next_cursor: next });
    })
    .get("/:id", async (c) =>
      c.json(encodeSession(await store.sessions.get(c.get("owner"), c.req.param("id")))),
    )
    .patch("/:id", async (c) => {
      const { title } = await readBody(c, sessionPatch, limits);
      return c.json(encodeSession(await store.sessions.rename(c.get("owner"), c.req.param("id"), title)));
    })
    .delete("/:id", async (c) => {
      const owner = c.get("owner");
      const { id } = await store.sessions.get(owner, c.req.param("id"));
      await stopRuns(owner, id);
      services.commands.endSession(owner, id);
      // While they can still be told from others.
      const derived = c.req.query("memories") === "delete";
      const memories = derived ? { memories: await memory.deleteOfSession(owner, id) } : {};
      await store.sessions.delete(owner, id);
      return c.json({ status: "deleted", deleted: 1, ...memories });
    })
    .post("/:id/fork", async (c) => {
      const { message_id: messageId } = await readBody(c, forkRequest, limits);
      const owner = c.get("owner");
      const session = await store.sessions.fork(owner, c.req.param("id"), messageId ?? undefined);
      return c.json(encodeSession(session), 201);
    })
    .get("/:id/messages", async (c) => {
      const owner = c.get("owner");
      const { messages, next } = await store.sessions.messages(owner, c.req.param("id"), pageOf(c));
      const views = messages.map((stored) =>
        encodeMessage(stored, stored.message.role === "assistant" ? (stored.message.agent ?? AGENT) : null),
      );
      return c.json({ messages: views, next_cursor: next });
    });
}

export function messageRoutes({ store }: Services): Hono<AppEnv> {
  return new Hono<AppEnv>().delete("/:id", async (c) => {
    const ids = await store.sessions.deleteMessage(c.get("owner"), c.req.param("id"));
    return c.json({ status: "deleted", deleted: ids.length, ids });
  });
}
