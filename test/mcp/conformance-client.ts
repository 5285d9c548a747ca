/**
 * Our client as the conformance suite runs one: the service connects to a server, a person with a browser authorizes it where
 * it asks for that, and the agent calls every tool that it has.
 */
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { createHome, createService, type TestService } from "../http/service.ts";
import { scriptedModel } from "../scripted-model.ts";

/** What the suite tells a client. */
export interface Task {
  scenario: string;
  serverUrl: string;
  context: { client_id?: string; client_secret?: string };
}

/** How often a person is willing to authorize one server. */
const PATIENCE = 2;
/** What the arguments of a tool of the suite are. */
const ARGS: Record<string, unknown> = { add_numbers: { a: 5, b: 3 } };
/** Servers that take an address for a client's id are told ours, which is one that the suite knows. */
const PUBLIC = { PUBLIC_URL: "https://conformance-test.local" };

/** What has happened, in lines. */
export async function runClient({ scenario, serverUrl, context }: Task): Promise<string> {
  const home = await createHome();
  const said: string[] = [];
  const say = (...words: unknown[]) => void said.push(words.join(" "));
  let names: string[] = [];
  const service = await createService(home, {
    model: {
      ...scriptedModel([{}]),
      async *stream(request, signal) {
        const calls = names.map((name, index) => {
          return { id: `call_${index}`, name, args: ARGS[name.slice(name.indexOf("__") + 2)] ?? {} };
        });
        const isFirst = request.messages.at(-1)?.role === "user";
        yield* scriptedModel([isFirst ? { calls } : { text: "Done." }]).stream(request, signal);
      },
    },
    env: { APPROVAL: "auto", ...(scenario === "auth/basic-cimd" ? PUBLIC : {}) },
    fetch: createLocalFetch(),
    recovers: true,
  });

  /** Whether a call has asked for a wider authorization. */
  async function useTools(): Promise<boolean> {
    names = (await stateOf(service)).toolNames;
    if (names.length === 0) return false;
    const reply = (await (await service.post("/api/chat", { message: "Use them." })).json()) as {
      tools?: { name: string; output: string }[];
    };
    for (const { name, output } of reply.tools ?? []) say(name, output);
    return reply.tools?.some(({ output }) => output.includes("wider authorization")) ?? false;
  }

  try {
    const oauth = context.client_id === undefined ? {} : { oauth: clientOf(context) };
    await service.post("/api/mcp/connect", { server_id: "suite", url: serverUrl, ...oauth });
    for (let round = 0; round < PATIENCE && (await stateOf(service)).status === "needs_reauth"; round++)
      if (!(await authorize(service, say))) break;
    if ((await useTools()) && (await authorize(service, say))) await useTools();
    const { status, error } = await stateOf(service);
    say(status, error);
    return said.join("\n");
  } finally {
    await service.close();
    await home.close();
  }
}

interface State {
  status: string;
  error: string | null;
  toolNames: string[];
}

async function stateOf(service: TestService): Promise<State> {
  const body = (await (await service.request("/api/mcp/servers")).json()) as {
    servers: Record<string, State>;
  };
  return body.servers.suite ?? { status: "error", error: "It is not there.", toolNames: [] };
}

/** As a person with a browser. */
async function authorize(service: TestService, say: (...words: unknown[]) => void): Promise<boolean> {
  const started = await service.request("/api/mcp/oauth/suite/start");
  const { authorization_url, detail } = (await started.json()) as {
    authorization_url?: string;
    detail?: string;
  };
  if (authorization_url === undefined) {
    say("cannot begin:", detail);
    return false;
  }
  const consent = await fetch(authorization_url, { redirect: "manual" });
  const back = new URL(consent.headers.get("location") ?? "");
  const page = await service.request(back.pathname + back.search);
  say("came back:", page.status, /<p>(.*)<\/p>/.exec(await page.text())?.[1]);
  return page.ok;
}

function clientOf({ client_id, client_secret }: Task["context"]) {
  return { client_id, client_secret };
}
