import { describe, expect, test } from "vitest";
import { Metrics } from "../../src/core/metrics.ts";
import { AppError } from "../../src/errors.ts";
import { createCron } from "../http/cron-service.ts";
import { createHome, createService } from "../http/service.ts";
import { scriptedModel } from "../scripted-model.ts";

describe("metrics", () => {
  test("buckets add up, and every series is named once", () => {
    const metrics = new Metrics();
    for (const seconds of [0.0005, 0.02, 0.02, 99]) metrics.request("api", "GET", 200, seconds);
    metrics.gauge({ name: "up", help: "Yes.", read: () => 1 });
    const lines = metrics.text().split("\n");
    const series = "dragoman_http_request_duration_seconds";
    const labels = 'door="api",method="GET",status="200"';
    expect(lines).toContain(`${series}_bucket{${labels},le="0.001"} 1`);
    expect(lines).toContain(`${series}_bucket{${labels},le="0.025"} 3`);
    expect(lines).toContain(`${series}_bucket{${labels},le="10"} 3`);
    expect(lines).toContain(`${series}_bucket{${labels},le="+Inf"} 4`);
    expect(lines).toContain(`${series}_count{${labels}} 4`);
    expect(lines).toContain("up 1");
    expect(new Set(lines.slice(0, -1)).size).toBe(lines.length - 1);
  });

  test("labels cannot break a line", () => {
    const metrics = new Metrics();
    metrics.request('a"b\\c\nd', "GET", 200, 1);
    expect(metrics.text()).toContain('door="a\\"b\\\\c\\nd"');
  });

  test("requests and runs are counted by the service, and nobody's words are in it", async () => {
    const home = await createHome();
    const service = await createService(home, { model: scriptedModel([{ text: "Hello." }]) });
    await service.post("/api/chat", { message: "a-secret-wish" });
    await service.request("/api/gone");
    await service.request("/api/sessions", { method: "PROPFIND" });
    const response = await service.request("/metrics");
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const text = await response.text();
    expect(text).toContain('_count{door="api",method="POST",status="200"} 1');
    expect(text).toContain('_count{door="api",method="GET",status="404"} 1');
    expect(text).toContain('method="other"');
    expect(text).toContain('dragoman_run_duration_seconds_count{door="chat",outcome="completed"} 1');
    expect(text).toMatch(/dragoman_model_tokens_total\{provider="\w+",direction="output"\} [1-9]/);
    expect(text).toContain("dragoman_runs_active 0");
    expect(text).not.toContain("a-secret-wish");
    await service.close();
    await home.close();
  });

  test("jobs and watchdogs are counted with what has become of them, and how late the tick was", async () => {
    const cron = await createCron();
    const answers = ["as before", "as before", "new", new AppError("unreachable", "It is down.")];
    const fetch = async () => {
      const answer = answers.shift();
      if (typeof answer !== "string") throw answer;
      return new Response(answer);
    };
    await cron.serve([{ text: "done" }, { text: "done" }], { fetch });
    await cron.create({ command: "look around", interval_minutes: 4, max_runs: 1 });
    const body = { action: "see to it", url: "https://host.example/", interval_seconds: 60 };
    expect((await cron.service.post("/api/watchdog", body)).status).toBe(201);
    const counts = async () => {
      const text = await (await cron.service.request("/metrics")).text();
      const series = text.split("\n").filter((line) => line.startsWith("dragoman_automation_"));
      return Object.fromEntries(series.map((line) => line.replace("dragoman_automation_", "").split(" ")));
    };
    await cron.tickAt(0);
    expect(await counts()).toEqual({
      'jobs_claimed_total{kind="watchdog"}': "1",
      'checks_total{outcome="quiet"}': "1",
      lag_seconds: "0",
    });
    await cron.tickAt(60_000);
    await cron.tickAt(120_000);
    await cron.until(async () => 'occurrences_total{fate="ran"}' in (await counts()));
    await cron.tickAt(243_500);
    await cron.until(async () => (await counts())['occurrences_total{fate="ran"}'] === "2");
    const { lag_seconds: lag, ...counted } = await counts();
    expect(counted).toEqual({
      'jobs_claimed_total{kind="cron"}': "1",
      'jobs_claimed_total{kind="watchdog"}': "4",
      'checks_total{outcome="quiet"}': "2",
      'checks_total{outcome="fired"}': "1",
      'checks_total{outcome="failed"}': "1",
      'runs_started_total{kind="cron"}': "1",
      'runs_started_total{kind="watchdog"}': "1",
      'occurrences_total{fate="ran"}': "2",
    });
    expect(Number(lag)).toBeGreaterThanOrEqual(3.5);
    await cron.close();
  });
});
