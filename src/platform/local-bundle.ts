/**
 * The worker as one module, minified, without what nothing in it reaches: wrangler takes it from here, for development
 * as for deployment.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { CUTS, WITHOUT_SIDE_EFFECTS } from "./local-bundle-cuts.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** `main` of wrangler.toml. */
const OUTPUT = join(ROOT, "dist/edge/worker.js");

export interface WorkerBundle {
  code: string;
  /** The source map. */
  map: string;
  /** What it was made of, below the project's root. */
  inputs: string[];
  /** What it leaves to the runtime. */
  imports: string[];
}

/**
 * Writes it where wrangler looks for it. While wrangler watches the sources, a worker that does not build is one that
 * says so: wrangler would wait for good after a build that failed.
 */
export async function writeWorker(): Promise<void> {
  await mkdir(dirname(OUTPUT), { recursive: true });
  try {
    const { code, map } = await bundleWorker();
    await replace(`${OUTPUT}.map`, map);
    await replace(OUTPUT, code);
  } catch (error) {
    const words = `The worker does not build. ${(error as Error).message}\n`;
    process.stderr.write(words);
    if (process.env.WRANGLER_COMMAND === "dev") await replace(OUTPUT, sayingOnly(words));
    else process.exitCode = 1;
  }
}

function sayingOnly(words: string): string {
  return `export default { fetch: () => new Response(${JSON.stringify(words)}, { status: 500 }) };\n`;
}

/** In one step, since others may be reading it; not at all where nothing is new, since development would start anew. */
async function replace(path: string, text: string): Promise<void> {
  if ((await readFile(path, "utf8").catch(() => null)) === text) return;
  const next = `${path}.${process.pid}`;
  await writeFile(next, text);
  await rename(next, path);
}

/** Throws where the sources do not build, and where a cut does not fit its package any more. */
export async function bundleWorker(): Promise<WorkerBundle> {
  const made = new Set<string>();
  const { outputFiles, metafile } = await build({
    ...bundleOptions(made),
    entryPoints: ["src/entry/worker.ts"],
    outfile: OUTPUT,
    write: false,
    sourcemap: true,
    metafile: true,
  });
  const missed = Object.keys(CUTS).filter((module) => !made.has(module));
  if (missed.length > 0)
    throw new Error(`Nothing asks for ${missed.join(", ")}: take it out of local-bundle-cuts.ts.`);
  const text = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? "";
  const output = Object.values(metafile.outputs).find(({ entryPoint }) => entryPoint !== undefined);
  const inputs = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  return {
    code: text(".js"),
    map: text(".js.map"),
    inputs: inputs.map(([path]) => path),
    imports: (output?.imports ?? []).map(({ path }) => path),
  };
}

/** How a module becomes a part of the worker. The names of the cuts that are made go into `made`. */
export function bundleOptions(made = new Set<string>()) {
  return {
    absWorkingDir: ROOT,
    bundle: true,
    minify: true,
    logLevel: "silent",
    // As wrangler has them.
    format: "esm",
    target: "es2024",
    platform: "browser",
    conditions: ["workerd", "worker", "browser"],
    external: ["node:*", "cloudflare:*"],
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [cutting(made), shaking()],
  } satisfies BuildOptions;
}

function cutting(made: Set<string>): Plugin {
  return {
    name: "cuts",
    setup({ onLoad }) {
      onLoad({ filter: /node_modules/ }, async ({ path }) => {
        const module = below(path);
        const cut = CUTS[module];
        if (!cut) return undefined;
        made.add(module);
        try {
          return { contents: cut(await readFile(path, "utf8")) };
        } catch (error) {
          const reason = (error as Error).message;
          return { errors: [{ text: `The cut of ${module} in local-bundle-cuts.ts fails: ${reason}` }] };
        }
      });
    },
  };
}

/** esbuild drops a module that nobody uses only if its package lets it. */
function shaking(): Plugin {
  const resolving = Symbol("resolving");
  return {
    name: "shaking",
    setup({ onResolve, resolve }) {
      onResolve({ filter: /^\.\.?\// }, async ({ path, pluginData, importer, kind, resolveDir }) => {
        if (pluginData === resolving) return undefined;
        if (!WITHOUT_SIDE_EFFECTS.some((name) => below(importer).startsWith(`${name}/`))) return undefined;
        const found = await resolve(path, { importer, kind, resolveDir, pluginData: resolving });
        return { path: found.path, errors: found.errors, warnings: found.warnings, sideEffects: false };
      });
    },
  };
}

/** The path below the last node_modules in it. */
function below(path: string): string {
  return path.replaceAll("\\", "/").replace(/^.*\/node_modules\//, "");
}
