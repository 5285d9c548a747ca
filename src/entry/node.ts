/** Node. Modules come after the compile cache has been switched on, so that the next start finds them compiled. */
import { enableCompileCache } from "node:module";

enableCompileCache();
const [{ listenOnNode }, { startService }, { service }] = await Promise.all([
  import("../platform/local-node.ts"),
  import("../platform/local-service.ts"),
  import("../service.ts"),
]);

await startService({ name: "node", service, listen: listenOnNode });
