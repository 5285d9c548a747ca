/**
 * The matrix: every door with every upstream, through the official SDKs and the service as it is run. A cell is one
 * kind of use; on Node all of them run, elsewhere a third, chosen so that every cell, door and upstream has its turn.
 */
import { afterAll, beforeAll, describe, test } from "vitest";
import { canRun, type Runtime, type Service, startService } from "../service.ts";
import { sqldNote } from "../sqld.ts";
import type { Cell } from "./cell.ts";
import { DOORS, type Door } from "./doors.ts";
import { type Double, startDouble } from "./double.ts";
import { FAULTS, type SdkError, SILENCES, SILENT } from "./faults.ts";
import { UPSTREAMS, type Upstream } from "./upstreams.ts";
import { USES } from "./uses.ts";

/** No retries, so that each fault is seen once, and short waits, so that a silent upstream does not hold the suite. */
const SETTINGS = {
  APPROVAL: "auto",
  LOG_LEVEL: "warning",
  UPSTREAM_RETRIES: "0",
  UPSTREAM_FIRST_BYTE_TIMEOUT: "1.5",
  UPSTREAM_IDLE_TIMEOUT: "1.5",
};

const PAIRS = DOORS.flatMap((door) => UPSTREAMS.map((upstream) => ({ door, upstream })));

/** A third of all: 0 and 1 choose different ones. */
function isChosen(row: number, pair: number, third: number | null): boolean {
  return third === null || (row + pair) % 3 === third;
}

/** Runs the matrix on a runtime: all of it, or the third with that number. */
export function matrix(runtime: Runtime, third: 0 | 1 | null): void {
  describe.skipIf(!canRun(runtime))(runtime + (runtime === "workerd" ? sqldNote : ""), () => {
    let service: Service;
    let double: Double;
    beforeAll(async () => {
      double = await startDouble();
      service = await startService({ runtime, env: { ...SETTINGS, ...double.env } });
    });
    afterAll(async () => {
      await service.stop();
      await double.stop();
    });
    const cellOf = (door: Door, upstream: Upstream): Cell => ({
      ...{ runtime, service, double, door, upstream },
      chat: (headers) =>
        door.chat({
          url: service.url,
          key: upstream.key,
          model: upstream.model,
          ...(headers ? { headers } : {}),
        }),
    });

    describe.each(DOORS)("$name", (door) => {
      describe.each(UPSTREAMS)("with $provider", (upstream) => {
        const pair = PAIRS.findIndex((p) => p.door === door && p.upstream === upstream);
        const rows = [...USES, ...FAULTS].filter((_, row) => isChosen(row, pair, third));
        test.each(rows)("%s", (_, run) => run(cellOf(door, upstream)));
      });
    });

    describe("an upstream that falls silent", () => {
      beforeAll(() => double.answer(SILENT));
      const rows = SILENCES.flatMap(([when, word], row) =>
        PAIRS.filter((_, pair) => isChosen(row, pair, third)).map((pair) => ({ ...pair, when, word })),
      );
      test.concurrent.for(rows)(
        "$when: $door.name with $upstream.provider",
        async ({ door, upstream, word }, { expect }) => {
          const { chat } = cellOf(door, upstream);
          const talk = chat();
          talk.user(`Say ${word}.`);
          let heard = "";
          const failure: unknown = await talk
            .ask({ stream: true, onText: (piece) => (heard += piece) })
            .catch((error: unknown) => error);
          expect(failure).toBeInstanceOf(
            word === "nothing" ? door.sdk.InternalServerError : door.sdk.APIError,
          );
          expect(heard).toBe(word === "nothing" ? "" : "Hello");
          if (word === "nothing") expect((failure as SdkError).status).toBe(504);
        },
      );
    });
  });
}
