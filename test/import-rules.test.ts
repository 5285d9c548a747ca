/** The "Never" table of the architecture: which folder may import what. Reads the sources, so that a breach fails here. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, test } from "vitest";

const SRC = resolve(import.meta.dirname, "../src");

interface Import {
  file: string;
  specifier: string;
  typeOnly: boolean;
}

/** Folder -> the folders and files of src, and the packages, that its values may come from. */
const MAY: Record<string, { own: string[]; packages: RegExp }> = {
  core: { own: ["errors.ts"], packages: /^zod$/ },
  protocols: { own: ["core", "errors.ts"], packages: /^zod$/ },
  tools: {
    own: ["core", "errors.ts"],
    packages: /^(zod|re2js|htmlparser2|linkedom)$/,
  },
  mcp: {
    own: ["core", "errors.ts"],
    packages: /^(zod|@modelcontextprotocol\/sdk\/.*|@cfworker\/json-schema)$/,
  },
  knowledge: { own: ["core", "errors.ts"], packages: /^zod$/ },
  store: { own: ["core", "errors.ts"], packages: /^(drizzle-orm(\/.*)?|@libsql\/client\/web|zod)$/ },
  platform: {
    own: ["core", "errors.ts"],
    packages:
      /^(just-bash\/browser|@libsql\/client(\/web)?|libsql|@logtape\/logtape|unpdf|htmlparser2|linkedom|@mozilla\/readability|turndown|@anthropic-ai\/sandbox-runtime|hono|@hono\/node-server|esbuild)$/,
  },
  agent: { own: ["core", "errors.ts"], packages: /^$/ },
  automation: { own: ["core", "errors.ts", "agent"], packages: /^croner$/ },
  providers: {
    own: ["core", "errors.ts"],
    packages: /^(openai|groq-sdk|@anthropic-ai\/sdk|@google\/genai)(\/.*)?$/,
  },
  http: {
    own: ["core", "errors.ts", "agent", "protocols", "mcp", "knowledge"],
    packages: /^(hono(\/.*)?|zod)$/,
  },
  settings: { own: ["core"], packages: /^zod$/ },
  "services.ts": {
    own: [
      ...["core", "errors.ts", "config.ts", "agent", "providers", "tools", "mcp", "knowledge", "store"],
      ...["protocols", "platform", "automation", "services"],
    ],
    packages: /^$/,
  },
};
// Its parts may what it may.
MAY.services = MAY["services.ts"] as (typeof MAY)[string];

/** Only here may a host's own modules and globals be used. */
const HOST_FILES = /^(platform\/local[\w-]*\.ts|entry\/(node|bun|migrate)\.ts)$/;

function sources(folder = SRC): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? sources(path) : path.endsWith(".ts") ? [path] : [];
  });
}

function importsOf(path: string): Import[] {
  const code = readFileSync(path, "utf8");
  const file = relative(SRC, path);
  const found: Import[] = [];
  for (const [, kind, specifier] of code.matchAll(/^(?:import|export)\s+(type\s+)?[^;]*?from\s+"([^"]+)"/gm))
    found.push({ file, specifier: specifier as string, typeOnly: kind !== undefined });
  for (const [, specifier] of code.matchAll(/^import\s+"([^"]+)"/gm))
    found.push({ file, specifier: specifier as string, typeOnly: false });
  for (const [, specifier] of code.matchAll(/\bimport\(\s*"([^"]+)"/g))
    found.push({ file, specifier: specifier as string, typeOnly: false });
  return found;
}

/** `core/model.ts` -> `core`, `app.ts` -> `app.ts`. */
function area(path: string): string {
  return path.split("/")[0] as string;
}

function targetOf({ file, specifier }: Import): string {
  return relative(SRC, resolve(SRC, dirname(file), specifier));
}

const files = sources();
const imports = files.flatMap(importsOf);

describe("the Never table", () => {
  test("is read from real sources", () => {
    expect(files.length).toBeGreaterThan(40);
    expect(imports.length).toBeGreaterThan(100);
  });

  test.each(Object.keys(MAY))("%s imports only what it may", (folder) => {
    const may = MAY[folder] as (typeof MAY)[string];
    const breaches = imports.filter((entry) => {
      if (area(entry.file) !== folder) return false;
      if (!entry.specifier.startsWith(".")) {
        if (entry.specifier.startsWith("node:")) return !HOST_FILES.test(entry.file);
        return !may.packages.test(entry.specifier);
      }
      const target = area(targetOf(entry));
      if (target === folder || may.own.includes(target)) return false;
      // Types vanish: the composition root's and the settings' may be named where they are handed in.
      return !(entry.typeOnly && ["services.ts", "config.ts", "settings.ts"].includes(target));
    });
    expect(breaches).toEqual([]);
  });

  test("protocols and providers never see each other, not even by type", () => {
    const pairs = imports.filter(
      (entry) =>
        entry.specifier.startsWith(".") &&
        [area(entry.file), area(targetOf(entry))].sort().join() === "protocols,providers",
    );
    expect(pairs).toEqual([]);
  });

  test("host modules and globals stay in platform/local and the entries", () => {
    const modules = imports.filter((i) => i.specifier.startsWith("node:") && !HOST_FILES.test(i.file));
    expect(modules).toEqual([]);
    const globals = files.filter((path) => {
      const file = relative(SRC, path);
      if (HOST_FILES.test(file)) return false;
      const code = readFileSync(path, "utf8").replace(
        /\/\*[\s\S]*?\*\/|\/\/.*$|"(?:[^"\\\n]|\\.)*"|`[^`]*`/gm,
        "",
      );
      return /\b(process|Bun|Buffer|__dirname)\b\s*[.[(]/.test(code);
    });
    expect(globals.map((path) => relative(SRC, path))).toEqual([]);
  });

  test("vendor SDKs are imported by providers alone, drizzle by the store alone", () => {
    const vendors = imports.filter(
      (i) =>
        /^(openai|groq-sdk|@anthropic-ai\/sdk|@google\/genai)/.test(i.specifier) &&
        area(i.file) !== "providers",
    );
    const drizzle = imports.filter((i) => i.specifier.startsWith("drizzle") && area(i.file) !== "store");
    expect([...vendors, ...drizzle]).toEqual([]);
  });
});

/** E1: addresses there may come from callers, pages and models. */
describe("the guarded fetch is the only way out of", () => {
  const FOLDERS = ["tools", "mcp", "knowledge", "agent", "automation", "http"];
  const code = (path: string) => readFileSync(path, "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
  const guarded = files.filter(
    (path) => FOLDERS.includes(area(relative(SRC, path))) && !path.endsWith("http/docs-script.ts"),
  );

  // Biome knows a parameter named fetch from the global. That its rule holds where it should is tried on breaches.
  test(`${FOLDERS.join(", ")}: the linter sees a bare fetch, and none around it`, () => {
    const folder = mkdtempSync(join(tmpdir(), "dragoman-lint-"));
    try {
      const { $schema: _, ...settings } = JSON.parse(readFileSync(resolve(SRC, "../biome.json"), "utf8"));
      writeFileSync(join(folder, "biome.json"), JSON.stringify({ ...settings, vcs: { enabled: false } }));
      for (const name of [...FOLDERS, "platform"]) {
        mkdirSync(join(folder, "src", name, "inner"), { recursive: true });
        writeFileSync(
          join(folder, "src", name, "inner/call.ts"),
          'export const call = () => fetch("http://a");',
        );
        writeFileSync(join(folder, "src", name, "value.ts"), "export const value = { fetch };");
        writeFileSync(join(folder, "src", name, "own.ts"), "export const own = (fetch: () => 1) => fetch();");
      }
      const biome = resolve(SRC, "../node_modules/@biomejs/biome/bin/biome");
      const args = ["lint", "--reporter=github", "src"];
      const { stdout } = spawnSync(process.execPath, [biome, ...args], { cwd: folder, encoding: "utf8" });
      const breaches = [...stdout.matchAll(/noRestrictedGlobals,file=.*?src\/([\w/.]+),/g)].map(
        ([, path]) => path,
      );
      expect(breaches.sort()).toEqual(
        FOLDERS.flatMap((name) => [`${name}/inner/call.ts`, `${name}/value.ts`]).sort(),
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("nobody goes around by the name of the global object, or switches the rule off", () => {
    const around = /\b(globalThis|self|window)\b[^;\n]{0,40}\bfetch\b/;
    const breaches = guarded.filter((path) => {
      const text = readFileSync(path, "utf8");
      return around.test(code(path)) || text.includes("noRestrictedGlobals");
    });
    expect(breaches.map((path) => relative(SRC, path))).toEqual([]);
  });

  test("the MCP SDK, whose transports would take the global one", () => {
    const module = /sdk\/client\/(streamableHttp|sse|auth)\.js$/;
    const use = /\bnew \w+ClientTransport\(|\b(auth|discoverOAuth\w+|(register|exchange|refresh)[A-Z]\w+)\(/;
    const users = new Set(imports.filter(({ specifier }) => module.test(specifier)).map(({ file }) => file));
    const texts = [...users].map((file) => ({ file, text: code(join(SRC, file)) }));
    const network = texts.filter(({ text }) => use.test(text));
    expect(network).not.toEqual([]);
    const breaches = network.filter(({ text }) => !/\bfetch(Fn)?\s*[:,}]/.test(text)).map(({ file }) => file);
    expect(breaches).toEqual([]);
  });
});
