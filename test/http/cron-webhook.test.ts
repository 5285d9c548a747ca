/** A webhook's post over processes: one of them sends it, and what one could not send another does, with the same id. */
import { createHmac } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { GuardedFetch } from "../../src/core/fetch.ts";
import { MINUTE } from "../automation/records.ts";
import { type Cron, createCron, EVERY_MINUTE } from "./cron-service.ts";

let cron: Cron;
beforeEach(async () => {
  cron = await createCron();
});
afterEach(() => cron.close());

interface Post {
  headers: Headers;
  body: string;
}

/** As a receiver checks it that has nothing of ours but the secret. */
function isSigned(secret: string, { headers, body }: Post): boolean {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signed = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
  return (
    headers.get("webhook-signature") === `v1,${createHmac("sha256", key).update(signed).digest("base64")}`
  );
}

function receiver(status: () => number) {
  const posts: Post[] = [];
  const fetch: GuardedFetch = async (_url, init) => {
    posts.push({ headers: new Headers(init?.headers), body: String(init?.body) });
    return new Response(null, { status: status() });
  };
  return { posts, fetch };
}

const hooked = { ...EVERY_MINUTE, webhook_url: "https://example.com/hook", max_runs: 1 };

test("R3: what a process could not deliver before it was killed, the next one does, and nobody twice", async () => {
  let status = 503;
  const { posts, fetch } = receiver(() => status);
  await cron.serve([{ text: "the news" }], { fetch });
  const { job_id, webhook_secret } = await cron.create(hooked);
  await cron.tickAt(MINUTE);
  await cron.until(async () => (await cron.runsOf(job_id))[0]?.delivery?.last_status === 503);
  cron.service.kill();
  await cron.serve([], { fetch });
  const first = cron.service;
  await cron.serve([], { fetch });
  status = 204;
  cron.home.clock.now = new Date(cron.home.clock.now.getTime() + 5_000);
  await Promise.all([first, cron.service, first, cron.service].map((each) => each.services.tick()));
  await cron.until(async () => (await cron.runsOf(job_id))[0]?.delivery?.status === "delivered");
  expect(posts).toHaveLength(2);
  expect(new Set(posts.map(({ headers }) => headers.get("webhook-id"))).size).toBe(1);
  expect(posts.map((post) => isSigned(webhook_secret, post))).toEqual([true, true]);
  expect((await cron.runsOf(job_id))[0].delivery).toMatchObject({ attempts: 2, last_status: 204 });
});

test("tells what has become of the time, and no key or secret", async () => {
  const { posts, fetch } = receiver(() => 204);
  const api_key = "sk-of-my-own-0123456789abcdef";
  const fault = { code: "upstream_error" as const, message: "The model is out.", status: 500 };
  await cron.serve([{ fault }], { fetch });
  const { job_id, webhook_secret } = await cron.create({ ...hooked, api_key });
  await cron.tickAt(MINUTE);
  await cron.until(async () => (await cron.runsOf(job_id))[0]?.delivery?.status === "delivered");
  const [post] = posts as [Post];
  expect(JSON.parse(post.body)).toMatchObject({
    ...{ type: "job.failed", timestamp: expect.any(String) },
    data: { job_id, fate: "failed", reason: "The model is out.", trigger: "schedule", denied_tools: [] },
  });
  const sent = JSON.stringify([...post.headers]) + post.body;
  for (const secret of [api_key, webhook_secret, "whsec_"]) expect(sent).not.toContain(secret);
});
