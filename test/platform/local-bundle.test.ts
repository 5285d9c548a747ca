/** What is uploaded: its size, what it holds, and that what was cut out of the SDKs is not missed. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { beforeAll, describe, expect, test } from "vitest";
import { bundleOptions, bundleWorker, type WorkerBundle } from "../../src/platform/local-bundle.ts";
import { CUTS } from "../../src/platform/local-bundle-cuts.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** Bytes, compressed. */
const LIMIT = 1_000_000;

describe("the bundle of the worker", () => {
  let worker: WorkerBundle;

  beforeAll(async () => {
    worker = await bundleWorker();
  });

  test("is small enough", () => {
    expect(gzipSync(worker.code).length).toBeLessThan(LIMIT);
  });

  test("asks the runtime for nothing that Workers do not have", () => {
    expect([...new Set(worker.imports)].sort()).toEqual(["cloudflare:workers", "node:zlib"]);
  });

  test("holds none of what is for machines, or has another in its place", () => {
    const packages =
      /node_modules\/(ajv|ajv-formats|@mixmark-io\/domino|defuddle|unpdf|libsql|drizzle-orm|@hono\/node-server|@anthropic-ai\/sandbox-runtime)\//;
    const own = /^src\/(platform\/local[\w-]*|entry\/(?!worker\.)[\w-]+)\.ts$/;
    expect(worker.inputs).toContain("src/platform/worker.ts");
    expect(worker.inputs).toContain("node_modules/just-bash/dist/bundle/browser.js");
    expect(worker.inputs.filter((path) => packages.test(path) || own.test(path))).toEqual([]);
  });

  test("holds each package once", () => {
    const homes = new Map<string, Set<string>>();
    for (const path of worker.inputs) {
      const [, home, name] = /^(.*node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(path) ?? [];
      if (home && name) homes.set(name, (homes.get(name) ?? new Set()).add(home));
    }
    expect(homes.size).toBeGreaterThan(20);
    expect([...homes.values()].filter((folders) => folders.size > 1)).toEqual([]);
  });
});

describe("cuts", () => {
  test.each(Object.keys(CUTS))("%s: another text than the one it was written for is refused", (module) => {
    expect(() => CUTS[module]?.("export class OtherThings {}\n")).toThrow();
  });

  test("take away nothing that the providers call", async () => {
    const folder = join(ROOT, "src/providers");
    const called = new Set<string>();
    for (const name of await readdir(folder)) {
      const code = await readFile(join(folder, name), "utf8");
      if (!/from "(openai|@google\/genai\/web)"/.test(code)) continue;
      for (const [, resource] of code.matchAll(/\bclient\.(\w+)\b/g)) called.add(resource as string);
    }
    expect([...called].sort()).toEqual(["embeddings", "models"]);
  });

  test("leave clients that embed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "dragoman-bundle-"));
    try {
      const outfile = join(folder, "embeddings.mjs");
      await build({ ...bundleOptions(), entryPoints: ["src/providers/embeddings.ts"], outfile });
      const { createEmbedder } = (await import(
        /* @vite-ignore */ pathToFileURL(outfile).href
      )) as typeof import("../../src/providers/embeddings.ts");
      const asked: string[] = [];
      const answer = (body: object) => async (url: string | URL | Request) => {
        asked.push(String(url));
        return Response.json(body);
      };
      const bodies = {
        openai: { data: [{ index: 0, embedding: [1, 2] }] },
        gemini: { embeddings: [{ values: [1, 2] }] },
      };
      for (const provider of ["openai", "gemini"] as const) {
        const embedder = createEmbedder({
          ...{ provider, model: "small", key: "a-key", retries: 0, baseUrl: "https://models.test/v1" },
          fetch: answer(bodies[provider]),
        });
        const vectors = await embedder.embed(["text"], "query", AbortSignal.timeout(5_000));
        expect(vectors).toEqual([Float32Array.of(1, 2)]);
      }
      expect(asked).toEqual([
        "https://models.test/v1/embeddings",
        "https://models.test/v1/models/small:batchEmbedContents",
      ]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
