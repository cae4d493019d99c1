/** From scenario to native configuration: some values scale and others do not, and both ends of everything agree. */

import { describe, expect, it } from "vitest";
import { composeLab, labNetwork, stackMtu, stackNode } from "../../../src/clocks/lab/compose.js";
import type { NativeNic, NativeSwitch, NativeWorkerNetwork, WorkerConfig } from "../../../src/native/types.js";
import { hostIp, hostMac } from "../../../src/scenario/addresses.js";
import { parseScenario, type Scenario } from "../../../src/scenario/scenario.js";
import { star } from "../../fixtures/networks.js";
import { dcqcnOf, smallScenario } from "./evidence.js";

function compose(
  scenario: Scenario,
  scale: number,
  inhabited = false,
  unsampled = false,
  prompt = false,
): [WorkerConfig, WorkerConfig] {
  return composeLab(scenario, {
    ...{ scale, inhabited, unsampled, prompt },
    end: (link, node) => ({ interface: `${node}-${link}`, namespaceFd: 100 + link }),
    cpus: { switches: 1, nics: 0 },
  }) as [WorkerConfig, WorkerConfig];
}
const nicOf = ([, nics]: readonly WorkerConfig[], name: string) =>
  nics?.nics.find((nic) => nic.name === name) as NativeNic;
const networkOf = ([, { network }]: readonly [WorkerConfig, WorkerConfig]) => network as NativeWorkerNetwork;
const switchOf = ([switches]: readonly WorkerConfig[], name: string) =>
  switches?.switches.find((s) => s.name === name) as NativeSwitch;

/** Two leaves, two spines, a host at each leaf and one more at the first. */
function clos(): Scenario {
  return parseScenario({
    scale: 4,
    topology: {
      hosts: ["h1", "h2", "h3"],
      switches: ["l1", "l2", "s1", "s2"],
      links: ["h1 -- l1", "h3 -- l1", "l1 -- s1", "l1 -- s2", "s1 -- l2", "s2 -- l2", "l2 -- h2"],
      routes: [{ from: "h1", to: "h2", via: ["l1", "s2", "l2"] }],
    },
    traffic: [
      { id: "out", from: ["h1", "h3"], to: "h2", qps: 2 },
      { id: "back", from: "h2", to: "h1" },
    ],
  }).scenario;
}

describe("composeLab", () => {
  it("divides rates and multiplies times by the scale", () => {
    const scenario = smallScenario({
      traffic: [{ from: "a", to: "c", rate: "3Gbps", start: "1ms", stop: "9ms" }],
      host: { initial_rate: "2Gbps", receive_buffer: { rate: "5Gbps" } },
      switch: { ageing: "10s" },
      topology: star(["a", "b", "c"], {
        rate: "10Gbps",
        delay: "2us",
        impairment: { loss: 0.1, jitter: "3us", reorder_delay: "7us" },
      }),
    });
    const configs = compose(scenario, 8);
    expect(configs[0]).toMatchObject({ sample_interval: 80e6, reset_after: 160e6 });
    const nic = nicOf(configs, "a");
    expect(nic.port).toMatchObject({ rate: 1.25e9, delay: 16_000 });
    expect(nic.port.impairment).toMatchObject({ loss: 0.1, delay: 0, jitter: 24_000, reorder_delay: 56_000 });
    expect(nic).toMatchObject({ initial_rate: 0.25e9, receive_buffer: { drain: 0.625e9 } });
    const { start, stop, rate_cap } = networkOf(configs).flows;
    expect([start, stop, rate_cap]).toEqual([8e6, 72e6, 0.375e9].map((value) => Float64Array.of(value)));
    expect(switchOf(configs, "sw")).toMatchObject({
      ageing: 80e9,
      ports: [{ rate: 1.25e9 }, { rate: 1.25e9 }, { rate: 1.25e9 }],
    });
    const p = dcqcnOf(scenario);
    expect(nic.cnp_interval).toBe(p.min_time_between_cnps * 8);
    expect(nic.dcqcn).toMatchObject({
      rpg_time_reset: p.rpg_time_reset * 8,
      dce_tcp_rtt: p.dce_tcp_rtt * 8,
      rpg_ai_rate: p.rpg_ai_rate / 8,
      rpg_hai_rate: p.rpg_hai_rate / 8,
      rpg_min_rate: Math.round(p.rpg_min_rate / 8),
    });
  });

  it("hands over flows with all that they send, and timers as much longer as the clock is slower", () => {
    const scenario = smallScenario({
      transport: { type: "rc", recovery: "selective-repeat", timeout: 9, window: 100 },
      traffic: [
        { id: "x", from: "a", to: "c", outstanding: 5 },
        { pattern: "pairs", count: 1, hosts: ["a", "b"], sizes: 7000 },
      ],
    });
    const configs = compose(scenario, 8);
    const { flows, sizes, transport, names } = networkOf(configs);
    const [x, pair] = scenario.flows;
    expect(names).toEqual([x?.id, pair?.id]);
    expect([...flows.reliable]).toEqual([1, 1]);
    expect([...flows.outstanding]).toEqual([5, 1]);
    expect([...flows.sizes_count]).toEqual([0, sizes.length]);
    expect(sizes.length).toBeGreaterThan(1000);
    expect(sizes).toEqual(Uint32Array.from(pair?.sizes ?? []));
    expect(transport).toMatchObject({ recovery: "selective-repeat", timeout: 9, window: 100, time_scale: 8 });
    for (const nic of configs[1]?.nics ?? []) expect(nic.lab).toBe(true);
    for (const nic of compose(smallScenario(), 8, true)[1].nics) expect(nic.lab).toBeUndefined();
  });

  it("leaves bytes, counts, shares and probabilities as they are", () => {
    const scenario = smallScenario();
    const [one, many] = [compose(scenario, 1), compose(scenario, 100)];
    const [before, after] = [switchOf(one, "sw"), switchOf(many, "sw")];
    const { lateness_headroom: _, ...bytes } = before.buffer;
    expect(after.buffer).toMatchObject(bytes);
    for (const key of ["red", "scheduler", "priority_map", "pfc_priorities", "ecn_priorities"] as const) {
      expect(after[key]).toEqual(before[key]);
    }
    const points = [one, many].map((configs) => nicOf(configs, "a").dcqcn);
    for (const key of [
      "g",
      "rpg_byte_reset",
      "rpg_threshold",
      "rpg_min_dec_fac",
      "initial_alpha_value",
      "alpha_decays_at_line_rate",
    ] as const) {
      expect(points[1]?.[key]).toBe(points[0]?.[key]);
    }
    for (const key of ["message_bytes", "path_mtu", "total_bytes", "udp_source_port"] as const) {
      expect(networkOf(many).flows[key]).toEqual(networkOf(one).flows[key]);
    }
  });

  it("adds headroom for lateness in wall time: what a link carries in it", () => {
    // 10 Gb/s at scale 10, for 5 ms.
    expect(switchOf(compose(smallScenario(), 10), "sw").buffer.lateness_headroom).toBe((1e9 / 8) * 5e-3);
    expect(switchOf(compose(smallScenario({ fidelity: { lateness: "0ms" } }), 10), "sw").buffer.lateness_headroom).toBe(
      0,
    );
  });

  it("lets a late NIC make up for its burst, whatever the scale", () => {
    for (const scale of [1, 50]) {
      const { arrears, port } = nicOf(compose(smallScenario({ host: { burst: "32KB" } }), scale), "a");
      expect((arrears * port.rate) / 8e9).toBeCloseTo(32_000, -1);
    }
  });

  it("has room for frames and for all that a buffer holds", () => {
    const scenario = smallScenario();
    const [switches, nics] = compose(scenario, 10);
    for (const config of [switches, nics]) expect(config.packet_bytes).toBeGreaterThanOrEqual(1500 + 18);
    expect(switches.packets * 1024).toBeGreaterThan(scenario.switches[0]?.buffer.total ?? Number.POSITIVE_INFINITY);
    for (const port of switchOf([switches], "sw").ports) {
      expect(port.slot_bytes).toBeGreaterThanOrEqual(1500 + 18);
      // 5 ms at 1 Gb/s are 610 frames of 1024 bytes.
      expect(port.receive_slots).toBeGreaterThanOrEqual(610);
    }
  });

  it("hands over the whole network by numbers, of which the NICs have their queue pairs", () => {
    const scenario = clos();
    const configs = compose(scenario, 4);
    const { flows, nics, first_mac, names } = networkOf(configs);
    expect(names).toEqual(scenario.flows.map(({ id }) => id));
    expect([...flows.from]).toEqual([0, 0, 2, 2, 1]);
    expect([...flows.to]).toEqual([1, 1, 1, 1, 0]);
    expect(nics.map(({ ip }) => ip)).toEqual(scenario.hosts.map((_, i) => hostIp(i)));
    expect(configs[1].nics.map(({ mac }) => mac - first_mac)).toEqual([0, 1, 2]);
    expect(configs[1].nics.flatMap(({ queue_pairs }) => queue_pairs)).toEqual([]);
    expect(configs[0]).not.toHaveProperty("network");
  });

  it("gives flows source ports of their own, in the dynamic range", () => {
    const ports = [...networkOf(compose(clos(), 4)).flows.udp_source_port];
    expect(new Set(ports).size).toBe(5);
    expect(ports.every((port) => port >= 0xc000 && port <= 0xffff)).toBe(true);
  });

  it("addresses hosts by their order, no two devices alike, and no interface as its NIC", () => {
    const scenario = clos();
    const configs = compose(scenario, 4);
    expect(hostMac(0).toString(16)).toBe("25745000001");
    expect(hostMac(299).toString(16)).toBe("2574500012c");
    expect([...hostIp(0)]).toEqual([10, 87, 0, 1]);
    expect([...hostIp(299)]).toEqual([10, 87, 1, 44]);
    expect(configs[1].nics.map((nic) => nic.mac)).toEqual(scenario.hosts.map((_, i) => hostMac(i)));
    // With them the host's stack would look for a route for each frame.
    for (const link of labNetwork(scenario).links)
      expect(link).toEqual({ from: link.from, to: link.to, mtu: link.mtu });
    const macs = [
      ...configs[1].nics.map((nic) => nic.mac),
      ...configs[0].switches.flatMap((s) => s.ports.map((p) => p.mac)),
    ];
    expect(new Set(macs).size).toBe(3 + 11);
  });

  it("spins where naps would be much of the control loop, and naps where they are not", () => {
    const polling = (scale: number, congestion = {}) =>
      compose(smallScenario({ congestion }), scale).map((config) => config.polling);
    const quick = { profile: "mlx5" }; // CNPs every 2 us: the loop counts as 10 us
    expect(polling(39, { profile: "paper-sigcomm15" })).toEqual(["spinning", "spinning"]);
    expect(polling(40, { profile: "paper-sigcomm15" })).toEqual(["interrupt", "interrupt"]);
    expect(polling(199, quick)).toEqual(["spinning", "spinning"]);
    expect(polling(200, quick)).toEqual(["interrupt", "interrupt"]);
  });

  it("routes over all shortest paths and pins what is pinned, for that source only", () => {
    const configs = compose(clos(), 4);
    const l1 = switchOf(configs, "l1");
    const ports = l1.ports.map((port) => port.name);
    expect(ports).toEqual(["h1", "h3", "s1", "s2"]);
    expect(l1.routes).toContainEqual({ destination_mac: hostMac(1), ports: [2, 3] });
    expect(l1.routes).toContainEqual({ destination_mac: hostMac(0), ports: [0] });
    expect(l1.pins).toEqual([{ source_mac: hostMac(0), destination_mac: hostMac(1), port: 3 }]);
    expect(switchOf(configs, "s1").pins).toEqual([]);
    expect(switchOf(configs, "s2").pins).toEqual([{ source_mac: hostMac(0), destination_mac: hostMac(1), port: 1 }]);
  });

  it("leaves a learning switch to learn", () => {
    const sw = switchOf(compose(smallScenario({ switch: { forwarding: "learning" } }), 10), "sw");
    expect(sw).toMatchObject({ learning: true, routes: [] });
  });

  it("puts each end of each link where the network has it, and draws its faults apart", () => {
    const scenario = smallScenario({
      topology: {
        link: { impairment: { loss: 0.5 } },
        hosts: ["a", "b", "c"],
        switches: ["sw"],
        links: ["a -- sw", "sw -- b", "c -- sw"],
      },
    });
    const configs = compose(scenario, 10);
    expect(nicOf(configs, "b").port).toMatchObject({ name: "sw", interface: "b-1", namespace_fd: 101 });
    expect(switchOf(configs, "sw").ports[1]).toMatchObject({ name: "b", interface: "sw-1", namespace_fd: 101 });
    const ends = [...switchOf(configs, "sw").ports, ...configs[1].nics.map((nic) => nic.port)];
    expect(new Set(ends.map((port) => port.impairment?.component)).size).toBe(6);
  });

  it("turns features off where the scenario does", () => {
    const off = smallScenario({
      switch: { pfc: { enabled: false }, ecn: { enabled: false } },
      congestion: { algorithm: "none" },
    });
    const configs = compose(off, 10);
    expect(switchOf(configs, "sw")).toMatchObject({ pfc_priorities: 0, ecn_priorities: 0 });
    expect(nicOf(configs, "a")).toMatchObject({ congestion_control: "none", pfc_priorities: 0 });
    expect(nicOf(configs, "a")).not.toHaveProperty("dcqcn");
    const on = compose(smallScenario(), 10);
    expect(switchOf(on, "sw")).toMatchObject({ pfc_priorities: 8, ecn_priorities: 8 });
    expect(nicOf(on, "a")).toMatchObject({ congestion_control: "dcqcn", pfc_priorities: 8 });
  });
});

describe("an inhabited lab", () => {
  const scenario = clos();
  const workers = compose(scenario, 4, true);

  it("has hosts whose kernel is behind the NIC, and has its addresses", () => {
    const { nodes, links } = labNetwork(scenario, true);
    expect(nodes[1]).toEqual({ name: "h2", role: "host" });
    expect(nodes[3]).toEqual({ name: "l1", role: "switch" });
    expect(nodes.find(({ name }) => name === stackNode("h2"))).toEqual({
      name: "h2 (stack)",
      role: "host",
      addresses: ["10.87.0.2/16", "fd57:4549:5200::2/64"],
    });
    const first = scenario.links.length;
    expect(links[first + 1]).toEqual({ from: "h2", to: "h2 (stack)", mtu: 1500, toMac: hostMac(1) });
    expect(links[0]).not.toHaveProperty("fromMac");
    const nic = nicOf(workers, "h2");
    expect(nic.mac).toBe(hostMac(1));
    expect(nic.port).toMatchObject({ offloads: true });
    expect(nic.port.roce_only).toBeUndefined();
    expect(nic.stack_port).toMatchObject({ interface: `h2-${first + 1}`, offloads: true, rate: 0 });
    expect(nic.stack_queue).toBeGreaterThan(64 * 1024);
    expect(nic.verbs_queue_pairs).toBeGreaterThan(0);
    expect(nic.addresses?.map(({ version }) => version)).toEqual([4, 6]);
    expect([...(nic.addresses?.[0]?.bytes ?? [])]).toEqual([...hostIp(1)]);
  });

  it("has switches that pass what kernels send, and frames to groups along a tree", () => {
    const l1 = switchOf(workers, "l1");
    // Ports go to h1, h3, s1, s2.
    expect(l1.ports.map(({ floods }) => floods)).toEqual([true, true, true, false]);
    expect(l1.ports.every(({ offloads }) => offloads)).toBe(true);
    expect(switchOf(workers, "s2").ports.map(({ floods }) => floods)).toEqual([false, false]);
  });

  it("leaves its NICs room for a CN-TAG in what kernels send, where frames may have one", () => {
    const under = (qcn: object) => smallScenario({ congestion: { algorithm: "qcn" }, host: { qcn } });
    expect(stackMtu(scenario, 0)).toBe(1500);
    expect(stackMtu(under({ cn_tag: true, priorities: [3] }), 0)).toBe(1496);
    expect(stackMtu(under({ cn_tag: false, priorities: [3] }), 0)).toBe(1500);
  });

  it("sleeps while nothing happens, and takes no samples where nobody wants any", () => {
    expect(workers[0].sample_interval).toBeGreaterThan(0);
    for (const worker of compose(scenario, 4, true, true, true))
      expect(worker).toMatchObject({ polling: "interrupt", prompt: true, sample_interval: 0 });
    // A worker naps if no programs wait for short messages.
    for (const worker of compose(scenario, 4, true))
      expect(worker).toMatchObject({ polling: "interrupt", prompt: false });
  });

  it("is unlike a run, whose hosts keep quiet", () => {
    const { nodes, links } = labNetwork(scenario);
    expect(nodes[1]).toEqual({ name: "h2", role: "host" });
    expect(links[0]?.fromMac).toBeUndefined();
    const run = compose(scenario, 4);
    expect(switchOf(run, "l1").ports.some(({ floods, offloads }) => floods === true || offloads === true)).toBe(false);
    expect(nicOf(run, "h2")).not.toHaveProperty("stack_port");
  });
});
