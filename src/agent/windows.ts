/** How much each model can read. Tokens of input and output together, as the providers' model pages give them. */
import { matchGlob } from "../core/glob.ts";

export interface ModelWindow {
  glob: string;
  tokens: number;
}

/** First match wins. A model that is not here is not known: its history is never cut for it. */
const KNOWN: readonly ModelWindow[] = [
  { glob: "gpt-5*", tokens: 400_000 },
  { glob: "gpt-4.1*", tokens: 1_047_576 },
  { glob: "gpt-4o*", tokens: 128_000 },
  { glob: "gpt-4-turbo*", tokens: 128_000 },
  { glob: "gpt-3.5-turbo*", tokens: 16_385 },
  { glob: "o1*", tokens: 200_000 },
  { glob: "o3*", tokens: 200_000 },
  { glob: "o4*", tokens: 200_000 },
  { glob: "claude-*", tokens: 200_000 },
  { glob: "gemini-*", tokens: 1_048_576 },
  { glob: "llama-3.*", tokens: 131_072 },
  { glob: "openai/gpt-oss-*", tokens: 131_072 },
];

export function windowOf(model: string, configured: readonly ModelWindow[]): number | undefined {
  const matches = ({ glob }: ModelWindow) => matchGlob(glob, model);
  return (configured.find(matches) ?? KNOWN.find(matches))?.tokens;
}
