/**
 * `npm run demo [-- --runtime node|bun|edge]`: the service with a scripted model behind it, and the official SDKs in front.
 * No key, no network; everything between the two is real, and is checked at the end.
 */
import { parseArgs } from "node:util";
import { canRun, type Service, startService } from "../service.ts";
import { askAnthropic, askOpenAI } from "./clients.ts";
import { Screen } from "./screen.ts";
import { FIBONACCI, PRIMES, startModel, type Task } from "./tasks.ts";

const RUNTIMES = { node: "node", bun: "bun", edge: "workerd" } as const;
const WHERE = {
  node: "Node, with this machine's shell",
  bun: "Bun, with this machine's shell",
  edge: "workerd, with a virtual shell",
} as const;

interface Part {
  title: string;
  task: Task;
  ask: (url: string, ask: string, screen: Screen) => Promise<string>;
}

const PARTS: Part[] = [
  { title: "OpenAI SDK → /v1/chat/completions", task: PRIMES, ask: askOpenAI },
  { title: "Anthropic SDK → /v1/messages", task: FIBONACCI, ask: askAnthropic },
];

/** What a shell says of a program that was interrupted. */
const INTERRUPTED = 130;

const { values } = parseArgs({ options: { runtime: { type: "string", default: "node" } } });
const name = values.runtime as keyof typeof RUNTIMES;
const screen = new Screen();
process.exitCode = (await demo()) ? 0 : 1;

async function demo(): Promise<boolean> {
  const runtime = RUNTIMES[name];
  if (runtime === undefined || !canRun(runtime)) {
    screen.say(
      runtime
        ? "There is no sqld for this platform, which the edge needs."
        : "--runtime has to be node, bun or edge.",
    );
    return false;
  }
  screen.say("Two official SDKs talk to an agent that writes a script, runs it and reports.", "bold");
  screen.say(`Only the model is scripted: no key, no network. On ${WHERE[name]}.`);
  const model = await startModel();
  let service: Service | undefined;
  const leave = async (): Promise<void> => {
    await service?.stop();
    await model.stop();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void leave().finally(() => process.exit(INTERRUPTED)));
  try {
    service = await startService({
      runtime,
      env: { APPROVAL: "auto", OPENAI_BASE_URL: `${model.url}/v1`, ANTHROPIC_BASE_URL: model.url },
    });
    const replies: (string | null)[] = [];
    for (const part of PARTS) replies.push(await show(part, service.url));
    const good = await check(service, replies);
    if (!good) screen.say(`\nWhat the service logged:\n${service.log()}`);
    return good;
  } finally {
    await leave();
  }
}

/** null when the SDK ended with an error. */
async function show({ title, task, ask }: Part, url: string): Promise<string | null> {
  screen.heading(title);
  screen.say(`> ${task.ask}`, "cyan");
  try {
    const reply = await ask(url, task.ask, screen);
    screen.endLine();
    return reply;
  } catch (error) {
    screen.say(String(error), "red");
    return null;
  }
}

async function check(service: Service, replies: (string | null)[]): Promise<boolean> {
  screen.heading("Checked");
  let good = true;
  const checked = (what: string, ok: boolean): void => {
    screen.check(what, ok);
    good &&= ok;
  };
  for (const [i, { title, task }] of PARTS.entries()) {
    const [sdk = ""] = title.split(" →");
    const bytes = await service.read(task.file).catch(() => null);
    checked(`${task.file} is in the workspace, byte for byte as the model wrote it`, bytes === task.content);
    checked(`what ${task.command} prints is in the reply`, replies[i]?.includes(task.expected) === true);
    checked(`the ${sdk} ended without an error`, replies[i] !== null);
  }
  if (good) ownKey();
  return good;
}

function ownKey(): void {
  screen.heading("The same with a key of your own");
  screen.command("APPROVAL=auto npm start");
  screen.command(
    `curl -N http://127.0.0.1:8000/v1/chat/completions -H "authorization: Bearer $OPENAI_API_KEY" -H "content-type: application/json" -d '{"model":"dragoman","stream":true,"messages":[{"role":"user","content":"Write primes.sh, run it, tell me what it prints."}]}'`,
  );
}
