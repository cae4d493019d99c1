/** From scenario to native configuration: numbers take the place of names, and virtual time leaves some things out. */
import { describe, expect, it } from "vitest";
import { composeSimulation } from "../../../src/clocks/sim/compose.js";
import { udpSourcePort } from "../../../src/device/behaviour.js";
import { Operation } from "../../../src/native/reports.js";
import { flowMac, hostIp, hostMac } from "../../../src/scenario/addresses.js";
import { Fabric } from "../../../src/scenario/fabric.js";
import { parseScenario } from "../../../src/scenario/scenario.js";
import type { Scenario } from "../../../src/scenario/types.js";
import { star } from "../../fixtures/networks.js";
import { fatTree, incast } from "./scenarios.js";

const compose = (scenario: Scenario) => composeSimulation(scenario, new Fabric(scenario), []);

describe("composeSimulation", () => {
  it("numbers devices switches first, and gives every cable its two ends", () => {
    const { links, nics, switches } = compose(incast());
    expect(links.map(({ from, to, delay }) => [from.device, from.port, to.device, to.port, delay])).toEqual([
      [1, 0, 0, 0, 2000],
      [2, 0, 0, 1, 2000],
      [0, 2, 3, 0, 2000],
    ]);
    expect(switches[0]?.ports).toEqual([0, 1, 2].map(() => expect.objectContaining({ rate: 10e9, mtu: 1500 })));
    expect(new Set(switches[0]?.ports.map(({ mac }) => mac)).size).toBe(3);
    expect(nics.map(({ mac, ip, rate }) => ({ mac, ip, rate }))[2]).toEqual({
      mac: hostMac(2),
      ip: hostIp(2),
      rate: 10e9,
    });
  });

  it("takes times and rates as they are meant, whatever the scale, and knows no lateness", () => {
    const { nics, switches, sample_interval, reset_after } = compose(
      incast({ scale: 40, fidelity: { lateness: "50ms" }, host: { initial_rate: "3Gbps" } }),
    );
    expect({ sample_interval, reset_after }).toEqual({ sample_interval: 100_000, reset_after: 200_000 });
    expect(nics[0]).toMatchObject({ initial_rate: 3e9, cnp_interval: 50_000 });
    expect(nics[0]).not.toHaveProperty("arrears");
    expect(switches[0]?.buffer.lateness_headroom).toBe(0);
  });

  it("makes queue pairs of flows", () => {
    const scenario = incast({
      transport: { type: "rc", window: 64 },
      traffic: [
        { id: "x", from: ["a", "b"], to: "c", message: "1MB", operation: "send", stop: "5ms" },
        { id: "y", from: "c", to: "a", bytes: "3MB", rate: "2Gbps", start: "10us", outstanding: 7 },
      ],
    });
    const { flows, transport } = compose(scenario);
    const each = (name: keyof typeof flows) => [...(flows[name] ?? [])];
    expect(each("from")).toEqual([0, 1, 2]);
    expect(each("to")).toEqual([2, 2, 0]);
    expect(each("operation")).toEqual([Operation.send, Operation.send, Operation.write]);
    expect(each("message_bytes")).toEqual([1e6, 1e6, 4e6]);
    expect(each("total_bytes")).toEqual([0, 0, 3e6]);
    expect(each("rate_cap")).toEqual([0, 0, 2e9]);
    expect(each("start")).toEqual([0, 0, 10_000]);
    expect(each("stop")).toEqual([1e6, 1e6, 1e6]);
    expect(each("reliable")).toEqual([1, 1, 1]);
    expect(each("outstanding")).toEqual([2, 2, 7]);
    expect(each("udp_source_port")).toEqual([0, 1, 2].map(udpSourcePort));
    expect(each("path_mtu")).toEqual([1024, 1024, 1024]);
    expect(transport).toEqual({
      recovery: "go-back-n",
      timeout: 14,
      retry_count: 7,
      window: 64,
      reordering: 3,
      trim_naks: false,
      spraying: "none",
      entropies: 256,
    });
    expect(compose(incast()).flows.reliable[0]).toBe(0);
  });

  it("gives QCN its parameters as they are meant, and flows their addresses and applications", () => {
    const scenario = incast({
      scale: 40,
      switch: {
        ecn: { enabled: false },
        qcn: { enabled: true, ports: { a: { defence: "edge", alternate_priority: 1 } } },
      },
      host: { qcn: { flows: "five-tuple", reaction_points: 7, cn_tag: false } },
      congestion: { algorithm: "qcn", variant: "qcn-aimd", parameters: { rpgTimeReset: "10ms" } },
      traffic: [
        { id: "x", from: ["a", "b"], to: "c", source_mac: "own" },
        { id: "y", from: "c", to: "a" },
      ],
    });
    const { nics, switches, flows } = compose(scenario);
    expect(nics[2]).toMatchObject({
      congestion_control: "qcn",
      qcn: {
        variant: "aimd",
        rpgTimeReset: 10e6,
        rpgAiRate: 5e6,
      },
      flows: "five-tuple",
      reaction_points: 7,
      cn_tag: false,
      limiter: "pacer",
      token_bucket: { tick: 16_000 },
      seed: 1,
      component: 2,
    });
    expect(switches[0]).toMatchObject({ cn_priorities: 8, qcn: { queue_set_point: 26_000 } });
    expect(switches[0]?.ports.map((port) => port.cn_defence?.[3])).toEqual(["edge", "interior", "interior"]);
    expect(switches[0]?.ports[0]?.cn_alternate_priority).toEqual(Array(8).fill(1));
    expect([...(flows.source_mac ?? [])]).toEqual([flowMac(0), flowMac(1), 0]);
    expect([...(flows.application ?? [])]).toEqual([0, 0, 1]);
    expect(compose(incast()).nics[0]).not.toHaveProperty("qcn");
    expect(compose(incast()).switches[0]).not.toHaveProperty("cn_priorities");
  });

  it("puts the messages of closed loops one after another", () => {
    const scenario = incast();
    const [one, two] = scenario.flows;
    if (one === undefined || two === undefined) throw new Error("two flows");
    const flows = [
      { ...one, sizes: [10, 20] },
      { ...two, sizes: undefined },
      { ...two, sizes: [30, 40, 50] },
    ];
    const { sizes, flows: composed } = compose({ ...scenario, flows });
    expect([...sizes]).toEqual([10, 20, 30, 40, 50]);
    expect([...composed.sizes_count]).toEqual([2, 0, 3]);
    expect([composed.sizes_first[0], composed.sizes_first[2]]).toEqual([0, 2]);
  });

  it("routes by groups of next hops, and pins by number", () => {
    const { switches } = compose(fatTree());
    expect(switches).toHaveLength(20);
    const [edge] = switches;
    // Two hosts of its own, all others up either of two ways.
    const groupOf = (host: number) => edge?.groups[edge.group_of_host[host] as number];
    expect(groupOf(0)).toHaveLength(1);
    expect(groupOf(2)).toHaveLength(2);
    expect(groupOf(15)).toEqual(groupOf(2));

    const pinned = parseScenario({
      topology: {
        hosts: ["h1", "h2"],
        switches: ["l1", "l2", "s1", "s2"],
        links: ["h1 -- l1", "l1 -- s1", "l1 -- s2", "s1 -- l2", "s2 -- l2", "l2 -- h2"],
        routes: [{ from: "h1", to: "h2", via: ["l1", "s2", "l2"] }],
      },
    }).scenario;
    expect(compose(pinned).switches.map(({ pins }) => pins)).toEqual([
      [{ from: 0, to: 1, port: 2 }],
      [{ from: 0, to: 1, port: 2 }],
      [],
      [{ from: 0, to: 1, port: 1 }],
    ]);
    const fabric = new Fabric(pinned);
    expect(fabric.path(0, 1).map(({ link }) => `${link.from}--${link.to}`)).toEqual([
      "h1--l1",
      "l1--s2",
      "s2--l2",
      "l2--h2",
    ]);
    // The way back is not pinned, and goes over the first of the equal paths, against the links' direction.
    expect(fabric.path(1, 0).map(({ direction }) => direction)).toEqual([11, 7, 3, 1]);
  });

  it("samples as many flows as the scenario says, and its queues", () => {
    const scenario = incast({ probes: { flows: 1, queues: ["sw:c:3", "sw:a:6"] } });
    const { sampled_flows, sampled_queues } = compose(scenario);
    expect([...sampled_flows]).toEqual([0]);
    expect(sampled_queues).toEqual([
      { switch: 0, port: 2, priority: 3 },
      { switch: 0, port: 0, priority: 6 },
    ]);
  });

  it("passes on what links do to frames", () => {
    const topology = star(["a", "b", "c"], { impairment: { loss: 0.1, jitter: "3us" } });
    expect(compose(incast({ topology })).links[1]?.impairment).toMatchObject({ loss: 0.1, corrupt: 0, jitter: 3000 });
  });
});

describe("hostIp", () => {
  it("goes on beyond 65,534 hosts, and refuses when addresses end", () => {
    expect([...hostIp(65_534)]).toEqual([10, 87, 255, 255]);
    expect([...hostIp(65_535)]).toEqual([10, 88, 0, 0]);
    expect(() => hostIp(12_000_000)).toThrow(/more than there are addresses for/);
  });
});
