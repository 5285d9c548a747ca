import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { AppError } from "../../src/errors.ts";
import { agrees, decodeApprove, decodeChat } from "../../src/protocols/native-chat-request.ts";
import { approveRequest, chatRequest } from "../../src/protocols/native-chat-schema.ts";
import { parseWire } from "../../src/protocols/problem.ts";

const LIMITS = { maxSteps: 50 };
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const chat = (body: unknown) => decodeChat(parseWire(chatRequest, body), LIMITS);
const approve = (body: unknown) => decodeApprove(parseWire(approveRequest, body));

function faultOf(run: () => unknown): { code: string; param: string | undefined; message: string } {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(AppError);
    const { code, param, message } = error as AppError;
    return { code, param, message };
  }
  throw new Error("nothing was thrown");
}

const least = {
  request: {
    model: "",
    system: [],
    messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
    tools: [],
    settings: {},
  },
  key: undefined,
  provider: undefined,
  sessionId: undefined,
  allowedTools: null,
  stream: false,
  agentName: undefined,
  useSwarm: false,
  autoApprove: false,
  maxSteps: undefined,
};

describe("a chat request", () => {
  test("needs a message only; null stands for absent everywhere", () => {
    expect(chat({ message: "hi" })).toEqual(least);
    const optional = Object.keys(chatRequest.shape).filter((name) => name !== "message");
    expect(optional).toHaveLength(13);
    expect(chat({ message: "hi", ...Object.fromEntries(optional.map((name) => [name, null])) })).toEqual(
      least,
    );
  });

  test("with every field", () => {
    expect(
      chat({
        message: "look",
        api_key: " sk-ant-1 ",
        provider: "claude",
        model: "dragoman/coder@claude-opus",
        session_id: "ses_1",
        system_instruction: "Be brief.",
        allowed_tools: ["read_file"],
        stream: true,
        agent_name: "coder",
        use_swarm: true,
        auto_approve: true,
        max_steps: 50,
        attachments: [
          { type: "image", url: "https://example.com/a.png" },
          { type: "image", data: PNG, media_type: "image/PNG", name: "dot" },
          { type: "image", data: PNG },
          { type: "file", data: "SGVsbG8", media_type: "text/plain", name: "hello.txt" },
          { type: "file", url: "http://example.com/a.pdf", media_type: "application/PDF" },
        ],
        newer_field: { is: "ignored" },
      }),
    ).toEqual({
      request: {
        model: "dragoman/coder@claude-opus",
        system: [{ type: "text", text: "Be brief." }],
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "look" },
              { type: "image", source: { kind: "url", url: "https://example.com/a.png" } },
              { type: "image", source: { kind: "data", mediaType: "image/png", data: PNG } },
              { type: "image", source: { kind: "data", mediaType: "image/png", data: PNG } },
              {
                type: "file",
                source: { kind: "data", mediaType: "text/plain", data: "SGVsbG8=" },
                mediaType: "text/plain",
                name: "hello.txt",
              },
              {
                type: "file",
                source: { kind: "url", url: "http://example.com/a.pdf" },
                mediaType: "application/pdf",
              },
            ],
          },
        ],
        tools: [],
        settings: {},
      },
      key: "sk-ant-1",
      provider: "claude",
      sessionId: "ses_1",
      allowedTools: ["read_file"],
      stream: true,
      agentName: "coder",
      useSwarm: true,
      autoApprove: true,
      maxSteps: 50,
    });
  });

  test("takes a message of 1 MiB of UTF-8 and no more", () => {
    const euro = "€".repeat(349_525);
    expect(chat({ message: `${euro}x` }).request.messages).toHaveLength(1);
    expect(faultOf(() => chat({ message: `${euro}xy` }))).toEqual({
      code: "invalid_request",
      param: "message",
      message: "message has to be at most 1 MiB of UTF-8. Send long texts as attachments, or in parts.",
    });
    expect(chat({ message: "x".repeat(1_048_576) }).stream).toBe(false);
    expect(faultOf(() => chat({ message: "x".repeat(1_048_577) })).param).toBe("message");
  });

  const attached = (attachment: object) => ({ message: "hi", attachments: [attachment] });
  test.each([
    [{}, "message", "message is missing; it has to be a string."],
    [{ message: "" }, "message", "message has to have at least 1 character, but it is empty."],
    [{ message: ["hi"] }, "message", "message has to be a string, but it is an array."],
    [{ message: "hi", stream: "true" }, "stream", "stream has to be true or false, but it is a string."],
    [
      { message: "hi", provider: "mistral" },
      "provider",
      'provider has to be "openai", "anthropic", "groq", "gemini", "claude" or "google", but it is "mistral".',
    ],
    [
      { message: "hi", allowed_tools: "all" },
      "allowed_tools",
      "allowed_tools has to be an array, but it is a string.",
    ],
    [{ message: "hi", max_steps: 0 }, "max_steps", "max_steps has to be at least 1, but it is 0."],
    [{ message: "hi", max_steps: 1.5 }, "max_steps", "max_steps has to be a whole number, but it is 1.5."],
    [
      { message: "hi", max_steps: 51 },
      "max_steps",
      "max_steps has to be at most 50, the limit of this service, but it is 51.",
    ],
    [
      { message: "hi", api_key: "sk-1\r\nx: y" },
      "api_key",
      "api_key has to be a provider key: printable ASCII characters without spaces.",
    ],
    [
      { message: "hi", attachments: Array(21).fill({ type: "image", url: "https://a.b/c" }) },
      "attachments",
      "attachments has to hold at most 20 entries, but it is an array.",
    ],
    [
      attached({ type: "video", url: "https://a.b/c" }),
      "attachments[0].type",
      'attachments[0].type has to be "image" or "file", but it is "video".',
    ],
    [attached({ type: "image" }), "attachments[0]", "attachments[0] has to hold either url or data."],
    [
      attached({ type: "image", url: "https://a.b/c", data: PNG }),
      "attachments[0]",
      "attachments[0] has to hold either url or data.",
    ],
    [
      attached({ type: "image", url: "file:///etc/passwd" }),
      "attachments[0].url",
      "attachments[0].url has to be an http(s) URL. Send the bytes themselves in attachments[0].data.",
    ],
    [
      attached({ type: "image", data: `data:image/png;base64,${PNG}` }),
      "attachments[0].data",
      'attachments[0].data has to be plain base64, without "data:…;base64," in front; the type belongs in media_type.',
    ],
    [
      attached({ type: "image", data: PNG, media_type: "image/jpeg" }),
      "attachments[0].data",
      "attachments[0].data is not a usable image. The data is image/png, but the media type says image/jpeg.",
    ],
    [
      attached({ type: "image", data: "SGVsbG8=" }),
      "attachments[0].data",
      "attachments[0].data is not a usable image. The data is not a PNG, JPEG, GIF or WebP image.",
    ],
    [
      attached({ type: "file", data: "SGVsbG8=" }),
      "attachments[0].media_type",
      "attachments[0].media_type is missing: say what the file is, for example application/pdf.",
    ],
    [
      attached({ type: "file", data: "%%%", media_type: "text/plain" }),
      "attachments[0].data",
      "attachments[0].data is not valid base64.",
    ],
  ])("%#: names what is wrong", (body, param, message) => {
    expect(faultOf(() => chat(body))).toEqual({ code: "invalid_request", param, message });
  });

  test("takes no image of more than 10 MiB", () => {
    const data = PNG.slice(0, 16) + "A".repeat(14_000_000);
    expect(faultOf(() => chat(attached({ type: "image", data })))).toEqual({
      code: "payload_too_large",
      param: "attachments[0].data",
      message: "attachments[0].data is larger than 10 MiB, the limit for an image.",
    });
  });
});

describe("an approval", () => {
  test("of all that is pending", () => {
    const all = { sessionId: "ses_1", approved: true, stream: false, calls: [], scope: "once" };
    expect(approve({ session_id: "ses_1", approved: true })).toEqual(all);
    expect(approve({ session_id: "ses_1", approved: true, pending_calls: [] })).toEqual(all);
    expect(
      approve({ session_id: "ses_1", approved: true, pending_calls: null, stream: null, scope: null }),
    ).toEqual(all);
  });

  test("of some, by id or as they were sent", () => {
    const sent = { id: "call_2", name: "x", args: { a: 1 }, preview: "x", risk: "write", expires_at: "…" };
    expect(
      approve({
        session_id: "ses_1",
        approved: false,
        stream: true,
        scope: "session",
        pending_calls: ["call_1", sent, { id: "call_3", name: null, args: null }],
      }),
    ).toEqual({
      sessionId: "ses_1",
      approved: false,
      stream: true,
      scope: "session",
      calls: [
        { id: "call_1", name: undefined, args: undefined },
        { id: "call_2", name: "x", args: { a: 1 } },
        { id: "call_3", name: undefined, args: undefined },
      ],
    });
  });

  test.each([
    [{ approved: true }, "session_id"],
    [{ session_id: "", approved: true }, "session_id"],
    [{ session_id: "ses_1" }, "approved"],
    [{ session_id: "ses_1", approved: "yes" }, "approved"],
    [{ session_id: "ses_1", approved: true, scope: "always" }, "scope"],
    [{ session_id: "ses_1", approved: true, pending_calls: [{ name: "x" }] }, "pending_calls[0].id"],
    [{ session_id: "ses_1", approved: true, pending_calls: ["a", 7] }, "pending_calls[1]"],
    [{ session_id: "ses_1", approved: true, pending_calls: "call_1" }, "pending_calls"],
  ])("%#: names what is wrong", (body, param) => {
    expect(faultOf(() => approve(body))).toMatchObject({ code: "invalid_request", param });
  });

  const stored = { name: "run_terminal_command", args: '{"command":"ls","env":{"A":[1,null]}}' };
  const selected = (fields: object) => ({ id: "call_1", name: undefined, args: undefined, ...fields });
  test.each([
    [{}, true],
    [{ name: "run_terminal_command" }, true],
    [{ args: { env: { A: [1, null] }, command: "ls" } }, true],
    [{ name: "create_file" }, false],
    [{ args: {} }, false],
    [{ args: { command: "ls" } }, false],
    [{ args: { command: "ls", env: { A: [1, null] }, cwd: "x" } }, false],
    [{ args: { command: "ls -a", env: { A: [1, null] } } }, false],
    [{ args: { command: "ls", env: { A: { 0: 1, 1: null } } } }, false],
    [{ args: { command: "ls", env: null } }, false],
  ])("%#: agrees with what is stored, or does not", (fields, expected) => {
    expect(agrees(selected(fields), stored)).toBe(expected);
  });

  test("agrees with whatever a client was shown, sent back in any order of keys", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (args) => {
        const text = JSON.stringify(args);
        const back = Object.fromEntries(Object.entries(JSON.parse(text)).reverse());
        expect(agrees(selected({ args: back }), { name: "x", args: text })).toBe(true);
        expect(agrees(selected({ args: { ...back, "other\0": 1 } }), { name: "x", args: text })).toBe(false);
      }),
    );
    expect(agrees(selected({ args: { _raw: "{oops" } }), { name: "x", args: "{oops" })).toBe(true);
  });
});

describe("the schemas", () => {
  test("are plain JSON Schema whose examples they accept", () => {
    for (const schema of [chatRequest, approveRequest]) {
      expect(z.toJSONSchema(schema, { io: "input" })).toHaveProperty("$defs");
      const { examples } = schema.meta() as { examples: unknown[] };
      expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) expect(schema.safeParse(example).success).toBe(true);
    }
  });

  const value = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom(null, true, "", "hi", PNG, 0, 1, -1, 1.5, "openai", "https://a.b/c", "once"),
    fc.array(
      fc.record(
        {
          type: fc.constantFrom("image", "file", "x", null),
          id: fc.anything(),
          url: fc.constantFrom("https://a.b/c", "x", null, 1),
          data: fc.constantFrom(PNG, "", "SGVsbG8=", "%", null),
          media_type: fc.constantFrom("image/png", "text/plain", "", null),
          args: fc.jsonValue(),
        },
        { requiredKeys: [] },
      ),
      { maxLength: 3 },
    ),
  );

  test.each([
    ["chat", chatRequest.shape, chat],
    ["approve", approveRequest.shape, approve],
  ] as const)("%s: any body is decoded or refused in a sentence that names the field", (_, shape, decode) => {
    const body = fc.record(Object.fromEntries(Object.keys(shape).map((name) => [name, value])), {
      requiredKeys: [],
    });
    const likely = body.map((fields) => ({ message: "hi", session_id: "s", approved: true, ...fields }));
    fc.assert(
      fc.property(fc.oneof(body, likely, fc.jsonValue()), (wire) => {
        try {
          decode(wire);
        } catch (error) {
          expect(error).toBeInstanceOf(AppError);
          const { status, message, param } = error as AppError;
          expect(status).toBe(400);
          expect(message).toMatch(/\.$/);
          expect(message).toContain(param ?? "The request body");
        }
      }),
      { numRuns: 500 },
    );
  });
});
