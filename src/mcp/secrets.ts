/** What servers get that nobody else may read: sealed where it is kept, known to the log once it is open (K2). */
import type { McpSecrets, McpServer } from "../core/mcp.ts";
import type { Redaction } from "../core/redaction.ts";
import { AppError } from "../errors.ts";

export interface Vault {
  seal(text: string): Promise<string>;
  /** null when it was sealed under another secret, or is damaged. */
  open(sealed: string): Promise<string | null>;
}

const NONE: McpSecrets = { env: {}, headers: {} };

export class SecretBox {
  readonly #vault: Vault | undefined;
  readonly #redaction: Redaction | undefined;

  /** `vault`: absent where the service has no secret. */
  constructor(vault: Vault | undefined, redaction: Redaction | undefined) {
    this.#vault = vault;
    this.#redaction = redaction;
  }

  /** null where there is nothing to hide. Throws AppError `unavailable` where nothing can be hidden. */
  async seal(secrets: McpSecrets): Promise<string | null> {
    this.#hold(secrets);
    if (Object.keys(secrets.env).length === 0 && Object.keys(secrets.headers).length === 0) return null;
    if (!this.#vault)
      throw new AppError(
        "unavailable",
        "env and headers cannot be kept safely: set SECRET_KEY on the server.",
      );
    return this.#vault.seal(JSON.stringify(secrets));
  }

  /** Throws AppError `unavailable` where they cannot be read any more. */
  async open({ sealed, id }: McpServer): Promise<McpSecrets> {
    if (sealed === null) return NONE;
    const text = await this.#vault?.open(sealed);
    if (!text)
      throw new AppError(
        "unavailable",
        `The env and headers of ${id} cannot be read any more: the service's secret has changed. Connect it again with them.`,
      );
    const secrets = JSON.parse(text) as McpSecrets;
    this.#hold(secrets);
    return secrets;
  }

  /** The names alone; none where they cannot be read any more. */
  async names(server: McpServer): Promise<{ env: string[]; headers: string[] }> {
    const { env, headers } = await this.open(server).catch(() => NONE);
    return { env: Object.keys(env), headers: Object.keys(headers) };
  }

  #hold(secrets: McpSecrets): void {
    for (const word of secretWords(secrets)) this.#redaction?.hold(word);
  }
}

/** `Bearer …` and its like are secret in their second word; where something is, in none. */
export function secretWords({ env, headers }: McpSecrets): string[] {
  return [...Object.values(env), ...Object.values(headers)]
    .flatMap((value) => value.split(/\s+/))
    .filter((word) => !isPlace(word));
}

/** A path, or an address without user and query. */
const PLACE = /^(?:~?\/|\.{1,2}\/|[A-Za-z]:[\\/]|https?:\/\/)[^@?#]*$/;
/** What nobody would take for a key: a word, or too short for one. */
const WORD = /^(?:[A-Z]?[a-z]*|.{0,11})$/;

/**
 * The folder or the site that a server works with is in all that it answers, and cut out of it the answers would be of no use.
 * Addresses that are secrets themselves have long parts that are no words.
 */
function isPlace(word: string): boolean {
  return PLACE.test(word) && word.split(/[^A-Za-z0-9+]+/).every((part) => WORD.test(part));
}
