/** What wrangler runs before it uploads or serves (`[build]` in wrangler.toml). */
import { writeWorker } from "../platform/local-bundle.ts";

await writeWorker();
