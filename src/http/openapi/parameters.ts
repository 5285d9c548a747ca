/** Parameters that several routes share, as they are written in a URL or a header. */
import * as z from "zod";

export const paging = {
  limit: z.int().min(1).max(200).optional().describe("Entries of one page. Default 50."),
  cursor: z.string().optional().describe("`next_cursor` of the page before."),
};

export const idempotency = z.object({
  "idempotency-key": z
    .string()
    .max(255)
    .regex(/^[\x21-\x7e]+$/)
    .optional()
    .describe(
      "A word of your own. The same request with the same word gets the stored response for 24 hours, with `idempotency-replayed: true`, and nothing is done twice. Another body: 422. Still under way: 409.",
    )
    .meta({ examples: ["order-4711"] }),
});

export const sessionId = z.object({ id: z.string().meta({ examples: ["ses_example"] }) });
export const runId = z.object({ id: z.string().meta({ examples: ["run_example"] }) });
export const messageId = z.object({ id: z.string().meta({ examples: ["msg_example"] }) });

export const provider = z
  .enum(["openai", "anthropic", "groq", "gemini", "claude", "google"])
  .optional()
  .describe("Wins over the prefix of the key.");
