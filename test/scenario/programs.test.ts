/** Programs and TCP in scenario files: their native form, and refusals by the file and by the clocks. */
import { describe, expect, it } from "vitest";
import { countsIn } from "../../src/clocks/workload/interface_counts.js";
import { modelScenario } from "../../src/models/dcqcn/scenario.js";
import { judgePrograms } from "../../src/result/expectations.js";
import { refuseKernelTraffic } from "../../src/scenario/kernel_traffic.js";
import { parseScenario } from "../../src/scenario/scenario.js";
import type { Scenario } from "../../src/scenario/types.js";
import { problemsOf } from "../fixtures/refusal.js";

function scenarioOf(...traffic: object[]): Scenario {
  const topology = { kind: "star", hosts: 3, link: { rate: "10Gbps" } };
  return parseScenario({ duration: "10ms", topology, traffic }).scenario;
}

const refusal = (...traffic: object[]) => problemsOf(() => scenarioOf(...traffic)).join("\n");

describe("programs in a scenario", () => {
  it("are one for each host, called after what they run, and wait for all of another entry", () => {
    const { programs, flows } = scenarioOf(
      { run: "sbin/iperf3 -s", on: ["h1", "h2"], listens: 5201, background: true },
      { run: "sleep 1", on: "h3", after: "iperf3", start: "2ms" },
      { run: "sleep 2", on: "h3" },
      { run: "[ -e x ]", on: "h1", id: "own", after: ["sleep", "sleep#2"] },
    );
    expect(flows).toEqual([]);
    expect(programs.map(({ id, host, after }) => [id, host, after])).toEqual([
      ["iperf3/h1", "h1", []],
      ["iperf3/h2", "h2", []],
      ["sleep", "h3", ["iperf3/h1", "iperf3/h2"]],
      ["sleep#2", "h3", []],
      ["own", "h1", ["sleep", "sleep#2"]],
    ]);
    expect(programs[0]).toMatchObject({ run: "sbin/iperf3 -s", listens: 5201, background: true, start: 0 });
    expect(programs[2]).toMatchObject({ start: 2e6, background: false });
  });

  it("have the queues of RDMA that face their hosts sampled", () => {
    const { probes } = scenarioOf({ run: "x", on: ["h2", "h1"] }, { run: "y", on: "h2" });
    expect(probes.queues).toEqual(["h2", "h1"].map((port) => ({ switch: "sw", port, priority: 3 })));
  });

  it("compute for nothing, or for a factor of what they take", () => {
    const { programs } = scenarioOf({ run: "x", on: "h1" }, { run: "y", on: "h1", compute: { measured: 0.5 } });
    expect(programs.map(({ compute }) => compute)).toEqual(["free", { measured: 0.5 }]);
  });

  it.each([
    [[{ run: "x", on: "h9" }], "traffic.0.on: unknown host h9"],
    [[{ run: "x", on: "h1", compute: "measured" }], "traffic.0.compute: measured is not free, or { measured: FACTOR }"],
    [[{ run: "x", on: "h1", compute: { measured: 0 } }], "traffic.0.compute.measured: 0 is too small"],
    [[{ run: "x", on: "h1", compute: { measured: 1001 } }], "traffic.0.compute.measured: 1001 is too large"],
    [[{ run: "x", on: ["h1", "h1"] }], "traffic.0.on: h1 is there twice"],
    [[{ run: "x", on: "h1", after: "y" }], "traffic.0.after: unknown program y"],
    [[{ run: "x", on: "h1", after: "x" }], "traffic.0.after: x waits for itself"],
    [
      [
        { run: "x", on: "h1", after: "y" },
        { run: "y", on: "h1", after: "x" },
      ],
      "traffic.1.after: y waits for itself",
    ],
    [[{ run: "x", on: "h1", start: "10ms" }], "traffic.0.start: 10 ms is not before the end"],
    [[{ run: "x", on: "h1", to: "h2" }], "traffic.0.to"],
    [[{ run: "", on: "h1" }], "traffic.0.run"],
    [
      [
        { run: "x", on: "h1", id: "a" },
        { run: "y", on: "h1", id: "a" },
      ],
      "traffic.1.id: a is also the id of traffic.0",
    ],
    [[{ pattern: "tcp", from: "h1", to: "h1" }], "traffic.0.from: h1 sends to itself"],
    [[{ pattern: "tcp", from: "h1", to: "h2", control: "../x" }], "traffic.0.control"],
    [
      [
        { pattern: "tcp", from: "h1", to: "h2", id: "a" },
        { from: "h1", to: "h2", id: "a" },
      ],
      "traffic.1.id: a is also",
    ],
  ])("that cannot be are refused: %j", (traffic, message) => {
    expect(refusal(...traffic)).toContain(message);
  });
});

describe("TCP in a scenario", () => {
  it("is a connection for each sender and stream, of another priority than RDMA", () => {
    const { tcp, probes } = scenarioOf(
      { pattern: "tcp", from: ["h1", "h2"], to: "h3", streams: 2, control: "dctcp", stop: "1s" },
      { pattern: "tcp", id: "one", from: "h1", to: "h2", priority: 3, rate: "1Gbps", bytes: "1MB" },
    );
    expect(tcp.map(({ id }) => id)).toEqual(["tcp/h1", "tcp/h1#2", "tcp/h2", "tcp/h2#2", "one"]);
    expect(tcp[0]).toMatchObject({ from: "h1", to: "h3", control: "dctcp", priority: 0, stop: 10e6 });
    expect(tcp[4]).toMatchObject({ control: "cubic", priority: 3, dscp: 26, rate: 1e9, bytes: 1e6 });
    expect(probes.queues).toContainEqual({ switch: "sw", port: "h3", priority: 0 });
  });
});

describe("where there are neither kernels nor programs", () => {
  it("both are refused by name", () => {
    const program = scenarioOf({ run: "x", on: "h1" });
    const tcp = scenarioOf({ pattern: "tcp", from: "h1", to: "h2" });
    expect(() => refuseKernelTraffic(program, "virtual time")).toThrow("traffic x: virtual time has no hosts");
    expect(() => modelScenario(tcp)).toThrow("traffic tcp: the fluid model has no kernel");
    expect(() => refuseKernelTraffic(scenarioOf({ from: "h1", to: "h2" }), "virtual time")).not.toThrow();
  });
});

it("programs and connections that failed are not as expected", () => {
  const tcp = {
    control: "cubic",
    retransmitted: 0,
    rtt_us: { mean: 0, min: 0, max: 0 },
    cwnd_packets: { mean: 0, max: 0 },
  };
  const flow = { from: "a", to: "b", priority: 0, goodput_bps: 0, wire_bps: 0, packets: 0, lost: 0, cnp_handled: 0 };
  const judged = judgePrograms({
    programs: {
      good: { host: "a", command: "x", status: 0 },
      bad: { host: "b", command: "x", failure: "did not start: y" },
    },
    flows: [
      { ...flow, id: "t", tcp },
      { ...flow, id: "u", tcp: { ...tcp, failure: "read ECONNRESET" } },
    ],
  });
  expect(judged).toEqual([
    { expect: "program good on a ends well", met: true },
    { expect: "program bad on b ends well", met: false, reason: "it did not start: y" },
    { expect: "TCP u lasts", met: false, reason: "it failed: read ECONNRESET" },
  ]);
});

it("counts of an interface are read from the kernel's table", () => {
  const table = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0
 weir0:  123456      78    0    0    0     0          0         0     9012      34    0    5    0     0       0          0
`;
  expect(countsIn(table, "weir0")).toEqual({ tx_packets: 34, tx_bytes: 9012, rx_packets: 78, rx_bytes: 123456 });
  expect(countsIn(table, "weir1")).toEqual({ tx_packets: 0, tx_bytes: 0, rx_packets: 0, rx_bytes: 0 });
});
