/** What a stored run goes on with, besides its row: the key that it began with, and what its readers have had. */
import type { ProviderName } from "../core/message.ts";
import type { Frames, RunRecord } from "../core/run.ts";
import type { Store } from "../core/store.ts";
import { AppError } from "../errors.ts";
import type { AgentServices } from "./turn.ts";

/** Rows of frames read at once. */
const FRAMES_PAGE = 200;

/** All that readers have had and that is stored. */
export async function framesOf(store: Store, { owner, id }: RunRecord): Promise<Frames[]> {
  const all: Frames[] = [];
  for (;;) {
    const rows = await store.runs.frames(owner, id, all.at(-1)?.last ?? 0, FRAMES_PAGE);
    all.push(...rows);
    if (rows.length < FRAMES_PAGE) return all;
  }
}

/** Throws AppError `missing_key`: a caller's key is replaced by nobody's. */
export async function keyOf(services: AgentServices, record: RunRecord): Promise<string> {
  const provider: ProviderName = record.spec.provider;
  if (record.sealedKey === null && record.spec.callersKey)
    throw new AppError(
      "missing_key",
      "The provider key of this run was the caller's and could not be kept: set SECRET_KEY on the server. Send the message again.",
    );
  if (record.sealedKey === null)
    return services.models.choose({ key: undefined, provider, param: "provider", where: "the request" }).key;
  const key = await services.vault?.open(record.sealedKey);
  if (key) return key;
  throw new AppError(
    "missing_key",
    "The provider key of this run cannot be read any more: the server's secret has changed. Send the message again.",
  );
}
