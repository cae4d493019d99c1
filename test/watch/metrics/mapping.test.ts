/** Names of metrics: every counter that the native core can have gets one, and the page that lists them is up to date. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { metricsPage, nativeCounters } from "../../../scripts/generate-metrics.js";
import { aliasesOf, kAliased } from "../../../src/watch/metrics/aliases.js";
import { kGauges } from "../../../src/watch/metrics/gauges.js";
import { kMapped, metricOf, scopeOf } from "../../../src/watch/metrics/mapping.js";
import { describedAs } from "../../native/counters.js";

const counters = nativeCounters();
const metrics = counters.flatMap((counter) => [
  metricOf(counter.scope, counter),
  ...(counter.scope === "nic" ? aliasesOf(counter, true) : []),
]);

describe("the mapping", () => {
  it("finds the native definitions", () => {
    expect(new Set(counters.map(({ scope }) => scope)).size).toBe(6);
    expect(counters).toContainEqual(expect.objectContaining({ scope: "nic", name: "np_cnp_sent", unit: "packets" }));
    // Every X(...) of the headers, however it is wrapped.
    const port = "native/engine/wire_port.h";
    const modules = ["switching/counters.h", "endpoint/counters.h", "endpoint/nic_neighbours.h"];
    const more = ["transport/counters.h", "engine/impairment_port.h"];
    const headers = [...[...modules, ...more].map((file) => `native/${file}`), port, port];
    const defined = headers.flatMap((file) => readFileSync(file, "utf8").match(/^ {2}X\(/gm) ?? []);
    expect(counters.length).toBe(defined.length);
  });

  it("gives every counter names, a unit and a help text", () => {
    for (const { name, type, unit, help } of metrics) {
      expect(name).toMatch(/^(weir|rdma|node_infiniband)_[a-z][a-z0-9_]*$/);
      expect(name.endsWith("_total"), name).toBe(type === "counter");
      expect(unit, name).not.toBe("");
      // OpenMetrics has quotes in help texts escaped, Prometheus' format has them unescaped.
      expect(help, name).toMatch(/^[^"\\]{11,}$/);
    }
  });

  it("gives no two counters the same series", () => {
    const series = metrics.map(({ name, fixed }) => `${name} ${JSON.stringify(fixed)}`);
    expect(series.filter((one, i) => series.indexOf(one) !== i)).toEqual([]);
  });

  it("gives all series of a metric the same type, unit, help and labels", () => {
    for (const metric of metrics) {
      const first = metrics.find(({ name }) => name === metric.name);
      const shape = ({ type, unit, help, labels, fixed }: typeof metric) => [
        type,
        unit,
        help,
        labels,
        Object.keys(fixed).sort(),
      ];
      expect(shape(metric), metric.name).toEqual(shape(first as typeof metric));
    }
  });

  it("shares no name with the daemon's own metrics", () => {
    expect(metrics.filter(({ name }) => name in kGauges)).toEqual([]);
  });

  it("has no entry for a counter that does not exist", () => {
    const known = new Set(counters.map(({ scope, name }) => `${scope} ${name}`));
    expect(kMapped.filter(([scope, name]) => !known.has(`${scope} ${name}`))).toEqual([]);
    expect(kAliased.filter((name) => !known.has(`nic ${name}`))).toEqual([]);
  });

  it("calls endpoint counters as rdma_exporter does, and switch counters by their SAI stems", () => {
    const name = (scope: (typeof counters)[number]["scope"], counter: string) =>
      metricOf(scope, describedAs(counter, {}, scope));
    expect(name("nic", "np_cnp_sent")).toMatchObject({ name: "rdma_np_cnp_sent_total", fixed: { port: "1" } });
    expect(name("nic_priority", "rx_prio_pause")).toMatchObject({
      name: "rdma_roce_pfc_pause_frames_total",
      fixed: { port: "1", direction: "rx" },
    });
    expect(name("switch_priority", "wred_ecn_marked_packets").name).toBe(
      "weir_switch_queue_wred_ecn_marked_packets_total",
    );
    expect(name("switch_port", "drop_no_route")).toMatchObject({
      name: "weir_switch_port_dropped_packets_total",
      fixed: { reason: "no_route" },
    });
  });

  it("knows scopes by their labels, in any order", () => {
    expect(scopeOf({ priority: "3", switch: "sw", port: "a" })).toBe("switch_priority");
    expect(scopeOf({ device: "r", flow: "f", qpn: "0x11" })).toBe("queue_pair");
    expect(scopeOf({ colour: "red" })).toBeUndefined();
  });
});

it("docs/reference/metrics.md is up to date (npm run generate)", () => {
  expect(readFileSync("docs/reference/metrics.md", "utf8")).toBe(metricsPage());
});
