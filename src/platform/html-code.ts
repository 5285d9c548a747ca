/** Listings: their language, and a fence that they do not close. */

const NAMED = /(?:^|\s)(?:language-|lang-|highlight-(?:source-)?|brush:\s?)([a-z][\w+#.-]{0,20})/i;

/** Which language an element says that its code is in, by its attributes; "" where it says none. */
export function languageIn(attribute: (name: string) => string | null): string {
  const language =
    attribute("data-lang") ?? attribute("data-language") ?? NAMED.exec(attribute("class") ?? "")?.[1];
  return language && /^[\w+#.-]{1,20}$/.test(language) ? language.toLowerCase() : "";
}

/** As the listing says, or what is right around it. */
export function languageOf(pre: Element): string {
  const around = [pre, pre.parentElement, pre.parentElement?.parentElement];
  for (const element of around) {
    const language = element && languageIn((name) => element.getAttribute(name));
    if (language) return language;
  }
  return "";
}

export function fenced(code: string, language: string): string {
  let marks = 3;
  for (const [run] of code.matchAll(/`{3,}/g)) marks = Math.max(marks, run.length + 1);
  const fence = "`".repeat(marks);
  return `${fence}${language}\n${code}\n${fence}`;
}
