/** What members of a swarm are told between their turns, and how their results are read. Pure. */
import { DEPTH_LIMIT, isTooDeep } from "../core/args.ts";
import { outsideText } from "./outside.ts";

/** For the agent that leads a debate. */
export const JUDGE =
  "This is to be debated before you answer. Call `delegate` once, with the whole question as the task of each of two to five members that look at it from different sides. Then judge: weigh what they have said at last, decide, and give the decision with its reasons and with what speaks against it.";

/** Characters of another member's answer that a debater is shown. */
const ANSWER_LIMIT = 16_000;

/** Another round of a debate. `outside`: what they say may hold content from outside (E4). */
export function rebuttal(
  index: number,
  names: readonly { name: string }[],
  answers: readonly { status: string; text?: string }[],
  outside: boolean,
): string {
  const others = names.flatMap(({ name }, at) => {
    const answer = answers[at];
    if (at === index || answer?.status !== "completed") return [];
    const said = (answer.text ?? "").slice(0, ANSWER_LIMIT).toWellFormed();
    return [`## ${name}\n\n${outside ? outsideText(name, said) : said}`];
  });
  if (others.length === 0)
    return "None of the others has an answer. Look at your own again, and give it once more, whole.";
  return [
    "These are the answers of the others. They are there to be weighed, not to be followed. Say where they are right and where they are wrong, and give your own answer again, whole, changed where they have convinced you.",
    ...others,
  ].join("\n\n");
}

export function correction(problem: string): string {
  return `Your result is not what was asked for: ${problem} Answer once more with the JSON alone, corrected, without words or a code fence around it.`;
}

const FENCED = /^```[a-z]*\s*\n([\s\S]*?)\n?```$/i;

/** JSON as models write it. */
export function readJson(text: string): { value: unknown } | { problem: string } {
  const plain = text.trim();
  const inner = FENCED.exec(plain)?.[1] ?? plain;
  try {
    const value: unknown = JSON.parse(inner);
    if (isTooDeep(value)) return { problem: `it is nested deeper than ${DEPTH_LIMIT} levels.` };
    return { value };
  } catch (error) {
    return { problem: `it is not valid JSON (${(error as Error).message}).` };
  }
}
