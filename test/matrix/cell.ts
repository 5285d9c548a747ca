/** What a cell of the matrix is: one kind of use of one door with one upstream. */
import type { Runtime, Service } from "../service.ts";
import type { Chat, Door } from "./doors.ts";
import type { Double } from "./double.ts";
import type { Upstream } from "./upstreams.ts";

export interface Cell {
  runtime: Runtime;
  service: Service;
  double: Double;
  door: Door;
  upstream: Upstream;
  chat(headers?: Record<string, string>): Chat;
}

export type Row = readonly [name: string, run: (cell: Cell) => Promise<void>];
