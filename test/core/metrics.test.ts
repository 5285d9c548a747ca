import { describe, expect, test } from "vitest";
import { Metrics } from "../../src/core/metrics.ts";
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
});
