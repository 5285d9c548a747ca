/** The thread in which pages are read, one after the other: see local-html.ts. */
import { parentPort } from "node:worker_threads";
import { readPage } from "./html-page.ts";
import type { HtmlReport, HtmlTask } from "./local-html.ts";

parentPort?.on("message", ({ html, order }: HtmlTask) => {
  let report: HtmlReport;
  try {
    report = { page: readPage(html, order) };
  } catch {
    report = { page: null };
  }
  parentPort?.postMessage(report);
});
