/** What is used of turndown, which brings no types of its own. */
declare module "turndown" {
  export interface Rule {
    filter: string | string[] | ((node: HTMLElement) => boolean);
    replacement(content: string, node: HTMLElement): string;
  }
  export default class TurndownService {
    constructor(options: Record<string, string>);
    addRule(name: string, rule: Rule): this;
    escape(text: string): string;
    turndown(root: Node): string;
  }
}
