/**
 * The request bodies of the native door. Strict about types, loose about fields that it does not know; null stands for
 * absent wherever a field is optional. The OpenAPI document is made from them, so they hold plain JSON Schema only.
 */
import * as z from "zod";

/** Bytes of UTF-8 that a message may have. A schema counts UTF-16 units, of which there are never more. */
export const MESSAGE_LIMIT_BYTES = 1024 * 1024;
export const ATTACHMENTS_LIMIT = 20;
/** Entries of a list of names or ids. */
const LIST_LIMIT = 1000;

const text = z.string().nullish();
const flag = z.boolean().nullish();

const attachment = z
  .looseObject({
    type: z.enum(["image", "file"]),
    url: text.describe("An http(s) URL. Either this or `data`."),
    data: text.describe("Base64, without a `data:` prefix. Either this or `url`."),
    media_type: text.describe(
      "Images: image/png, image/jpeg, image/gif or image/webp; with `data` the bytes tell it, too. Files: required.",
    ),
    name: text.describe("File name to show to the model."),
  })
  .meta({
    id: "Attachment",
    description: "An image or a document beside the message.",
    examples: [
      { type: "image", url: "https://example.com/plan.png" },
      { type: "file", data: "SGVsbG8=", media_type: "text/plain", name: "hello.txt" },
    ],
  });

export const chatRequest = z
  .looseObject({
    message: z
      .string()
      .min(1)
      .max(MESSAGE_LIMIT_BYTES)
      .describe("What the user says to the agent: 1 byte to 1 MiB of UTF-8."),
    api_key: text.describe(
      "The caller's provider key. Without one the operator's is used, where there is one.",
    ),
    provider: z
      .enum(["openai", "anthropic", "groq", "gemini", "claude", "google"])
      .nullish()
      .describe(
        "Default: told from the prefix of the key. `claude` and `google` are aliases of `anthropic` and `gemini`.",
      ),
    model: text.describe(
      "An upstream model id, `dragoman`, `dragoman/<agent>` or `dragoman/<agent>@<model id>`. Default: the default agent on the provider's default model.",
    ),
    session_id: text.describe("The session to go on with; without one a new session is made. Unknown: 404."),
    system_instruction: text.describe("Added to the agent's own instructions, for this message."),
    allowed_tools: z
      .array(z.string().min(1))
      .max(LIST_LIMIT)
      .nullish()
      .describe(
        "null: all tools that policy allows. A list: only these; the `session` event names those that are not there now.",
      ),
    stream: flag.describe("true: the reply comes as server-sent events. Default false."),
    agent_name: text.describe("The agent to address. Unknown: 404, which lists the agents."),
    use_swarm: flag.describe(
      "Lets the agent delegate to others: to your named agents, or to members with a role. Default false; an agent with `sub_agents` may always delegate to those.",
    ),
    swarm: z
      .looseObject({
        mode: z.literal("debate"),
        rounds: z.int().min(1).max(5).nullish().describe("Default 2."),
      })
      .nullish()
      .describe(
        "A swarm of another form. `debate`: members answer the message, see each other's answers in the rounds that follow, and the agent judges.",
      ),
    auto_approve: flag.describe(
      "Runs tools that would ask without asking. Refused with 403 unless the operator allows it. Default false.",
    ),
    attachments: z.array(attachment).max(ATTACHMENTS_LIMIT).nullish(),
    max_steps: z
      .int()
      .min(1)
      .nullish()
      .describe(
        "The most model calls that the run may make, and each member of its swarm; at most the operator's limit, its default.",
      ),
  })
  .meta({
    id: "ChatRequest",
    examples: [
      { message: "Which files are here?", stream: true },
      {
        message: "Run the tests and tell me what fails.",
        provider: "anthropic",
        allowed_tools: ["run_terminal_command", "read_file"],
        max_steps: 20,
      },
    ],
  });

const selectedCall = z.looseObject({
  id: z.string().min(1),
  name: text,
  args: z
    .record(z.string(), z.unknown())
    .nullish()
    .describe("If it or the name is not what the server has stored, the answer is 409 and nothing runs."),
});

export const approveRequest = z
  .looseObject({
    session_id: z.string().min(1).describe("The session that holds the pending calls."),
    approved: z
      .boolean()
      .describe("true runs the calls, false denies them; the model sees a denial as a result."),
    pending_calls: z
      .array(z.union([z.string().min(1), selectedCall]))
      .max(LIST_LIMIT)
      .nullish()
      .describe(
        "Call ids, or call objects as they were sent. They only select: what runs is what the server has stored. Absent or empty: all pending calls of the session.",
      ),
    stream: flag.describe("true: the rest of the run comes as server-sent events. Default false."),
    scope: z
      .enum(["once", "session"])
      .nullish()
      .describe(
        "`session`: the same tool with the same kind of arguments is not asked about again in this session. Tools for memory, notes, schedules and watchdogs are asked about each time all the same. Default `once`.",
      ),
  })
  .meta({
    id: "ApproveRequest",
    examples: [
      { session_id: "ses_example", approved: true },
      { session_id: "ses_example", approved: false, pending_calls: ["call_example"], stream: true },
    ],
  });

export type ChatRequest = z.infer<typeof chatRequest>;
export type ApproveRequest = z.infer<typeof approveRequest>;
export type WireAttachment = z.infer<typeof attachment>;
