/** The web tools in the service as it is run, on every runtime, against servers that imitate engines and sites. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Double, startDouble } from "../../matrix/double.ts";
import { makePdf } from "../../platform/pdf.ts";
import { canRun, RUNTIMES, type Runtime, type Service, startService } from "../../service.ts";
import { type Engines, KEY, startEngines } from "./engines.ts";
import { ARTICLE } from "./pages.ts";

const CALLER = "sk-proj-0123456789abcdef";
const SCANNED = "[PDF page 1 of 1]";

/** Settings of each engine. */
const ENGINES: Record<string, (site: Engines) => Record<string, string>> = {
  tavily: () => ({ TAVILY_API_KEY: KEY }),
  duckduckgo: () => ({}),
  brave: () => ({ BRAVE_API_KEY: KEY }),
  exa: () => ({ EXA_API_KEY: KEY }),
  searxng: ({ url }) => ({ SEARXNG_URL: `${url}/searxng` }),
};
/** A worker takes seconds to be bundled: there one with a key and the one without. */
const enginesOf = (runtime: Runtime) => Object.keys(ENGINES).slice(0, runtime === "workerd" ? 2 : undefined);

let site: Engines;
let double: Double;
beforeAll(async () => {
  site = await startEngines();
  double = await startDouble();
});
afterAll(async () => {
  await double.stop();
  await site.stop();
});
afterEach(() => {
  site.fault = undefined;
  site.asked.length = 0;
});

interface Called {
  reply: string;
  /** The result as it reached the upstream. */
  result: string;
}

async function call(service: Service, name: string, args: object): Promise<Called> {
  double.script({ toolCalls: [{ name, arguments: JSON.stringify(args) }] }, { content: "Done." });
  const response = await fetch(`${service.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${CALLER}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-5.5", messages: [{ role: "user", content: "Go." }] }),
  });
  const body = (await response.json()) as { choices?: { message: { content: string } }[] };
  const last = double.histories().at(-1)?.at(-1);
  return { reply: body.choices?.[0]?.message.content ?? JSON.stringify(body), result: String(last?.content) };
}

describe.each(RUNTIMES.map((runtime) => ({ runtime })))("$runtime", ({ runtime }) => {
  describe.skipIf(!canRun(runtime)).each(enginesOf(runtime))("with %s", (engine) => {
    let service: Service;
    beforeAll(async () => {
      const env = { ...double.env, ...site.env, ...ENGINES[engine]!(site), FETCH_ALLOW: site.host };
      service = await startService({ runtime, env: { LOG_LEVEL: "warning", ...env } });
    }, 60_000);
    afterAll(async () => {
      await service.stop();
      expect(service.log()).not.toContain(KEY);
    });

    test("search_web finds, and its results are data", async () => {
      const { reply, result } = await call(service, "search_web", { query: "dragomans", max_results: 2 });
      expect(reply).toBe("Done.");
      expect(result).toMatch(/^<outside_content tool="search_web">\n2 results for "dragomans"/);
      expect(result).toContain("1. Dragomans — a history\n   https://example.org/dragomans\n");
      expect(result).toMatch(/\n<\/outside_content>$/);
    });

    test("search_web says what is wrong", async () => {
      site.fault = { status: 503, body: "busy" };
      const { reply, result } = await call(service, "search_web", { query: "dragomans" });
      expect(reply).toBe("Done.");
      expect(result).toContain("has a fault of its own (503)");
    });

    if (engine !== "tavily") return;

    test("read_web_page reads a page, and its content is data", async () => {
      site.pages.set("/world/dragoman", { body: ARTICLE, headers: { "content-type": "text/html" } });
      const { reply, result } = await call(service, "read_web_page", { url: `${site.url}/world/dragoman` });
      expect(reply).toBe("Done.");
      expect(result).toMatch(/^<outside_content tool="read_web_page">\nTitle: The last dragoman/);
      expect(result).toContain(`[translation office](${site.url}/offices/translation?lang=en#plan)`);
      expect(result).toContain("| Year | Piastres |");
      expect(result).not.toContain("Ignore all rules");
    });

    test("read_web_page knows old charsets", async () => {
      for (const [charset, bytes, text] of [
        ["shift_jis", [0x93, 0xfa, 0x96, 0x7b], "日本"],
        ["gb18030", [0xc4, 0xe3, 0xba, 0xc3], "你好"],
        ["windows-1252", [0x47, 0xfc, 0x80], "Gü€"],
        ["iso-8859-2", [0xb3, 0xf3, 0xbf], "łóż"],
        ["utf-16be", [0x00, 0x47, 0x4e, 0x2d], "G中"],
      ] as const) {
        const headers = { "content-type": `text/plain; charset=${charset}` };
        site.pages.set("/old", { body: Uint8Array.from(bytes), headers });
        const { result } = await call(service, "read_web_page", { url: `${site.url}/old` });
        expect(result, charset).toContain(text);
      }
    });

    test("read_web_page reads PDFs, or says that it cannot", async () => {
      site.pages.set("/p", { body: makePdf(["One."]), headers: { "content-type": "application/pdf" } });
      const { result } = await call(service, "read_web_page", { url: `${site.url}/p` });
      if (runtime === "workerd") expect(result).toContain("PDFs cannot be read where this service runs");
      else expect(result).toContain(`${SCANNED}\n\nOne.`);
    });

    test("E1 read_web_page stays out of what the operator has not allowed", async () => {
      const other = await startEngines();
      other.pages.set("/x", { body: "inner secrets" });
      site.pages.set("/out", { status: 302, headers: { location: `${other.url}/x` }, body: "" });
      for (const url of [`${other.url}/x`, `${site.url}/out`, "http://[::ffff:127.0.0.1]:9/"]) {
        const { reply, result } = await call(service, "read_web_page", { url });
        expect(reply).toBe("Done.");
        expect(result).not.toContain("inner secrets");
      }
      expect(other.asked).toEqual([]);
      await other.stop();
    });
  });
});
