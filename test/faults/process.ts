/** A service process of the fault suites: killed at named points, asked over HTTP, looked at from outside. */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type ServiceProcess, startProcess } from "../entry/service-process.ts";
import type { CrashPoint } from "./crash-point.ts";
import type { SharedDatabase } from "./database.ts";
import { EventReader } from "./event-reader.ts";
import type { Upstream } from "./upstream.ts";

const PRELOAD = new URL("crash-point.ts", import.meta.url).href;
/** Started modules stay compiled from one process to the next. */
const COMPILED = join(tmpdir(), "dragoman-faults-compiled");

/** A body whose fields a test knows. */
// biome-ignore lint/suspicious/noExplicitAny: a body is what a test says it is.
export type Body = any;

export interface Answer {
  status: number;
  headers: Headers;
  body: Body;
}

let crashFiles = 0;

export class Service {
  readonly process: ServiceProcess;
  readonly url: string;
  readonly #crashFile: string;

  private constructor(process: ServiceProcess, url: string, crashFile: string) {
    this.process = process;
    this.url = url;
    this.#crashFile = crashFile;
  }

  static async start(
    database: SharedDatabase,
    upstream: Upstream,
    env: Record<string, string> = {},
  ): Promise<Service> {
    const crashFile = join(database.folder, `crash-${crashFiles++}`);
    const process = startProcess(
      "node",
      {
        ...database.env,
        ...upstream.env,
        RUN_LEASE: "2",
        NODE_COMPILE_CACHE: COMPILED,
        NODE_OPTIONS: `--import=${PRELOAD}`,
        CRASH_FILE: crashFile,
        ...env,
      },
      database.folder,
    );
    return new Service(process, await process.url, crashFile);
  }

  /** From now on the process kills itself, or fails, at the next such write. */
  arm(point: CrashPoint): void {
    const draft = `${this.#crashFile}.draft`;
    writeFileSync(draft, JSON.stringify(point));
    renameSync(draft, this.#crashFile);
  }

  disarm(): void {
    rmSync(this.#crashFile, { force: true });
  }

  get exited(): Promise<number | null> {
    return this.process.exited;
  }

  async kill(): Promise<void> {
    this.process.child.kill("SIGKILL");
    await this.exited;
  }

  async stop(): Promise<number | null> {
    this.process.child.kill("SIGTERM");
    return this.exited;
  }

  async send(
    method: string,
    path: string,
    json?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const body = json === undefined ? undefined : JSON.stringify(json);
    const response = await fetch(this.url + path, {
      method,
      headers: { ...(json === undefined ? {} : { "content-type": "application/json" }), ...headers },
      body,
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  }

  async get(path: string): Promise<Body> {
    const { status, body } = await this.send("GET", path);
    expect([path, status]).toEqual([path, 200]);
    return body;
  }

  post(path: string, json: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.send("POST", path, json, headers);
  }

  /** The stream of `POST /api/chat` or `/api/chat/approve`. */
  stream(
    path: string,
    json: object,
    headers: Record<string, string> = {},
    cutAt?: number,
  ): Promise<EventReader> {
    const init = {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ ...json, stream: true }),
    };
    return EventReader.open(this.url + path, init, cutAt);
  }

  follow(runId: string, after = 0, cutAt?: number): Promise<EventReader> {
    const headers: Record<string, string> = after > 0 ? { "last-event-id": String(after) } : {};
    return EventReader.open(`${this.url}/api/runs/${runId}/events`, { headers }, cutAt);
  }

  /** As {@link follow}, with the number in the address. */
  followAt(runId: string, after: number, cutAt?: number): Promise<EventReader> {
    return EventReader.open(`${this.url}/api/runs/${runId}/events?after=${after}`, {}, cutAt);
  }

  /** A run's state once it neither runs nor is about to. */
  async settled(runId: string): Promise<Body> {
    for (;;) {
      const reader = await this.follow(runId);
      await reader.over;
      const run = await this.get(`/api/runs/${runId}`);
      if (run.status !== "running") return run;
    }
  }
}
