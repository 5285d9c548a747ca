/** What is used of Bun's own API; its full types would replace those of Node and the Web. */
interface BunServer {
  readonly port: number | undefined;
  /** Takes no new connections; resolves when open requests have ended, or at once after cutting them. */
  stop(cutOpen?: boolean): Promise<void>;
  /** null once the connection is gone. */
  requestIP(request: Request): { address: string; port: number } | null;
}

declare const Bun: {
  serve(options: {
    hostname: string;
    port: number;
    /** Seconds; 0 for never. */
    idleTimeout: number;
    maxRequestBodySize: number;
    /** Shows errors, with source, in replies and on stderr. */
    development?: boolean;
    fetch(request: Request, server: BunServer): Response | Promise<Response>;
  }): BunServer;
};
