/** What the service counts, in the text format of Prometheus (0.0.4). Nothing in it names an owner, a model's words or a key. */
import type { JobKind } from "./jobs.ts";
import type { FinalFate } from "./occurrences.ts";
import type { UsageRow } from "./store.ts";

/** Upper bounds of the histograms' buckets. Seconds. */
const REQUEST_BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10];
const RUN_BUCKETS = [0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];

type Labels = Record<string, string | number>;

class Counter {
  readonly #values = new Map<string, number>();
  readonly #name: string;
  readonly #help: string;

  constructor(name: string, help: string) {
    this.#name = name;
    this.#help = help;
  }

  add(labels: Labels, amount = 1): void {
    const key = written(labels);
    this.#values.set(key, (this.#values.get(key) ?? 0) + amount);
  }

  *lines(): Generator<string> {
    yield* heading(this.#name, this.#help, "counter");
    for (const [labels, value] of this.#values) yield `${this.#name}{${labels}} ${value}`;
  }
}

class Histogram {
  readonly #series = new Map<string, { counts: number[]; sum: number; count: number }>();
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds;
  }

  observe(labels: Labels, value: number): void {
    const key = written(labels);
    let series = this.#series.get(key);
    if (!series) {
      series = { counts: this.#bounds.map(() => 0), sum: 0, count: 0 };
      this.#series.set(key, series);
    }
    series.sum += value;
    series.count += 1;
    const bucket = this.#bounds.findIndex((bound) => value <= bound);
    if (bucket !== -1) series.counts[bucket] = (series.counts[bucket] as number) + 1;
  }

  *lines(): Generator<string> {
    const name = this.#name;
    yield* heading(name, this.#help, "histogram");
    for (const [labels, { counts, sum, count }] of this.#series) {
      const comma = labels === "" ? "" : `${labels},`;
      let below = 0;
      for (const [index, bound] of this.#bounds.entries()) {
        below += counts[index] as number;
        yield `${name}_bucket{${comma}le="${bound}"} ${below}`;
      }
      yield `${name}_bucket{${comma}le="+Inf"} ${count}`;
      yield `${name}_sum{${labels}} ${sum}`;
      yield `${name}_count{${labels}} ${count}`;
    }
  }
}

/** A value that is looked up when somebody asks. */
export interface Gauge {
  name: string;
  help: string;
  read(): number;
}

export class Metrics {
  readonly #requests = new Histogram(
    "dragoman_http_request_duration_seconds",
    "From a request's arrival to the head of its response.",
    REQUEST_BUCKETS,
  );
  readonly #runs = new Histogram(
    "dragoman_run_duration_seconds",
    "From a run's beginning to its end.",
    RUN_BUCKETS,
  );
  readonly #tokens = new Counter("dragoman_model_tokens_total", "Tokens that providers have counted.");
  readonly #steps = new Counter("dragoman_model_calls_total", "Calls of models.");
  readonly #jobs = new Counter("dragoman_automation_jobs_claimed_total", "Jobs that were due and taken up.");
  readonly #checks = new Counter("dragoman_automation_checks_total", "Looks of watchdogs.");
  readonly #started = new Counter("dragoman_automation_runs_started_total", "Runs of jobs begun.");
  readonly #occurrences = new Counter(
    "dragoman_automation_occurrences_total",
    "Times that jobs were due, with what has become of them.",
  );
  readonly #gauges: Gauge[] = [];

  request(door: string, method: string, status: number, seconds: number): void {
    this.#requests.observe({ door, method, status }, seconds);
  }

  run({ door, provider, outcome, steps, usage, durationMs }: UsageRow): void {
    this.#runs.observe({ door, outcome }, durationMs / 1000);
    this.#steps.add({ provider }, steps);
    this.#tokens.add({ provider, direction: "input" }, usage.input);
    this.#tokens.add({ provider, direction: "output" }, usage.output);
  }

  claimed(kind: JobKind, amount: number): void {
    this.#jobs.add({ kind }, amount);
  }

  checked(outcome: "quiet" | "fired" | "failed", amount = 1): void {
    this.#checks.add({ outcome }, amount);
  }

  started(kind: JobKind): void {
    this.#started.add({ kind });
  }

  occurred(fate: FinalFate, amount = 1): void {
    this.#occurrences.add({ fate }, amount);
  }

  gauge(gauge: Gauge): void {
    this.#gauges.push(gauge);
  }

  text(): string {
    const lines = [
      ...this.#requests.lines(),
      ...this.#runs.lines(),
      ...this.#steps.lines(),
      ...this.#tokens.lines(),
      ...this.#jobs.lines(),
      ...this.#checks.lines(),
      ...this.#started.lines(),
      ...this.#occurrences.lines(),
    ];
    for (const { name, help, read } of this.#gauges)
      lines.push(...heading(name, help, "gauge"), `${name} ${read()}`);
    return `${lines.join("\n")}\n`;
  }
}

function heading(name: string, help: string, type: string): [string, string] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

function written(labels: Labels): string {
  let out = "";
  for (const [name, value] of Object.entries(labels)) {
    const safe = String(value).replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n");
    out += `${out === "" ? "" : ","}${name}="${safe}"`;
  }
  return out;
}
