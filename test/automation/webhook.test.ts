/** Signatures of webhooks, beside the standard's own vector. */
import { describe, expect, test } from "vitest";
import { checkWebhookSecret, createWebhookSecret, webhookHeaders } from "../../src/automation/webhook.ts";

const VECTOR = {
  secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
  at: new Date(1614265330_000),
  body: '{"test": 2432232314}',
};

describe("Standard Webhooks", () => {
  test("signs as the published vector has it", async () => {
    expect(await webhookHeaders(VECTOR.secret, VECTOR)).toEqual({
      "webhook-id": VECTOR.id,
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  test.each([
    ["the id", { id: "msg_other" }],
    ["the time", { at: new Date(1614265331_000) }],
    ["the body", { body: '{"test": 2432232315}' }],
  ])("another signature where %s is another", async (_, change) => {
    const signatureOf = async (signed: typeof VECTOR) =>
      (await webhookHeaders(VECTOR.secret, signed))["webhook-signature"];
    expect(await signatureOf({ ...VECTOR, ...change })).not.toBe(await signatureOf(VECTOR));
  });

  test("makes secrets that it takes, each another", () => {
    const made = Array.from({ length: 50 }, createWebhookSecret);
    for (const secret of made) expect(() => checkWebhookSecret(secret)).not.toThrow();
    expect(new Set(made).size).toBe(50);
    checkWebhookSecret(VECTOR.secret);
  });

  test.each(["", "secret", "whsec_", "whsec_c2hvcnQ=", "whsec_%%%", `whsec_${btoa("x".repeat(65))}`])(
    "refuses %j as a secret, and says what one is",
    (secret) => {
      expect(() => checkWebhookSecret(secret)).toThrow(/^webhook_secret: it has to be whsec_/);
    },
  );
});
