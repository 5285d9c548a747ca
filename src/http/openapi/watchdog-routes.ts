/** `/api/watchdog`. */
import * as z from "zod";
import {
  watchdogList,
  watchdogPatch,
  watchdogRequest,
  watchdogRuns,
  watchdogSaved,
  watchdogTrial,
  watchdogView,
} from "../watchdog-records.ts";
import type { Operation } from "./operation.ts";
import { idempotency, paging } from "./parameters.ts";
import { deleted } from "./session-routes.ts";

const watchdogId = z.object({ id: z.string().meta({ examples: ["wdg_example"] }) });

const WATCHDOG = {
  ...{ id: "wdg_example", name: "Inbox", action: "Sort the new files in inbox by what they are about." },
  ...{ directory: "inbox", pattern: "*.pdf", url: null, command: null, expect: null },
  ...{ interval_seconds: 30, debounce_seconds: 2, cooldown_seconds: 300 },
  ...{ session: "new", agent_name: null, provider: "anthropic", model: null, has_api_key: false },
  ...{ allowed_tools: ["list_files", "read_file", "create_file"], approval: "deny" as const },
  ...{ overlap: "skip" as const, max_runs: null, runs_made: 1, repeat_after_crash: false },
  ...{ webhook_url: null, budget: {}, usage: { tokens: 8_210, money: 0 }, failures: 0 },
  ...{ status: "active" as const, reason: null, last_run: "2026-11-20T06:31:12.000Z" },
  ...{ last_fate: "ran" as const, last_error: null, last_checked_at: "2026-11-20T10:00:00.000Z" },
  ...{ last_fired_at: "2026-11-20T06:30:30.000Z", next_check_at: "2026-11-20T10:00:30.000Z" },
  ...{ created_at: "2026-11-18T10:00:00.000Z", updated_at: "2026-11-18T10:00:00.000Z" },
};
const RUN = {
  ...{ scheduled_at: "2026-11-20T06:30:30.000Z", until: null, count: 1, trigger: "watchdog" as const },
  ...{ fate: "ran" as const, reason: null, run_id: "run_example", session_id: "ses_example", attempts: 0 },
  ...{ started_at: "2026-11-20T06:30:30.120Z", ended_at: "2026-11-20T06:31:12.000Z" },
  ...{ usage: { tokens: 8_210, money: 0 }, denied_tools: [], delivery: null },
};

export const WATCHDOG_ROUTES = [
  {
    id: "listWatchdogs",
    method: "get",
    path: "/api/watchdog",
    tag: "Automation",
    summary: "List watchdogs",
    description: "Newest first.",
    family: "api",
    query: z.object(paging),
    replies: {
      200: {
        description: "A page of watchdogs.",
        json: { schema: watchdogList, examples: { Page: { watchdogs: [WATCHDOG], next_cursor: null } } },
      },
    },
    faults: [400],
  },
  {
    id: "createWatchdog",
    method: "post",
    path: "/api/watchdog",
    tag: "Automation",
    summary: "Have something done when something happens",
    description:
      "The first check is what later ones are compared with, and does not fire. A check asks no model; one that fails is shown as `last_error` and does not fire. What happens while a run is under way fires after it.",
    family: "api",
    headers: idempotency,
    body: {
      schema: watchdogRequest,
      examples: {
        "A folder": {
          ...{ action: WATCHDOG.action, directory: "inbox", pattern: "*.pdf", interval_seconds: 30 },
          ...{ cooldown_seconds: 300, allowed_tools: WATCHDOG.allowed_tools },
        },
        "A page": {
          action: "Tell me that the shop is down, or up again.",
          url: "https://example.com/health",
          expect: { status: 200, json_path: "$.status", equals: "ok" },
        },
        "A command": {
          ...{ action: "Make room on the disk.", command: "df --output=pcent . | tail -1" },
          ...{ expect: { regex: "9[0-9]%|100%", on: "met" as const } },
          allowed_tools: ["run_terminal_command"],
        },
      },
    },
    replies: {
      200: {
        description: "There is one that is just the same.",
        headers: ["idempotency-replayed"],
        json: {
          schema: watchdogSaved,
          examples: { Exists: { status: "exists", watchdog_id: WATCHDOG.id, watchdog: WATCHDOG } },
        },
      },
      201: {
        description: "It is watching.",
        headers: ["idempotency-replayed"],
        json: {
          schema: watchdogSaved,
          examples: { Created: { status: "created", watchdog_id: WATCHDOG.id, watchdog: WATCHDOG } },
        },
      },
    },
    faults: [404, 409, 422, 507],
  },
  {
    id: "getWatchdog",
    method: "get",
    path: "/api/watchdog/{id}",
    tag: "Automation",
    summary: "Get a watchdog",
    family: "api",
    params: watchdogId,
    replies: {
      200: { description: "The watchdog.", json: { schema: watchdogView, examples: { Watchdog: WATCHDOG } } },
    },
    faults: [404],
  },
  {
    id: "updateWatchdog",
    method: "patch",
    path: "/api/watchdog/{id}",
    tag: "Automation",
    summary: "Change, pause or resume a watchdog",
    description: "When it is told to watch something else, the next check is a first one again.",
    family: "api",
    params: watchdogId,
    body: {
      schema: watchdogPatch,
      examples: { Pause: { status: "paused" }, Rarer: { interval_seconds: 600 } },
    },
    replies: {
      200: {
        description: "It is changed.",
        json: {
          schema: watchdogSaved,
          examples: { Updated: { status: "updated", watchdog_id: WATCHDOG.id, watchdog: WATCHDOG } },
        },
      },
    },
    faults: [404, 409, 507],
  },
  {
    id: "deleteWatchdog",
    method: "delete",
    path: "/api/watchdog/{id}",
    tag: "Automation",
    summary: "Delete a watchdog",
    description: "With the record of its runs. A run under way goes on, and the sessions stay.",
    family: "api",
    params: watchdogId,
    replies: {
      200: {
        description: "It is gone.",
        json: { schema: deleted, examples: { Deleted: { status: "deleted", deleted: 1 } } },
      },
    },
    faults: [404],
  },
  {
    id: "testWatchdog",
    method: "post",
    path: "/api/watchdog/{id}/test",
    tag: "Automation",
    summary: "See what a check would lead to",
    description: "Checks now, whatever its status, fires nothing and remembers nothing.",
    family: "api",
    params: watchdogId,
    replies: {
      200: {
        description: "What would happen.",
        json: {
          schema: watchdogTrial,
          examples: {
            "Would fire": {
              ...{ status: "tested", would_fire: true, reason: "It has changed.", error: null },
              finding: 'Files below inbox:\nmade (1): "bill.pdf"',
            },
          },
        },
      },
    },
    faults: [404],
  },
  {
    id: "listWatchdogRuns",
    method: "get",
    path: "/api/watchdog/{id}/runs",
    tag: "Automation",
    summary: "See what became of each firing",
    description: "The newest 1,000 are kept.",
    family: "api",
    params: watchdogId,
    query: z.object(paging),
    replies: {
      200: {
        description: "Past and under way, newest first.",
        json: { schema: watchdogRuns, examples: { Runs: { runs: [RUN], next_cursor: null } } },
      },
    },
    faults: [400, 404],
  },
] as const satisfies readonly Operation[];
