/** Posts to webhooks: how many at once, what an answer means, and that one does not hold up the others. */
import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createKeyVault } from "../../src/agent/key-vault.ts";
import { Courier, POSTS_AT_ONCE, RETRY_MS } from "../../src/automation/deliver.ts";
import { createWebhookSecret } from "../../src/automation/webhook.ts";
import type { Deliveries } from "../../src/core/automation.ts";
import type { GuardedFetch } from "../../src/core/fetch.ts";
import type { Delivery, DeliveryResult } from "../../src/core/occurrences.ts";
import { AppError } from "../../src/errors.ts";
import { later, NOW } from "./records.ts";

const secret = createWebhookSecret();
const vault = createKeyVault("a-secret-of-the-tests-with-enough-characters");

/** What is due, as the store hands it out: each once. */
async function courierOf(count: number, fetch: GuardedFetch, change: Partial<Delivery> = {}) {
  const sealedSecret = await vault.seal(secret);
  const due = Array.from({ length: count }, (_, n): Delivery => {
    const key = { jobId: `job_${n}`, scheduledAt: later(n) };
    return {
      ...key,
      owner: "ann",
      url: "https://a.example/",
      sealedSecret,
      body: `{"n":${n}}`,
      attempt: 1,
      ...change,
    };
  });
  const results: DeliveryResult[] = [];
  const deliveries: Deliveries = {
    async claim(_now, _until, limit) {
      await Promise.resolve();
      return due.splice(0, limit);
    },
    async settle(_key, _attempt, result) {
      results.push(result);
    },
  };
  const working: Promise<unknown>[] = [];
  const platform = {
    fetch,
    now: () => NOW,
    log: () => {},
    background: (work: Promise<unknown>) => void working.push(work),
  };
  const courier = new Courier({ deliveries, vault, platform });
  return { courier, due, results, working };
}

const answering =
  (status: number, headers = {}) =>
  async () =>
    new Response(null, { status, headers });

describe("posts", () => {
  test("of very many that are due, so many are under way at once, and all are sent without another tick", async () => {
    let now = 0;
    let most = 0;
    const bodies: string[] = [];
    const fetch: GuardedFetch = async (_url, init) => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now--;
      bodies.push(String(init?.body));
      return new Response(null, { status: 204 });
    };
    const { courier, results, working } = await courierOf(500, fetch);
    expect(await courier.deliverDue()).toBe(POSTS_AT_ONCE);
    // Whoever asks meanwhile gets none more.
    expect(await courier.deliverDue()).toBe(0);
    for (let n = 0; n < working.length; n++) await working[n];
    expect(most).toBe(POSTS_AT_ONCE);
    expect(new Set(bodies).size).toBe(500);
    expect(results.every(({ status }) => status === "delivered")).toBe(true);
  });

  test("nothing more is taken up once it is stopped", async () => {
    const { courier, due, working } = await courierOf(50, answering(204));
    await courier.deliverDue();
    courier.stop();
    for (let n = 0; n < working.length; n++) await working[n];
    expect(due).toHaveLength(50 - POSTS_AT_ONCE);
  });

  test("a database that does not answer costs no slot", async () => {
    const limits: number[] = [];
    const deliveries: Deliveries = {
      claim(_now, _until, limit) {
        limits.push(limit);
        return Promise.reject(new AppError("unavailable", "The database is busy."));
      },
      async settle() {},
    };
    const platform = { fetch: answering(204), now: () => NOW, log: () => {}, background: () => {} };
    const courier = new Courier({ deliveries, vault, platform });
    for (let n = 0; n < 3; n++) await expect(courier.deliverDue()).rejects.toThrow("busy");
    expect(limits).toEqual(Array(3).fill(POSTS_AT_ONCE));
  });
});

describe("an answer", () => {
  async function answered(fetch: GuardedFetch, change: Partial<Delivery> = {}) {
    const { courier, results, working } = await courierOf(1, fetch, change);
    await courier.deliverDue();
    await Promise.all(working);
    return results[0];
  }

  test.each([
    [200, "delivered"],
    [204, "delivered"],
    [299, "delivered"],
    [301, "pending"],
    [400, "pending"],
    [404, "pending"],
    [410, "failed"],
    [429, "pending"],
    [500, "pending"],
    [503, "pending"],
  ])("%i: %s", async (httpStatus, status) => {
    const result = await answered(answering(httpStatus));
    expect(result).toMatchObject({ status, httpStatus });
    expect(result?.nextAt).toEqual(status === "pending" ? later(RETRY_MS[0] ?? 0) : null);
  });

  test("each pause is longer than the one before, and then it is given up", async () => {
    for (const [n, pause] of RETRY_MS.entries())
      expect((await answered(answering(500), { attempt: n + 1 }))?.nextAt).toEqual(later(pause));
    expect(await answered(answering(500), { attempt: RETRY_MS.length + 1 })).toMatchObject({
      ...{
        status: "failed",
        error: expect.stringContaining(`Given up after ${RETRY_MS.length + 1} attempts`),
      },
    });
    expect(RETRY_MS.toSorted((a, b) => a - b)).toEqual(RETRY_MS);
  });

  test("it is posted without following redirects, signed over exactly what is sent", async () => {
    const sent: { url: string; init: Parameters<GuardedFetch>[1] }[] = [];
    await answered(async (url, init) => {
      sent.push({ url: String(url), init });
      return new Response(null, { status: 302, headers: { location: "https://b.example/" } });
    });
    const [only, ...others] = sent;
    expect(others).toEqual([]);
    expect(only?.init).toMatchObject({ method: "POST", redirect: "manual" });
    const headers = new Headers(only?.init?.headers);
    const signed = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${only?.init?.body}`;
    const key = Buffer.from(secret.slice("whsec_".length), "base64");
    const expected = createHmac("sha256", key).update(signed).digest("base64");
    expect(headers.get("webhook-signature")).toBe(`v1,${expected}`);
    expect(headers.get("webhook-id")).toBe(`job_0_${NOW.getTime()}`);
  });

  test("an address that may not be reached, or a secret that cannot be read, is not tried again", async () => {
    const refused = async () => {
      throw new AppError("forbidden", "The address is private.");
    };
    expect(await answered(refused)).toMatchObject({ status: "failed", error: "The address is private." });
    const sealedSecret = await createKeyVault("another-secret-with-enough-characters").seal(secret);
    expect(await answered(answering(204), { sealedSecret })).toMatchObject({
      ...{ status: "failed", error: expect.stringContaining("set webhook_url anew") },
    });
  });
});
