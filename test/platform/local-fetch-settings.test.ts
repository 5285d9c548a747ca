/** E1, P4: the way out of the platform as the settings make it: FETCH_ALLOW opens it, and never to the service itself. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalPlatform, type Local } from "../../src/platform/local.ts";
import { service } from "../../src/service.ts";
import { startWebServer, type WebServer } from "../web-server.ts";

let web: WebServer;
let folder: string;
let local: Local;

beforeAll(async () => {
  web = await startWebServer();
  folder = await mkdtemp(join(tmpdir(), "dragoman-fetch-"));
  const env = {
    ...{ PORT: "0", LOG_LEVEL: "silent", FETCH_ALLOW: `127.0.0.1:${web.port}` },
    ...{ DATA_DIR: join(folder, "data"), WORKSPACE: join(folder, "workspace") },
  };
  local = await createLocalPlatform(service.parseConfig(env, { runtime: "node" }), service);
});
afterAll(async () => {
  await local.close(0);
  await web[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

test("what is allowed is reached until it is the service's own port", async () => {
  const { fetch } = local.platform;
  expect(await (await fetch(`${web.url}/text`)).text()).toBe("hello");
  await expect(fetch("http://127.0.0.1:1/")).rejects.toMatchObject({ code: "forbidden" });
  local.listens(web.port);
  for (const trusted of [false, true])
    await expect(fetch(`${web.url}/text`, { trusted })).rejects.toThrow("is the service itself");
});
