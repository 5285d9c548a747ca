/** What the service says of itself. None of it is anybody's data, so that none of it needs a token. */
import * as z from "zod";
import type { Operation } from "./operation.ts";

const alive = z.object({ status: z.literal("ok") }).meta({ id: "Alive" });
const readiness = z
  .object({
    status: z.enum(["ok", "unavailable"]),
    checks: z.record(z.string(), z.enum(["ok", "failing"])).describe("By part of the service."),
  })
  .meta({ id: "Readiness" });

export const SERVICE_ROUTES = [
  {
    id: "healthz",
    method: "get",
    path: "/healthz",
    tag: "Service",
    summary: "Is it alive?",
    family: "public",
    replies: {
      200: {
        description: "The process answers.",
        json: { schema: alive, examples: { Alive: { status: "ok" } } },
      },
    },
  },
  {
    id: "readyz",
    method: "get",
    path: "/readyz",
    tag: "Service",
    summary: "Is it ready?",
    family: "public",
    replies: {
      200: {
        description: "All that it needs works.",
        json: { schema: readiness, examples: { Ready: { status: "ok", checks: { database: "ok" } } } },
      },
      503: {
        description: "Something does not.",
        json: {
          schema: readiness,
          examples: { "Not ready": { status: "unavailable", checks: { database: "failing" } } },
        },
      },
    },
  },
  {
    id: "metrics",
    method: "get",
    path: "/metrics",
    tag: "Service",
    summary: "What goes on",
    description:
      "Counts and durations of requests, runs, tokens, jobs and looks of watchdogs since the process began, for Prometheus.",
    family: "api",
    replies: { 200: { description: "In Prometheus's text format.", text: "text/plain" } },
  },
  {
    id: "openapi",
    method: "get",
    path: "/openapi.json",
    tag: "Service",
    summary: "This document",
    family: "public",
    replies: { 200: { description: "OpenAPI 3.1.", text: "application/json" } },
  },
  {
    id: "docs",
    method: "get",
    path: "/docs",
    tag: "Service",
    summary: "The document as a page",
    family: "public",
    replies: { 200: { description: "For a browser.", text: "text/html" } },
  },
] as const satisfies readonly Operation[];
