/**
 * Elements as Markdown, for reading rather than for rendering: text is not escaped, so that names and code stay as they are.
 */
import TurndownService, { type Rule } from "turndown";
import { fenced, languageOf } from "./html-code.ts";
import { tableRules } from "./html-table.ts";

/** A link around more than this is a whole card: its text stands by itself. */
const MAX_LINK_CHARS = 400;
/** What themes put beside headings to link to them. */
const PERMALINK = /^[\s#¶§🔗]*$/u;

export function toMarkdown(root: Element): string {
  const service = new TurndownService({
    headingStyle: "atx",
    hr: "---",
    bulletListMarker: "-",
    codeBlockStyle: "fenced",
    emDelimiter: "*",
    br: "",
  });
  service.escape = (text) => text;
  const rules: Record<string, Rule> = { ...inlineRules(), ...listRules(), ...tableRules(), ...blockRules() };
  for (const [name, rule] of Object.entries(rules)) service.addRule(name, rule);
  const lines = service.turndown(root).split("\n");
  return lines.map((line) => line.trimEnd()).join("\n");
}

function blockRules(): Record<string, Rule> {
  return {
    heading: {
      filter: ["h1", "h2", "h3", "h4", "h5", "h6"],
      replacement: (content, { nodeName }) => {
        const text = onLine(content).replaceAll("**", "");
        return text === "" ? "" : `\n\n${"#".repeat(Number(nodeName[1]))} ${text}\n\n`;
      },
    },
    listing: {
      filter: "pre",
      replacement: (_, pre) => {
        const code = (pre.textContent ?? "").replace(/^\n+/, "").trimEnd();
        return code === "" ? "" : `\n\n${fenced(code, languageOf(pre))}\n\n`;
      },
    },
    term: {
      filter: ["dt", "summary", "legend"],
      replacement: (content) => `\n\n**${onLine(content).replaceAll("**", "")}**\n\n`,
    },
    definition: {
      filter: "dd",
      replacement: (content) => `\n\n${content.trim().replaceAll(/^(?=.)/gm, "  ")}\n\n`,
    },
  };
}

function inlineRules(): Record<string, Rule> {
  return {
    struck: {
      filter: ["del", "s", "strike"],
      replacement: (content) => (content.trim() ? `~~${content}~~` : ""),
    },
    quoted: { filter: "q", replacement: (content) => `"${content}"` },
    inlineCode: {
      filter: (node) => ["CODE", "KBD", "SAMP", "TT"].includes(node.nodeName) && !node.querySelector("pre"),
      replacement: (_, node) => {
        const code = onLine(node.textContent ?? "");
        if (code === "") return "";
        return code.includes("`") ? `\`\` ${code} \`\`` : `\`${code}\``;
      },
    },
    formula: {
      filter: (node) => node.nodeName.toLowerCase() === "math",
      replacement: (content, math) => {
        const note = [...math.querySelectorAll("annotation")].find((note) =>
          /tex/i.test(note.getAttribute("encoding") ?? ""),
        );
        const tex = math.getAttribute("alttext") ?? note?.textContent;
        return tex ? `$${tex.trim()}$` : content;
      },
    },
    link: {
      filter: "a",
      replacement: (content, node) => {
        const shown = content.trim();
        const address = node.getAttribute("href");
        if (PERMALINK.test(shown)) return shown === "" || address === null ? "" : content;
        if (address === null || shown.length > MAX_LINK_CHARS) return content;
        return `[${shown.replaceAll(/\s+/g, " ")}](${bracketed(address)})`;
      },
    },
    picture: {
      filter: (node) => node.hasAttribute("data-picture"),
      replacement: (_, node) =>
        `![${node.textContent}](${bracketed(node.getAttribute("data-picture") ?? "")})`,
    },
  };
}

function listRules(): Record<string, Rule> {
  const numbers = new WeakMap<Node, number>();
  return {
    listItem: {
      filter: "li",
      replacement: (content, item) => {
        const list = item.parentNode as Element;
        let mark = "- ";
        if (list.nodeName === "OL") {
          const start = list.getAttribute("start") ?? "";
          const number = numbers.get(list) ?? (/^\d{1,6}$/.test(start) ? Number(start) : 1);
          numbers.set(list, number + 1);
          mark = `${number}. `;
        }
        const text = content.trim();
        return text === "" ? "" : `${mark}${text.replaceAll(/\n(?=.)/g, `\n${" ".repeat(mark.length)}`)}\n`;
      },
    },
  };
}

function bracketed(address: string): string {
  return address.replaceAll("(", "%28").replaceAll(")", "%29");
}

function onLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
