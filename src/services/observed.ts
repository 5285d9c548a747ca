/** Services that somebody else looks at as they are used: the redaction at keys, the metrics at usage. */
import type { Metrics } from "../core/metrics.ts";
import type { ModelRegistry } from "../core/model.ts";
import type { Redaction } from "../core/redaction.ts";
import type { UsageLog } from "../core/store.ts";

/** Every key that is used passes here, wherever it comes from: headers, bodies, jobs, runs that go on. */
export function watched(registry: ModelRegistry, redaction: Redaction): ModelRegistry {
  return {
    choose(wish) {
      if (wish.key !== undefined) redaction.hold(wish.key);
      return registry.choose(wish);
    },
    adapter(credentials) {
      redaction.hold(credentials.key);
      return registry.adapter(credentials);
    },
  };
}

export function counted(usage: UsageLog, metrics: Metrics): UsageLog {
  return {
    record(row) {
      metrics.run(row);
      usage.record(row);
    },
    flush: () => usage.flush(),
  };
}
