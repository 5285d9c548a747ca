/** The thread in which one PDF is read: see local-pdf.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { getDocumentProxy } from "unpdf";
import type { PdfText } from "../core/platform.ts";
import type { PdfOrder, PdfReport } from "./local-pdf.ts";

async function read({ bytes, limits }: PdfOrder): Promise<PdfText> {
  const document = await getDocumentProxy(bytes);
  const { info } = await document.getMetadata().catch(() => ({ info: {} }));
  const { Title: title } = info as { Title?: unknown };
  const texts: string[] = [];
  let chars = 0;
  for (let number = 1; number <= Math.min(document.numPages, limits.maxPages); number++) {
    const page = await document.getPage(number);
    const { items } = await page.getTextContent();
    const text = items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("");
    page.cleanup();
    texts.push(text);
    chars += text.length;
    if (chars >= limits.maxChars) break;
  }
  return { pages: document.numPages, texts, title: typeof title === "string" ? title : "" };
}

const report = await read(workerData as PdfOrder).then(
  (text): PdfReport => ({ text }),
  (error: unknown): PdfReport => ({
    problem: (error as Error)?.name === "PasswordException" ? "locked" : "unreadable",
  }),
);
parentPort?.postMessage(report);
