/** What the guard has found out about a request, for everything behind it. */
import type { Redaction } from "../core/redaction.ts";

/** What the entry knows of the connection; handed to `app.fetch` as its second argument. */
export interface Connection {
  /** The client's IP address, where the runtime says. */
  address?(): string | undefined;
  /** Whether a command of the agent is at the other end. Absent where that cannot be. */
  startedByAgent?(): Promise<boolean>;
}

export interface Variables {
  requestId: string;
  /** Whose data this request may see: `local`, a token's name, or `key_` and an HMAC of the provider key. */
  owner: string;
  /** The provider key that the headers of a `/v1` request carried, without an access token in front of it. */
  providerKey: string | undefined;
  /** Knows the keys that no error body may show. */
  redaction?: Redaction | undefined;
  /** The image whose signed address this is: that is all there has to be known of who shows it. */
  imageLink?: string | undefined;
  /** The file of an upload, once it has been read. */
  upload?: Uint8Array<ArrayBuffer> | undefined;
  /** Set by a route that has started a run, for the log. */
  runId?: string | undefined;
  /** Set where nothing has been done although a run had begun: the same request may be sent again. */
  retryable?: boolean | undefined;
}

export interface AppEnv {
  Bindings: Connection | undefined;
  Variables: Variables;
}
