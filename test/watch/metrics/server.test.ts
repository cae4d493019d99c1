/** The server of metrics and health: its clients, and its other answers. */
import { request } from "node:http";
import { createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { isLoopback } from "../../../src/base/http/address.js";
import { kContentTypes } from "../../../src/watch/metrics/instruments.js";
import { MetricsRegistry } from "../../../src/watch/metrics/registry.js";
import { type Health, MetricsServer } from "../../../src/watch/metrics/server.js";
import { kSwitch, source, sw } from "./source.js";

interface Answer {
  status: number | undefined;
  type: string | undefined;
  body: string;
}

function get(url: string, method = "GET", headers = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve({ status: response.statusCode, type: response.headers["content-type"], body }));
    });
    sent.on("error", reject).end();
  });
}

const kServed = (registry: MetricsRegistry, health: () => Health = () => ({ status: "ok" })) => ({
  purpose: { name: "metrics", field: "metrics", hint: "set metrics.address and metrics.port, or metrics: false" },
  scrape: (format?: Parameters<MetricsRegistry["scrape"]>[0]) => registry.scrape(format),
  health,
});

async function serve(health: Health & Record<string, unknown> = { status: "ok" }) {
  const registry = new MetricsRegistry(source([["rx_packets", sw, 1]]).source, kSwitch);
  const server = await MetricsServer.listen(
    { address: "127.0.0.1", port: 0 },
    kServed(registry, () => health),
  );
  onTestFinished(() => server.close());
  return server;
}

describe("the server", () => {
  it("serves /metrics in Prometheus' text format", async () => {
    const { url } = await serve();
    const { status, type, body } = await get(`${url}/metrics`);
    expect(status).toBe(200);
    expect(type).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(body).toContain('weir_switch_port_rx_packets_total{switch="sw0",port="a"} 1\n');
    expect(await get(`${url}/metrics`, "HEAD")).toMatchObject({ status: 200, body: "" });
  });

  it.each([
    // Prometheus 2.42 and 3.4, curl, and others.
    [
      "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
      true,
    ],
    [
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,*/*;q=0.1",
      true,
    ],
    ["application/openmetrics-text; q=0.5", true],
    ["*/*", false],
    ["", false],
    ["text/html", false],
    ["application/openmetrics-text;version=2.0.0", false],
    ["application/openmetrics-text;q=0", false],
    ["text/plain, application/openmetrics-text;version=1.0.0;q=0.2", false],
  ])("answers in OpenMetrics to who asks for it: %s", async (accept, openmetrics) => {
    const { url } = await serve();
    const { type, body } = await get(`${url}/metrics`, "GET", { accept });
    expect(type).toBe(openmetrics ? kContentTypes.openmetrics : kContentTypes.prometheus);
    expect(body.endsWith("# EOF\n")).toBe(openmetrics);
  });

  it("tells health: a port that is down is degraded, a dead worker is unavailable", async () => {
    expect(await get(`${(await serve()).url}/healthz`)).toMatchObject({ status: 200, body: '{"status":"ok"}\n' });
    const degraded = await serve({ status: "degraded", down: ["a"] });
    expect(await get(`${degraded.url}/healthz`)).toMatchObject({
      status: 200,
      body: '{"status":"degraded","down":["a"]}\n',
    });
    expect(await get(`${(await serve({ status: "failed" })).url}/healthz`)).toMatchObject({ status: 503 });
  });

  it("refuses everything else", async () => {
    const { url } = await serve();
    expect(await get(`${url}/`)).toMatchObject({ status: 404 });
    expect(await get(`${url}/metrics`, "POST")).toMatchObject({ status: 405 });
  });

  it.each(["127.0.0.1", "localhost:9464", "[::1]:9464"])("answers who asks for %s", async (host) => {
    expect(await get(`${(await serve()).url}/metrics`, "GET", { host })).toMatchObject({ status: 200 });
  });

  it.each([
    ["another name, by DNS rebinding", { host: "evil.example" }],
    ["a name that only begins like one of this host", { host: "127.0.0.1.evil.example:9464" }],
    ["another site's page", { "sec-fetch-site": "cross-site" }],
  ])("tells %s nothing", async (_, headers) => {
    const { url } = await serve();
    for (const path of ["/metrics", "/healthz"]) {
      const { status, body } = await get(`${url}${path}`, "GET", headers);
      expect([status, body]).toEqual([403, expect.not.stringContaining("ok")]);
    }
  });

  it("elsewhere is known by any name, for Prometheus has its own", async () => {
    const registry = new MetricsRegistry(source([]).source, kSwitch);
    const server = await MetricsServer.listen({ address: "0.0.0.0", port: 0 }, kServed(registry));
    onTestFinished(() => server.close());
    expect(await get(`${server.url}/metrics`, "GET", { host: "leaf-01.example" })).toMatchObject({ status: 200 });
  });

  it("forbids browsers to take its answers for a page", async () => {
    const answer = await fetch(`${(await serve()).url}/metrics`);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  });

  it("says which address it could not have", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void taken.close());
    await new Promise((resolve) => taken.once("listening", resolve));
    const { port } = taken.address() as { port: number };
    const registry = new MetricsRegistry(source([]).source, kSwitch);
    await expect(MetricsServer.listen({ address: "127.0.0.1", port }, kServed(registry))).rejects.toMatchObject({
      message: `metrics: cannot listen at 127.0.0.1:${port}: the port is taken`,
      hint: "set metrics.address and metrics.port, or metrics: false",
    });
  });

  it("knows which addresses only this host reaches", () => {
    expect(["127.0.0.1", "127.9.0.1", "::1", "localhost"].filter((address) => !isLoopback(address))).toEqual([]);
    expect(["0.0.0.0", "::", "10.0.0.1"].filter(isLoopback)).toEqual([]);
  });
});
