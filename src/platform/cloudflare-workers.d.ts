/** The one thing of workerd's own module that is used here; its full types would replace those of the Web. */
declare module "cloudflare:workers" {
  /** Keeps the isolate's request alive until `work` has settled. Finds the request by itself. */
  export function waitUntil(work: Promise<unknown>): void;
}
