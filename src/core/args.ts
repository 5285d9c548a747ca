/** The arguments of a call: text as the model wrote it, read as the object that a tool is given. Pure. */

/** Objects and arrays inside one another; deeper ones parse, but no runtime writes them out again. */
export const DEPTH_LIMIT = 64;

/** The object that the text is; the empty one for no text; null when it is anything else or nested beyond reason. */
export function toArgs(text: string): Record<string, unknown> | null {
  if (text.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  return isTooDeep(value) ? null : (value as Record<string, unknown>);
}

export function isTooDeep(value: unknown): boolean {
  return isDeeper(value, DEPTH_LIMIT);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const inner of Object.values(value)) if (isDeeper(inner, levels - 1)) return true;
  return false;
}
