/** The clients of the benchmark, in a process of their own: takes one job at a time from its parent, answers with figures. */
import { Agent, type IncomingMessage, request } from "node:http";

export interface Job {
  url: string;
  headers: Record<string, string>;
  body: string;
  connections: number;
  /** Requests in all, over all connections. */
  requests: number;
}

export interface Figures {
  /** Milliseconds, ascending: from the request to the end of its reply, and to its first text. */
  whole: number[];
  first: number[];
  /** How late each stamped chunk came, ascending. Milliseconds. */
  late: number[];
  seconds: number;
  bytes: number;
}

type Reply = { first: number; end: number; bytes: number };

/** Enough of the end of a reply to tell whether it is whole, wherever it was cut into pieces. */
const TAIL_CHARS = 400;
const TEXT = /"(?:content|text)":"(?!")/;
const STAMP = /@(\d+\.\d+)@/g;

const ascending = (a: number, b: number) => a - b;

async function run(job: Job): Promise<Figures> {
  const agent = new Agent({ keepAlive: true, maxSockets: job.connections, scheduling: "lifo" });
  const figures: Figures = { whole: [], first: [], late: [], seconds: 0, bytes: 0 };
  const begun = performance.now();
  let left = job.requests;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const start = performance.now();
      const { first, end, bytes } = await ask(job, agent, figures.late);
      figures.whole.push(end - start);
      figures.first.push(first - start);
      figures.bytes += bytes;
    }
  };
  await Promise.all(Array.from({ length: job.connections }, client));
  figures.seconds = (performance.now() - begun) / 1000;
  agent.destroy();
  for (const list of [figures.whole, figures.first, figures.late]) list.sort(ascending);
  return figures;
}

function ask(job: Job, agent: Agent, late: number[]): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const headers = { ...job.headers, "content-length": Buffer.byteLength(job.body) };
    const sent = request(job.url, { method: "POST", agent, headers }, (reply) =>
      read(reply, late).then(resolve, reject),
    );
    sent.on("error", reject);
    sent.end(job.body);
  });
}

function read(reply: IncomingMessage, late: number[]): Promise<Reply> {
  const streamed = reply.headers["content-type"]?.startsWith("text/event-stream") === true;
  let first = 0;
  let bytes = 0;
  let last = "";
  reply.setEncoding("latin1");
  return new Promise((resolve, reject) => {
    reply.on("data", (text: string) => {
      bytes += text.length;
      last = (last + text).slice(-TAIL_CHARS);
      if (first === 0 && (!streamed || TEXT.test(text))) first = performance.now();
      if (streamed && text.includes("@")) stamps(text, late);
    });
    reply.on("end", () => {
      const good = !streamed || last.includes("[DONE]") || last.includes("message_stop");
      if (reply.statusCode === 200 && good) resolve({ first, end: performance.now(), bytes });
      else reject(new Error(`status ${reply.statusCode}, and the reply ends with: ${last.slice(-300)}`));
    });
    reply.on("error", reject);
  });
}

function stamps(text: string, late: number[]): void {
  const now = performance.timeOrigin + performance.now();
  for (const [, stamp] of text.matchAll(STAMP)) late.push(now - Number(stamp));
}

process.on("message", (job: Job) => {
  run(job).then(
    (figures) => process.send?.({ figures }),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on("disconnect", () => process.exit(0));
