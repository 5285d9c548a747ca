/**
 * Tells which elements of a page a reader does not see: attributes, styles of their own, and plain rules of the page's own
 * style sheets. Sheets in other files, and what scripts do, are not looked at.
 */

export type Hiding = (tag: string, attributes: Record<string, string>) => boolean;

const MAX_STYLE_CHARS = 500_000;
/** `.name`, `#name` or either behind a tag name: what can be told from the element alone. */
const PLAIN_SELECTOR = /^(?:[a-z][a-z0-9]*)?([.#])([\w-]+)$/i;

/** Declarations that leave nothing to see. */
const UNSEEN: readonly RegExp[] = [
  /(?:^|;)display:none/,
  /(?:^|;)visibility:(?:hidden|collapse)/,
  /(?:^|;)opacity:0*(?:\.0+)?(?:%|;|!|$)/,
  /(?:^|;)font-size:(?:0*(?:\.0\d*)?|1px)(?:px|pt|em|rem|%|vw|vh)?(?:;|!|$)/,
  /(?:^|;)(?:left|right|top|bottom|text-indent|margin-left|margin-top):-\d{3,}/,
  /(?:^|;)(?:left|top):\d{5,}/,
  /(?:^|;)(?:clip:rect\(0|clip:rect\(1px|clip-path:(?:inset\((?:50|100)%|circle\(0))/,
  /(?:^|;)transform:scale\(0\)/,
  /(?:^|;)color:(?:transparent|rgba\([^)]*,0?(?:\.0+)?\)|#[0-9a-f]{6}00)/,
];
const TINY = /(?:^|;)(?:max-)?(?:height|width):[01](?:px)?(?:;|!|$)/;

export function createHiding(html: string): Hiding {
  const { classes, ids } = hiddenBySheets(html);
  return (tag, attributes) => {
    if (attributes.hidden !== undefined && attributes.hidden !== "until-found") return true;
    if (attributes["aria-hidden"]?.toLowerCase() === "true" && tag !== "body") return true;
    if (tag === "dialog" && attributes.open === undefined) return true;
    if (attributes.style !== undefined && isUnseen(attributes.style)) return true;
    if (ids.size > 0 && attributes.id !== undefined && ids.has(attributes.id)) return true;
    if (classes.size === 0 || attributes.class === undefined) return false;
    return attributes.class.split(/\s+/).some((name) => classes.has(name));
  };
}

function hiddenBySheets(html: string): { classes: Set<string>; ids: Set<string> } {
  const classes = new Set<string>();
  const ids = new Set<string>();
  const css = withoutBlocks(sheetsOf(html));
  for (let at = 0; ; ) {
    const open = css.indexOf("{", at);
    const close = css.indexOf("}", open);
    if (open === -1 || close === -1) break;
    if (isUnseen(css.slice(open + 1, close))) {
      for (const selector of css.slice(at, open).split(",")) {
        const [, kind, name] = PLAIN_SELECTOR.exec(selector.trim()) ?? [];
        if (name !== undefined) (kind === "." ? classes : ids).add(name);
      }
    }
    at = close + 1;
  }
  return { classes, ids };
}

/** All style sheets in the page, one behind the other. */
function sheetsOf(html: string): string {
  const tag = /<(\/?)style\b/gi;
  const sheets: string[] = [];
  let chars = 0;
  let start = -1;
  for (let found = tag.exec(html); found && chars < MAX_STYLE_CHARS; found = tag.exec(html)) {
    const [, isEnd] = found;
    if (!isEnd && start === -1) {
      const end = html.indexOf(">", tag.lastIndex);
      if (end === -1) break;
      start = tag.lastIndex = end + 1;
    } else if (isEnd && start !== -1) {
      sheets.push(html.slice(start, found.index));
      chars += found.index - start;
      start = -1;
    }
  }
  return sheets.join("\n").slice(0, MAX_STYLE_CHARS);
}

/** Without comments, and without what holds on some screens only: `@media … { … }`. */
function withoutBlocks(css: string): string {
  let out = "";
  let depth = 0;
  let atRule = 0;
  for (let i = 0; i < css.length; i++) {
    const c = css[i]!;
    if (c === "/" && css[i + 1] === "*") {
      const end = css.indexOf("*/", i + 2);
      if (end === -1) break;
      i = end + 1;
      continue;
    }
    if (c === "@" && atRule === 0) atRule = depth + 1;
    if (atRule === 0) out += c;
    if (c === "{") depth++;
    else if (c === "}") depth = Math.max(0, depth - 1);
    if (atRule > 0 && ((c === ";" && depth < atRule) || (c === "}" && depth < atRule))) atRule = 0;
  }
  return out;
}

function isUnseen(style: string): boolean {
  const plain = style.slice(0, 2_000).toLowerCase().replaceAll(/\s+/g, "");
  if (UNSEEN.some((pattern) => pattern.test(plain))) return true;
  return plain.includes("overflow:hidden") && TINY.test(plain);
}
