/** Bun. */
import { listenOnBun } from "../platform/local-bun.ts";
import { startService } from "../platform/local-service.ts";
import { service } from "../service.ts";

await startService({ name: "bun", service, listen: listenOnBun });
