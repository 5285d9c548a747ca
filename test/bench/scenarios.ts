/** What is asked, of whom and how often; every figure of one run, unrounded. */
import type { Figures, Job } from "./load.ts";
import { cpuOf, type Target } from "./processes.ts";

export type Door = "chat" | "messages";
type Load = (job: Job) => Promise<Figures>;

/** How much of everything. */
export interface Amounts {
  rounds: number;
  warmUp: number;
  single: number;
  many: number;
  longStreams: number;
  longChunks: number;
  pacedSeconds: number;
}

export const FULL: Amounts = {
  rounds: 3,
  warmUp: 8000,
  single: 500,
  many: 4000,
  longStreams: 48,
  longChunks: 2000,
  pacedSeconds: 8,
};
export const QUICK: Amounts = {
  rounds: 1,
  warmUp: 4000,
  single: 300,
  many: 3000,
  longStreams: 24,
  longChunks: 1500,
  pacedSeconds: 3,
};

const CONNECTIONS = 16;
const PACED_STREAMS = 256;
const PACE_MS = 40;

const PATHS: Record<Door, string> = { chat: "/v1/chat/completions", messages: "/v1/messages" };
const KEYS: Record<Door, Record<string, string>> = {
  chat: { authorization: "Bearer sk-bench-0000000000000000" },
  messages: { "x-api-key": "sk-ant-bench-000000000000", "anthropic-version": "2023-06-01" },
};
const TALK = [
  { role: "user", content: "What does a gateway cost, and why is it never nothing?" },
  {
    role: "assistant",
    content: "It reads every byte twice and writes it twice. The rest is how much it thinks.",
  },
];

function job(
  door: Door,
  target: Target,
  wish: { stream: boolean; chunks?: number; pace?: number },
): Omit<Job, "connections" | "requests"> {
  const ask = `Say it in one line. chunks=${wish.chunks ?? 7} pace=${wish.pace ?? 0}`;
  const body = {
    model: "bench-1",
    max_tokens: 4096,
    stream: wish.stream,
    messages: [...TALK, { role: "user", content: ask }],
  };
  return {
    url: target.url + PATHS[door],
    headers: { "content-type": "application/json", ...KEYS[door] },
    body: JSON.stringify(body),
  };
}

/** Of a sorted list. */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function median(values: number[]): number {
  return quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  );
}

export interface Row {
  /** p50 and p99 of a plain reply over one connection, and over 16. Milliseconds. */
  plain: [number, number];
  plainBusy: [number, number];
  /** To the first text of a stream over one connection: p50 and p99. Milliseconds. */
  first: [number, number];
  /** Microseconds of CPU. */
  cpuPlain: number;
  cpuStream: number;
  cpuChunk: number;
}

/** One door, all targets in turn in every round, so that what else the machine does falls on all alike. */
export async function measureDoor(
  door: Door,
  targets: Target[],
  load: Load,
  amounts: Amounts,
): Promise<Map<Target, Row>> {
  for (const target of targets) {
    for (const stream of [false, true])
      await load({ ...job(door, target, { stream }), connections: CONNECTIONS, requests: amounts.warmUp });
    await load({ ...job(door, target, { stream: true, chunks: 1000 }), connections: 4, requests: 12 });
  }
  const rows = new Map<Target, Row[]>(targets.map((target) => [target, []]));
  for (let round = 0; round < amounts.rounds; round++)
    for (const target of targets) rows.get(target)?.push(await measureOnce(door, target, load, amounts));
  return new Map([...rows].map(([target, all]) => [target, middle(all)]));
}

async function measureOnce(door: Door, target: Target, load: Load, amounts: Amounts): Promise<Row> {
  const timed = async (wish: { stream: boolean; chunks?: number }, connections: number, requests: number) => {
    const before = cpuOf(target);
    const figures = await load({ ...job(door, target, wish), connections, requests });
    return { figures, cpu: cpuOf(target) - before };
  };
  const plain = await timed({ stream: false }, 1, amounts.single);
  const first = await timed({ stream: true }, 1, amounts.single);
  const busy = await timed({ stream: false }, CONNECTIONS, amounts.many);
  const streams = await timed({ stream: true }, CONNECTIONS, amounts.many);
  const { longStreams, longChunks } = amounts;
  const long = await timed({ stream: true, chunks: longChunks }, 4, longStreams);
  const cpuStream = streams.cpu / amounts.many;
  return {
    plain: [quantile(plain.figures.whole, 0.5), quantile(plain.figures.whole, 0.99)],
    plainBusy: [quantile(busy.figures.whole, 0.5), quantile(busy.figures.whole, 0.99)],
    first: [quantile(first.figures.first, 0.5), quantile(first.figures.first, 0.99)],
    cpuPlain: busy.cpu / amounts.many,
    cpuStream,
    cpuChunk: (long.cpu - cpuStream * longStreams) / (longStreams * longChunks),
  };
}

function middle(rows: Row[]): Row {
  const of = (pick: (row: Row) => number) => median(rows.map(pick));
  const both = (pick: (row: Row) => [number, number]): [number, number] => [
    of((row) => pick(row)[0]),
    of((row) => pick(row)[1]),
  ];
  return {
    plain: both((row) => row.plain),
    plainBusy: both((row) => row.plainBusy),
    first: both((row) => row.first),
    cpuPlain: of((row) => row.cpuPlain),
    cpuStream: of((row) => row.cpuStream),
    cpuChunk: of((row) => row.cpuChunk),
  };
}

export interface Paced {
  chunksPerSecond: number;
  /** Milliseconds behind the upstream's write. */
  late: [number, number];
  cpuChunk: number;
}

/** 256 streams at 25 chunks a second each, out of step. */
export async function measurePaced(target: Target, load: Load, amounts: Amounts): Promise<Paced> {
  const chunks = Math.round((amounts.pacedSeconds * 1000) / PACE_MS);
  const before = cpuOf(target);
  const { late, seconds } = await load({
    ...job("chat", target, { stream: true, chunks, pace: PACE_MS }),
    connections: PACED_STREAMS,
    requests: PACED_STREAMS,
  });
  return {
    chunksPerSecond: late.length / seconds,
    late: [quantile(late, 0.5), quantile(late, 0.99)],
    cpuChunk: (cpuOf(target) - before) / late.length,
  };
}

/** Requests of both kinds in turn, in portions; `after` is told of each portion. */
export async function wearOut(
  target: Target,
  load: Load,
  requests: number,
  portions: number,
  after: () => void,
): Promise<void> {
  const each = Math.ceil(requests / portions / 2);
  for (let portion = 0; portion < portions; portion++) {
    for (const stream of [false, true])
      await load({ ...job("chat", target, { stream }), connections: CONNECTIONS, requests: each });
    after();
  }
}
