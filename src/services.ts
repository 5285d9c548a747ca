/** The only place where parts are put together: Config + Platform + Store -> what the routes use. */
import { createSwarm } from "./agent/delegate.ts";
import { createKeyVault } from "./agent/key-vault.ts";
import { LiveRuns } from "./agent/live-runs.ts";
import type { AgentServices } from "./agent/turn.ts";
import { type AutomationService, createAutomation } from "./automation/service.ts";
import type { Config } from "./config.ts";
import type { MemoryVault } from "./core/memory.ts";
import { Metrics } from "./core/metrics.ts";
import type { ModelRegistry } from "./core/model.ts";
import type { Images } from "./core/notes.ts";
import type { Platform } from "./core/platform.ts";
import type { Speaker, Speakers } from "./core/speech.ts";
import type { Store } from "./core/store.ts";
import type { Tool, Toolbox } from "./core/tool.ts";
import { createImages } from "./knowledge/images.ts";
import { createBucket } from "./knowledge/images-bucket.ts";
import { createImageLinks, type ImageLinks } from "./knowledge/images-links.ts";
import { createMemoryService, type MemoryService } from "./knowledge/memory-service.ts";
import { SpeechDesk } from "./knowledge/speech.ts";
import { createEmbeddedSpeaker } from "./knowledge/speech-embedded.ts";
import { Authorizations } from "./mcp/authorizations.ts";
import { McpConnections } from "./mcp/connections.ts";
import { mcpHost, trustsCallers } from "./mcp/host.ts";
import { RunFrames } from "./protocols/run-frames.ts";
import { createConfiguredFetch } from "./providers/configured-fetch.ts";
import { createEmbedder } from "./providers/embeddings.ts";
import { createModelRegistry } from "./providers/registry.ts";
import { createSpeakers } from "./providers/speech.ts";
import { joined, memoryTools, noteTools, scheduleTools } from "./services/agent-tools.ts";
import { counted, watched } from "./services/observed.ts";
import { BackgroundCommands } from "./tools/background-commands.ts";
import { compileGlob, compileText } from "./tools/pattern.ts";
import { createTools } from "./tools/registry.ts";

export interface Services {
  config: Config;
  platform: Platform;
  store: Store;
  models: ModelRegistry;
  agent: AgentServices;
  runs: LiveRuns;
  automation: AutomationService;
  metrics: Metrics;
  memory: MemoryVault;
  images: Images;
  imageLinks: ImageLinks;
  speech: SpeechServices;
  /** Commands that go on beside the agent's turns, in this process. */
  commands: BackgroundCommands;
  /** The MCP servers of all owners. */
  mcp: McpConnections;
  mcpAuthorizations: Authorizations;
  /** What has to be done again and again: runs that others have left. Another may be at it at the same time. */
  tick(): Promise<void>;
  /** Stops looking after things, and gives up those that are not finished. The store stays open. */
  close(): Promise<void>;
}

export interface SpeechServices {
  desk: SpeechDesk;
  speakers: Speakers;
  /** Absent where the platform has no voice. */
  embedded?: Speaker | undefined;
}

export interface ServiceParts {
  models?: ModelRegistry;
  tools?: readonly Tool[];
}

/** `parts`: in place of those that the configuration says. */
export function createServices(
  config: Config,
  platform: Platform,
  database: Store,
  parts: ServiceParts = {},
): Services {
  const metrics = new Metrics();
  const store: Store = { ...database, usage: counted(database.usage, metrics) };
  const registry =
    parts.models ??
    createModelRegistry({
      providers: config.providers,
      limits: config.upstream,
      strictKeys: config.models.strictKeyPrefix,
      fetch: createConfiguredFetch(platform.upstream),
    });
  const models = platform.redaction ? watched(registry, platform.redaction) : registry;
  const commands = new BackgroundCommands();
  const images = imagesOf(config, platform, store);
  const imageLinks = createImageLinks(platform.secret);
  const vault = vaultOf(platform.secret, "provider keys");
  const memory = memoryOf(config, platform, store, models, vault);
  const own = parts.tools ?? [
    ...createTools(config, commands),
    ...memoryTools(memory.vault),
    ...noteTools(store, images),
    ...scheduleTools(store, () => automation),
  ];
  const mcpVault = vaultOf(platform.secret, "MCP servers");
  const mcpAuthorizations = new Authorizations({
    ...{ servers: store.mcp, vault: mcpVault, fetch: platform.fetch, trusted: trustsCallers(config) },
    callerMark: () => mcp.callerMark,
    now: () => platform.now(),
    hold: (secret) => platform.redaction?.hold(secret),
  });
  const mcp: McpConnections = new McpConnections(
    mcpHost({ config, platform, store, vault: mcpVault, authorizations: mcpAuthorizations }),
  );
  const tools: Toolbox = {
    of(owner) {
      const theirs = mcp.of(owner);
      return theirs instanceof Promise ? theirs.then((all) => joined(own, all)) : joined(own, theirs);
    },
  };
  const agent: AgentServices = {
    platform,
    store,
    models,
    tools,
    approval: config.approval,
    limits: config.run,
    windows: config.models.contextWindows,
    vault,
    recall: memory.recall,
    noteTurn: memory.noteTurn,
    holder: crypto.randomUUID(),
    leaseMs: config.sessions.leaseMs,
    patienceMs: config.sessions.waitMs,
    onStop: (owner, runId) => commands.endRun(owner, runId),
    encoder: (run) => new RunFrames(run),
  };
  const runs = new LiveRuns(agent);
  const automation: AutomationService = createAutomation({
    ...{ agent, runs, metrics, ...config.automation, leaseMs: config.sessions.leaseMs },
    models: { defaults: config.providers, aliases: config.models.aliases },
    runTimeoutMs: config.run.timeoutMs,
    patterns: {
      glob: compileGlob,
      regex: (pattern) => compileText(pattern, { literal: false, ignoreCase: false }),
    },
  });
  agent.swarm = createSwarm(agent, {
    ...config.swarm,
    defaultModel: (provider) => config.providers[provider].model,
    hold: (runId, controller) => runs.hold(runId, controller),
    retryEnd: (owner, runId, reason) => runs.retryEnd(owner, runId, reason),
    schemas: {
      schemaProblem: async (schema) => (await jsonSchemas()).schemaProblem(schema),
      isCheckable: async (schema) => (await jsonSchemas()).isCheckable(schema),
      outputProblem: async (schema, value) => (await jsonSchemas()).outputProblem(schema, value),
    },
  });
  metrics.gauge({ name: "dragoman_runs_active", help: "Runs under way here.", read: () => runs.active });
  metrics.gauge({
    name: "dragoman_automation_lag_seconds",
    help: "How late the latest job was that was taken up in the last minute.",
    read: () => automation.engine.lagSeconds,
  });
  const speech = speechOf(config, platform);
  const texts = () => speech.desk.active;
  metrics.gauge({ name: "dragoman_speech_active", help: "Texts being spoken here.", read: texts });
  const tick = async (): Promise<void> => {
    // What is taken over comes first: jobs see then who goes on with their runs.
    const jobs = runs.recover().finally(() => automation.tick());
    await Promise.all([jobs, mcp.tick(), memory.tick(), images.sweep()]);
  };
  const stop = lookAfter(tick, config, platform);
  return {
    ...{
      config,
      platform,
      store,
      models,
      agent,
      runs,
      automation,
      metrics,
      commands,
      mcp,
      mcpAuthorizations,
      tick,
    },
    ...{ memory: memory.vault, images, imageLinks, speech },
    async close() {
      stop();
      automation.close();
      memory.close();
      await Promise.all([commands.close(), runs.release(), mcp.close(), platform.voice?.close()]);
    },
  };
}

/** Loaded when a schema is first met. */
const jsonSchemas = () => import("./mcp/output-schema.ts");

function speechOf({ providers, speech, upstream }: Config, platform: Platform): SpeechServices {
  const { voice } = platform;
  const fetch = createConfiguredFetch(platform.upstream);
  return {
    desk: new SpeechDesk(),
    speakers: createSpeakers({ providers, models: speech, limits: upstream, fetch }),
    embedded: voice && createEmbeddedSpeaker(voice),
  };
}

/** Images are kept in the bucket where there is one; those that went into the database before stay there. */
function imagesOf({ bucket }: Config, platform: Platform, store: Store): Images {
  const { fetch, log } = platform;
  const now = () => platform.now();
  const chunks = store.imageChunks;
  const s3 = bucket && createBucket({ ...bucket, fetch, now });
  return createImages({ rows: store.images, blobs: s3 ? [s3, chunks] : [chunks], now, log });
}

function memoryOf(
  config: Config,
  platform: Platform,
  store: Store,
  models: ModelRegistry,
  keys: ReturnType<typeof vaultOf>,
): MemoryService {
  const { embedding } = config.memory;
  const embedder =
    embedding &&
    createEmbedder({
      ...{ ...embedding, key: embedding.apiKey, retries: config.upstream.retries },
      fetch: createConfiguredFetch(platform.upstream),
    });
  return createMemoryService({ config: config.memory, platform, store, models, keys, embedder });
}

function vaultOf(secret: string | undefined, purpose: string) {
  return secret === undefined ? undefined : createKeyVault(secret, purpose);
}

/** Ticks at once and again and again. On Workers nothing may run between requests. */
function lookAfter(tick: () => Promise<void>, config: Config, platform: Platform): () => void {
  if (platform.runtime === "workerd") return () => {};
  let busy = false;
  const look = async (): Promise<void> => {
    if (busy) return;
    busy = true;
    try {
      await tick();
    } finally {
      busy = false;
    }
  };
  platform.background(look());
  const timer = setInterval(() => platform.background(look()), config.sessions.leaseMs / 2);
  // It must not keep a process alive that has nothing else to do.
  (timer as { unref?(): void }).unref?.();
  return () => clearInterval(timer);
}
