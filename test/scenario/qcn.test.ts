/** QCN in scenarios: parameters and variants, congestion points and the domain around them, errors and warnings. */
import { describe, expect, it } from "vitest";
import { nativeCongestion } from "../../src/congestion/algorithms.js";
import { qcn } from "../../src/congestion/qcn.js";
import { kUnits } from "../../src/native/units.js";
import { inWallUnits } from "../../src/native/wall.js";
import { changeTimes, priorityRates } from "../../src/scenario/changes.js";
import { CnDomain, portDefence } from "../../src/scenario/cn_domain.js";
import { parseScenario, parseScenarioText } from "../../src/scenario/scenario.js";
import { starText } from "../fixtures/networks.js";
import { refusalOf } from "../fixtures/refusal.js";

const BASE = `
duration: 100ms
topology: ${starText(["h1", "h2", "r"], { rate: "10Gbps" })}
switch:
  ecn: { enabled: false }
  qcn: { enabled: true }
congestion: { algorithm: qcn }
traffic:
  - { id: incast, from: [h1, h2], to: r }
`;
const load = (...set: string[]) => parseScenarioText(BASE, "qcn.yaml", { set });
const refusal = (...set: string[]) => refusalOf(() => load(...set));
const qcnOf = (...set: string[]) => {
  const { congestion } = load(...set).scenario;
  if (congestion.algorithm !== "qcn") throw new Error("not QCN");
  return congestion;
};

describe("parameters of QCN", () => {
  it("are 802.1Qau's by default", () => {
    expect(qcnOf()).toEqual({
      algorithm: "qcn",
      profile: "802.1qau",
      variant: "qcn",
      parameters: {
        rpgTimeReset: 15e6,
        rpgByteReset: 150_000,
        rpgAiCycle: 0.5,
        rpgThreshold: 5,
        hyperThreshold: 5,
        rpgAiRate: 5e6,
        rpgHaiRate: 50e6,
        rpgMaxRate: 0,
        rpgMinRate: 5e6,
        gd: 1 / 128,
        rpgMinDecFac: 0.5,
      },
    });
  });

  it("come from a profile, with overrides in the MIB's units", () => {
    const { parameters } = qcnOf(
      "congestion.profile=netfpga",
      "congestion.parameters={rpgAiRate: 2, rpgHaiRate: 1%, rpgByteReset: 75000, rpgGd: 8, rpgMinDecFac: 25}",
    );
    expect(parameters).toMatchObject({
      rpgTimeReset: 25e6,
      rpgAiRate: 2e6,
      rpgHaiRate: 100e6,
      rpgByteReset: 75_000,
      gd: 1 / 256,
      rpgMinDecFac: 0.25,
      rpgMinRate: 500_000,
    });
    expect(qcnOf("congestion.parameters.rpgTimeReset=10").parameters.rpgTimeReset).toBe(10e6);
    expect(qcnOf("congestion.parameters.rpgAiCycle=25").parameters.rpgAiCycle).toBe(0.25);
    expect(() => qcnOf("congestion.parameters.rpgAiCycle=0")).toThrow(/rpgAiCycle: 0 is out of range/);
  });

  it.each(Object.keys(qcn.profiles))("of profile %s are within their ranges", (name) => {
    const { parameters } = qcnOf(`congestion.profile=${name}`);
    expect(Object.values(parameters).every((value) => Number.isFinite(value))).toBe(true);
    expect(parameters.rpgMinRate).toBeGreaterThan(0);
  });

  it("qcn-t has a timer of its own, and begins hyper-active increase no sooner than by the profile's", () => {
    const set = ["topology.link.rate=1Gbps", "congestion.profile=shu", "congestion.variant=qcn-t"];
    expect(qcnOf(...set).parameters).toMatchObject({ rpgTimeReset: 2.4e6, rpgThreshold: 5, hyperThreshold: 31 });
    expect(qcnOf(...set, "congestion.parameters.rpgTimeReset=5ms").parameters).toMatchObject({
      rpgTimeReset: 5e6,
      hyperThreshold: 15,
    });
    expect(qcnOf("congestion.variant=qcn-aimd").parameters).toEqual(qcnOf().parameters);
  });
});

describe("switch.qcn and host.qcn", () => {
  it("have the MIB's defaults", () => {
    const { scenario, warnings } = load();
    expect(scenario.switches[0]?.qcn).toEqual({
      enabled: true,
      priorities: [3],
      cpQSp: 26_000,
      cpWeight: 1,
      cpSampleBase: 150_000,
      cpMinHeaderOctets: 0,
      notification: "l2",
      cnm_priority: 6,
      defence: "auto",
      alternate_priority: 0,
      ports: {},
    });
    expect(scenario.hosts[0]?.qcn).toEqual({
      priorities: [3],
      flows: "queue-pair",
      reaction_points: 100,
      cn_tag: true,
      notification: "l2",
      limiter: "pacer",
      groups: new Map(),
    });
    expect(warnings).toEqual([]);
  });

  it("go by IP where switches route, which hosts take from their switch, and then send no CN-TAGs", () => {
    const routed = ["switch.forwarding=routed", "switch.qcn.notification=ip"];
    const { scenario, warnings } = load(...routed);
    expect(scenario.hosts.map(({ qcn }) => [qcn.notification, qcn.cn_tag])).toEqual(Array(3).fill(["ip", false]));
    expect(new CnDomain(scenario).at(scenario.switches[0] as never, "h1").defence[3]).toBe("interior");
    expect(warnings).toEqual([]);
    expect(() => load(routed[0] as string)).toThrow("switch.qcn.notification: sw routes");
    expect(() => load(routed[1] as string)).toThrow("sw does not route: it has no address to send CNMs from");
  });

  it("a host's CNPVs are those of its switch, unless it has its own", () => {
    const { scenario } = load(
      "switch.qcn.priorities=[3, 4]",
      "topology.hosts={h1: {qcn: {priorities: [4]}}, h2: {}, r: {}}",
    );
    expect(scenario.hosts.map(({ qcn }) => qcn.priorities)).toEqual([[4], [3, 4], [3, 4]]);
  });

  it.each([
    ["star", "{kind: star, hosts: 3}", 1],
    ["dumbbell", "{kind: dumbbell, senders: 2}", 2],
    ["parking-lot", "{kind: parking-lot, switches: 3}", 3],
    ["testbed", "{kind: testbed}", 10],
    ["leaf-spine", "{kind: leaf-spine, leaves: 2, spines: 2, hosts: 2}", 4],
    ["fat-tree", "{kind: fat-tree, k: 4}", 20],
  ])("reach all switches and hosts of a %s", (_, topology, switches) => {
    const { scenario } = load(`topology=${topology}`, "traffic=[{pattern: permutation}]", "switch.qcn.cpQSp=33KB");
    expect(scenario.switches).toHaveLength(switches);
    expect(scenario.switches.every(({ qcn }) => qcn.enabled && qcn.cpQSp === 33_000)).toBe(true);
    expect(scenario.hosts.every(({ qcn }) => qcn.priorities.join() === "3")).toBe(true);
    const domain = new CnDomain(scenario);
    for (const s of scenario.switches) {
      const peers = scenario.links.flatMap(({ from, to }) => (from === s.name ? [to] : to === s.name ? [from] : []));
      for (const peer of peers) expect(domain.at(s, peer).defence[3]).toBe("interior-ready");
    }
  });
});

describe("the congestion notification domain", () => {
  const network = (qcn: object, host: object = {}) =>
    parseScenario({
      topology: {
        hosts: { a: {}, b: { qcn: host } },
        switches: { s1: { qcn: { enabled: true, priorities: [3, 4] } }, s2: { qcn } },
        links: ["a -- s1", "s1 -- s2", "b -- s2"],
      },
      switch: { ecn: { enabled: false } },
      congestion: { algorithm: "qcn" },
      traffic: [{ from: "a", to: "b" }],
    }).scenario;
  const modes = (scenario: ReturnType<typeof network>, name: string, peer: string) => {
    const s = scenario.switches.find((one) => one.name === name);
    if (s === undefined) throw new Error(`no ${name}`);
    return new CnDomain(scenario).at(s, peer);
  };

  it("ends where the neighbour has no congestion points of that priority", () => {
    const scenario = network({ enabled: true, priorities: [4, 5] });
    expect(modes(scenario, "s1", "s2").defence).toEqual([
      ...["disabled", "disabled", "disabled", "edge", "interior-ready", "disabled", "disabled", "disabled"],
    ]);
    expect(modes(scenario, "s2", "s1").defence.slice(3, 6)).toEqual(["disabled", "interior-ready", "edge"]);
    expect(modes(network({ enabled: false }), "s1", "s2").defence.slice(3, 5)).toEqual(["edge", "edge"]);
  });

  it("has hosts in it, which get CN-TAGs where they know them", () => {
    const scenario = network({ enabled: true }, { cn_tag: false });
    expect(modes(scenario, "s2", "b").defence[3]).toBe("interior");
    expect(modes(scenario, "s1", "a").defence[3]).toBe("interior-ready");
  });

  it("is what a port says, where it does", () => {
    const scenario = network({
      enabled: true,
      defence: "interior",
      alternate_priority: 1,
      ports: { b: { defence: "edge", alternate_priority: 2 } },
    });
    expect(modes(scenario, "s2", "s1")).toMatchObject({ alternate: Array(8).fill(1) });
    expect(modes(scenario, "s2", "s1").defence[3]).toBe("interior");
    expect(modes(scenario, "s2", "b")).toMatchObject({ alternate: Array(8).fill(2) });
    expect(modes(scenario, "s2", "b").defence).toEqual([
      ...["disabled", "disabled", "disabled", "edge", "disabled", "disabled", "disabled", "disabled"],
    ]);
    const qcn = scenario.switches[1]?.qcn;
    expect(qcn && portDefence({ ...qcn, defence: "auto" }, "x", () => "interior-ready").defence[3]).toBe(
      "interior-ready",
    );
  });
});

describe("a wrong scenario with QCN", () => {
  it.each([
    [
      ["congestion.profile=mlx5"],
      "congestion.profile: mlx5 is a profile of DCQCN\n  hint: use 802.1qau, netfpga, shu, or algorithm: dcqcn",
    ],
    [
      ["congestion.algorithm=dcqcn", "congestion.profile=shu"],
      "congestion.profile: shu is a profile of QCN\n  hint: use paper-sigcomm15, mlx5, mellanox-overview, ns3-rdma, hpcc-ns3, otg, or algorithm: qcn",
    ],
    [
      ["congestion.parameters.rpg_ai_rate=5"],
      "congestion.parameters.rpg_ai_rate: is a parameter of DCQCN\n  hint: use those of QCN, or algorithm: dcqcn",
    ],
    [
      ["congestion.algorithm=dcqcn", "congestion.parameters.rpgAiRate=5"],
      "congestion.parameters.rpgAiRate: is a parameter of QCN\n  hint: use those of DCQCN, or algorithm: qcn",
    ],
    [["congestion.algorithm=dcqcn", "congestion.variant=qcn-t"], "congestion.variant: qcn-t is a variant of QCN"],
    [
      ["congestion.parameters.rpgTimeReset=0"],
      "congestion.parameters.rpgTimeReset: 0 is out of range\n  hint: must be 1 us to 100 s; a plain number is in ms",
    ],
    [["congestion.parameters.rpgGd=16"], "congestion.parameters.rpgGd: 16 is out of range\n  hint: must be 1 to 15"],
    [
      ["congestion.parameters.rpgMinRate=20Gbps"],
      "congestion.parameters.rpgMinRate: 20 Gb/s is greater than the line rate 10 Gb/s",
    ],
    [
      ["congestion.parameters={rpgMaxRate: 1Gbps, rpgMinRate: 2Gbps}"],
      "congestion.parameters.rpgMaxRate: 1 Gb/s is less than rpgMinRate 2 Gb/s",
    ],
    [["switch.qcn.cpQSp=99"], "switch.qcn.cpQSp: 99 is out of range\n  hint: must be 100 B to 1 GB"],
    [["switch.qcn.cpWeight=11"], "switch.qcn.cpWeight: 11 is too large\n  hint: must be at most 10"],
    [["switch.qcn.cpSampleBase=9999"], "switch.qcn.cpSampleBase: 9999 is out of range\n  hint: must be 10 KB to 1 GB"],
    [["switch.qcn.cpMinHeaderOctets=65"], "switch.qcn.cpMinHeaderOctets: 65 is too large\n  hint: must be at most 64"],
    [
      ["switch.qcn.priorities=[0, 1, 2, 3, 4, 5, 6, 7]"],
      "switch.qcn.priorities: all 8 priorities are CNPVs\n  hint: at most 7: one at least stays for best effort",
    ],
    [["switch.qcn.priorities=[]"], "switch.qcn.priorities: there is none, so no queue is a congestion point"],
    [
      ["switch.qcn.alternate_priority=3"],
      "switch.qcn.alternate_priority: 3 is a CNPV: frames from outside would get into the domain\n  hint: must be one of 0, 1, 2, 4, 5, 6, 7",
    ],
    [["switch.qcn.ports={h1: {alternate_priority: 3}}"], "switch.qcn.ports.h1.alternate_priority: 3 is a CNPV"],
    [
      ["switch.qcn.ports={h9: {defence: edge}}"],
      "switch.qcn.ports.h9: unknown port of switch sw: h9\n  hint: did you mean h1?",
    ],
    [
      ["switch.qcn.defence=border"],
      "switch.qcn.defence: border is not one of auto, disabled, interior, interior-ready, edge",
    ],
    [["switch.qcn.cpQSp=20MB"], "switch.qcn.cpQSp: 20 MB is not less than the buffer of 12 MB"],
    [
      ["host={path_mtu: 1024, qcn: {cn_tag: true}}", "topology.link.mtu=1090"],
      "host.path_mtu: 1024 needs an MTU of 1092",
    ],
    [["switch.qcn.cnm_priority=3"], "switch.qcn.cnm_priority: 3 is a CNPV: congestion would delay CNMs too"],
    [["host.qcn.reaction_points=0"], "host.qcn.reaction_points: 0 is too small\n  hint: must be at least 1"],
    [
      ["changes=[{at: 100ms, switch: sw, port: r, rate: 1Gbps}]"],
      "changes.0.at: 100 ms is not before the end of the run, 100 ms\n  hint: at must be less than duration",
    ],
    [
      ["changes=[{at: 1ms, switch: sv, port: r, rate: 1Gbps}]"],
      "changes.0.switch: unknown switch sv\n  hint: did you mean sw?",
    ],
    [["changes=[{at: 1ms, switch: sw, port: h3, rate: 1Gbps}]"], "changes.0.port: unknown port of switch sw: h3"],
    [["changes=[{at: 1ms, switch: sw, port: r}]"], "changes.0.rate: is missing"],
  ])("%j", (set, message) => expect(refusal(...set)).toContain(message));
});

describe("reaction point groups", () => {
  const groups = (...set: string[]) => load("host.qcn.priorities=[3, 4]", ...set).scenario.hosts[0]?.qcn.groups;
  const own = "host.qcn.reaction_point_groups={4: {rpgAiRate: 1%, rpgGd: 8, rpgThreshold: 3}}";

  it("have what is written of them over the parameters of all", () => {
    const all = qcnOf().parameters;
    expect(groups()).toEqual(new Map());
    const changed = { ...all, rpgAiRate: 100e6, gd: 1 / 256, rpgThreshold: 3, hyperThreshold: 3 };
    expect(groups(own, "congestion.parameters.rpgHaiRate=200")).toEqual(
      new Map([[4, { ...changed, rpgHaiRate: 200e6 }]]),
    );
    expect(groups("host.qcn.reaction_point_groups={3: {}}")).toEqual(new Map([[3, all]]));
  });

  it("are the native NIC's, at the time scale", () => {
    const { congestion, hosts } = load("host.qcn.priorities=[3, 4]", own).scenario;
    const points = { ...(hosts[0] as (typeof hosts)[0]).qcn, priorities: 0b11000 };
    const meant = nativeCongestion(congestion, { seed: 1, component: 0, qcn: points }) as ReturnType<typeof qcn.native>;
    const native = inWallUnits(meant, kUnits.NativeNic, 10);
    expect(native.qcn.rpgAiRate).toBe(500_000);
    expect(native.rpgs?.[4]).toEqual({
      ...native.qcn,
      rpgAiRate: 10e6,
      gd: 1 / 256,
      rpgThreshold: 3,
      hyperThreshold: 3,
    });
    expect(native.rpgs?.toSpliced(4, 1)).toEqual(Array(7).fill(native.qcn));
  });

  it("are nothing to other algorithms, so that one file can be run in all ways", () => {
    expect(groups(own, "congestion.algorithm=dcqcn")).toEqual(new Map());
  });

  it.each([
    ["{5: {}}", "host.qcn.reaction_point_groups.5: 5 is no CNPV of h1, which has 3, 4"],
    ["{8: {}}", "host.qcn.reaction_point_groups.8: unknown field\n  hint: known fields: 0, 1, 2, 3, 4, 5, 6, 7"],
    ["{4: {rpgAi: 1}}", "host.qcn.reaction_point_groups.4.rpgAi: unknown field\n  hint: known fields: rpgTimeReset"],
    ["{4: {rpgGd: 16}}", "host.qcn.reaction_point_groups.4.rpgGd: 16 is out of range\n  hint: must be 1 to 15"],
    [
      "{4: {rpgMinRate: 11Gbps}}",
      "host.qcn.reaction_point_groups.4.rpgMinRate: 11 Gb/s is greater than the line rate 10 Gb/s",
    ],
  ])("%s", (written, message) => {
    const set = ["host.qcn.priorities=[3, 4]", `host.qcn.reaction_point_groups=${written}`];
    expect(refusal(...set)).toContain(message);
  });
});

describe("an odd scenario with QCN", () => {
  it.each([
    [["switch.qcn.enabled=false"], "congestion.algorithm is qcn, but no switch has congestion points"],
    [["switch.ecn.enabled=true"], "switches mark ECN at CNPVs, but the hosts run QCN and do not look at marks"],
    [["congestion.algorithm=dcqcn"], "switch.qcn is on, but congestion.algorithm is dcqcn: switches send no CNMs"],
    [
      ["switch.qcn.priorities=[0, 3]", "switch.qcn.alternate_priority=1"],
      "switch sw: CNPV 0 is the priority of best effort",
    ],
    [["switch.qcn.cnm_priority=5"], "switch sw: CNMs leave at priority 5, which is not strict"],
    [["switch.qcn.cpQSp=1MB"], "switch sw: cpQSp 1 MB is not below beta (B - P n t_flight) / (P n (beta + 1))"],
    [
      ["host.qcn.cn_tag=false"],
      "host h1: without CN-TAGs, CNMs must return 42 bytes to tell flows by queue-pair apart",
    ],
    [
      ["host.qcn.limiter=token-bucket"],
      "host h1: a token bucket of 3 KB that is filled each 16 us passes 1.5 Gb/s at most",
    ],
    [["traffic.0.priority=4"], "traffic incast: priority 4 is not a CNPV, so QCN does not slow it"],
    [["congestion.parameters.rpgHaiRate=1"], "congestion.parameters: rpgHaiRate 1 Mb/s is less than rpgAiRate 5 Mb/s"],
  ])("%j", (set, message) => expect(load(...set).warnings.join("\n")).toContain(message));

  it("without QCN at the hosts has no congestion points either", () => {
    expect(load("congestion.algorithm=none").scenario.switches[0]?.qcn.enabled).toBe(false);
    expect(load("congestion.algorithm=none", "congestion.profile=shu").scenario.congestion.algorithm).toBe("none");
  });
});

describe("changes", () => {
  const change = "{at: 30ms, switch: sw, port: r, rate: 2Gbps}";

  it("are in order of time, for priority 3 unless they say otherwise", () => {
    const { scenario } = load(
      `changes=[${change}, {at: 10ms, switch: sw, port: h1, priority: 0, rate: unlimited}, {switch: sw, port: r, rate: 9Gbps}]`,
    );
    expect(scenario.changes).toEqual([
      { at: 0, switch: "sw", port: "r", priority: 3, rate: 9e9 },
      { at: 10e6, switch: "sw", port: "h1", priority: 0, rate: 0 },
      { at: 30e6, switch: "sw", port: "r", priority: 3, rate: 2e9 },
    ]);
    expect(changeTimes(scenario)).toEqual([10e6, 30e6]);
    const rates = (port: string, time: number) => priorityRates(scenario, { switch: "sw", port, time });
    expect([rates("r", 0), rates("r", 29e6), rates("r", 30e6)].map((list) => list?.[3])).toEqual([9e9, 9e9, 2e9]);
    expect(rates("h2", 0)).toBeUndefined();
  });
});

describe("source_mac", () => {
  it("is the host's by default", () => {
    const { scenario } = load("traffic=[{from: h1, to: r}, {id: x, from: h2, to: r, source_mac: own, qps: 2}]");
    expect(scenario.flows.map((flow) => flow.source_mac)).toEqual(["host", "own", "own"]);
  });
});
