/** A worker that fetches what it is told, guarded, and says what came of it. */
import { createWorkerFetch } from "../../src/platform/worker-fetch.ts";

export default {
  async fetch(request: Request): Promise<Response> {
    const { url, options, init } = (await request.json()) as {
      url: string;
      options: { allow?: string[]; ownPort?: number };
      init: object;
    };
    const guarded = createWorkerFetch({ allow: options.allow, ownPort: () => options.ownPort });
    try {
      const response = await guarded(url, init);
      const { status, redirected } = response;
      return Response.json({ status, url: response.url, redirected, body: await response.text() });
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      return Response.json({ code, message });
    }
  },
};
