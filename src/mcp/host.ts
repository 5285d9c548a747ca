/** What the connections get of settings and platform, and what callers are told where programs may not be started. */
import type { Config } from "../config.ts";
import type { Platform } from "../core/platform.ts";
import type { Store } from "../core/store.ts";
import { AppError } from "../errors.ts";
import type { McpHost } from "./connections.ts";

export interface McpParts {
  config: Pick<Config, "mcp" | "access" | "runtime">;
  platform: Platform;
  store: Store;
  vault: McpHost["vault"];
  authorizations: McpHost["authorizations"];
}

export function mcpHost({ config, platform, store, vault, authorizations }: McpParts): McpHost {
  return {
    ...{ store: store.mcp, platform, vault, authorizations },
    // Servers see what is made of it: access tokens, which serve as the secret on Workers, could be guessed from that.
    secret: config.runtime === "workerd" ? config.access.secretKey : platform.secret,
    trusted: trustsCallers(config),
    stdioRefusal: stdioRefusal(config, platform),
    connectMs: config.mcp.connectMs,
    callMs: config.mcp.callMs,
  };
}

/** Without tokens on loopback the caller is the operator, at this machine. */
export function trustsCallers({ access, runtime }: McpParts["config"]): boolean {
  return access.mode === "open" && runtime !== "workerd";
}

function stdioRefusal({ mcp, runtime }: McpParts["config"], { mcpStdio }: Platform): AppError | undefined {
  if (runtime === "workerd")
    return new AppError(
      "not_implemented",
      "transport: there are no programs on Workers. Connect a server over `http` or `sse`.",
      { param: "transport" },
    );
  if (mcp.stdio && mcpStdio) return undefined;
  if (!mcp.stdio)
    return new AppError(
      "forbidden",
      "transport: starting programs is not allowed here. The operator can allow it with MCP_STDIO=on.",
      { param: "transport" },
    );
  return new AppError(
    "not_implemented",
    "transport: stdio needs Linux or macOS. Connect over `http` or `sse`.",
    {
      param: "transport",
    },
  );
}
