/** What the agent of the demo is asked to do, and the model that plays it: scripted, but for what the tools return. */
import { type ChatCompletionRequest, type FixtureResponse, LLMock } from "@copilotkit/aimock";

export interface Task {
  file: string;
  /** What the user asks. */
  ask: string;
  /** What the model says before it acts. */
  plan: string;
  /** The script that it writes: plain enough for every shell, the virtual one of the edge included. */
  content: string;
  command: string;
  /** What the script has to print, worked out here without a shell. */
  expected: string;
}

const LIMIT = 40;
const primes = Array.from({ length: LIMIT - 2 }, (_, i) => i + 2).filter((n) => {
  for (let d = 2; d * d <= n; d++) if (n % d === 0) return false;
  return true;
});

const STEPS = 12;
const fibonacci = [0, 1];
while (fibonacci.length < STEPS) fibonacci.push((fibonacci.at(-1) ?? 0) + (fibonacci.at(-2) ?? 0));

export const PRIMES: Task = {
  file: "primes.sh",
  ask: `Write a shell script that prints the primes below ${LIMIT}, run it, and tell me what it printed.`,
  plan: "I will write the script first, then run it.",
  content: `n=2
found=0
while [ $n -lt ${LIMIT} ]; do
  d=2
  while [ $((d * d)) -le $n ] && [ $((n % d)) -ne 0 ]; do
    d=$((d + 1))
  done
  if [ $((d * d)) -gt $n ]; then
    echo "prime $n"
    found=$((found + 1))
  fi
  n=$((n + 1))
done
echo "$found primes below ${LIMIT}"
`,
  command: "bash primes.sh",
  expected: [...primes.map((n) => `prime ${n}`), `${primes.length} primes below ${LIMIT}`].join("\n"),
};

export const FIBONACCI: Task = {
  file: "fibonacci.sh",
  ask: `Now the first ${STEPS} Fibonacci numbers, each with its position, the same way.`,
  plan: "The same again: a script, a run, and a look at its output.",
  content: `a=0
b=1
i=1
while [ $i -le ${STEPS} ]; do
  echo "$i: $a"
  sum=$((a + b))
  a=$b
  b=$sum
  i=$((i + 1))
done
`,
  command: "bash fibonacci.sh",
  expected: fibonacci.map((value, i) => `${i + 1}: ${value}`).join("\n"),
};

const TASKS = [PRIMES, FIBONACCI];

/** About the pace at which one reads along: milliseconds to the first token, tokens a second, share of chance. */
const PACE = { ttft: 350, tps: 45, jitter: 0.4 };
const TOKEN_CHARS = 5;

/** The model server, on a port of its own. */
export async function startModel(): Promise<{ url: string; stop(): Promise<void> }> {
  const mock = new LLMock({ port: 0, logLevel: "silent", chunkSize: TOKEN_CHARS });
  mock.on({ predicate: () => true }, reply, { streamingProfile: PACE });
  return { url: await mock.start(), stop: () => mock.stop() };
}

/** The next move follows from what the last one came to, as it stands in the request. */
function reply({ messages }: ChatCompletionRequest): FixtureResponse {
  const asked = textOf(messages.findLast((message) => message.role === "user")?.content);
  const task = TASKS.find(({ ask }) => asked.includes(ask));
  if (!task) return { content: "I know two tasks only, and this is neither." };
  const { file, content, command, plan } = task;
  const last = messages.at(-1);
  if (last?.role !== "tool")
    return { content: plan, toolCalls: [call("create_file", { path: file, content })] };
  const result = textOf(last.content);
  if (result.includes(file)) return { content: "", toolCalls: [call("run_terminal_command", { command })] };
  const [status = "", ...output] = result.split("\n");
  return {
    content: `Done. ${file} is in the workspace; \`${command}\` ended with "${status}" and printed:\n\n${output.join("\n").trim()}\n`,
  };
}

function call(name: string, args: Record<string, string>) {
  return { name, arguments: JSON.stringify(args) };
}

function textOf(content: ChatCompletionRequest["messages"][number]["content"] | undefined): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? "").join("");
}
