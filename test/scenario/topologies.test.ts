/** Kinds of topology: their shapes, that every host reaches every other, over as many paths as there should be. */
import { describe, expect, it } from "vitest";
import { switchMac } from "../../src/scenario/addresses.js";
import { parseScenario } from "../../src/scenario/scenario.js";
import { Graph, kUnreachable, switchPorts } from "../../src/scenario/topology.js";
import { kMostPorts } from "../../src/scenario/topology_schema.js";
import type { Scenario } from "../../src/scenario/types.js";
import { problemsOf } from "../fixtures/refusal.js";

const scenarioOf = (topology: object, rest: object = {}) => parseScenario({ topology, ...rest }).scenario;

const problems = (topology: object, rest: object = {}) => problemsOf(() => parseScenario({ topology, ...rest }));

/** Ports in use, by name of the switch. */
const degrees = (scenario: Scenario) =>
  Object.fromEntries([...switchPorts(scenario)].map(([name, ports]) => [name, ports.length]));

/** Shortest paths from the switch of one host to another host, counted by walking the next-hop groups. */
function pathCount(scenario: Scenario, from: string, to: string): number {
  const tables = new Graph(scenario).nextHopGroups();
  const ports = [...switchPorts(scenario).values()];
  const numbers = new Map(scenario.switches.map(({ name }, i) => [name, i]));
  const target = scenario.hosts.findIndex(({ name }) => name === to);
  const walk = (at: number): number => {
    const group = tables[at]?.groups[tables[at]?.groupOfHost[target] ?? kUnreachable] ?? [];
    return group.reduce((sum, port) => {
      const peer = ports[at]?.[port]?.peer ?? "";
      return sum + (peer === to ? 1 : walk(numbers.get(peer) ?? -1));
    }, 0);
  };
  return walk(numbers.get(new Graph(scenario).neighbour(from) ?? "") ?? -1);
}

describe("kinds of topology", () => {
  const cases: [object, counts: [hosts: number, switches: number, links: number], degrees: Record<string, number>][] = [
    [{ kind: "star", hosts: 8 }, [8, 1, 8], { sw: 8 }],
    [{ kind: "dumbbell", senders: 4 }, [8, 2, 9], { left: 5, right: 5 }],
    [{ kind: "dumbbell", senders: 4, receivers: 1 }, [5, 2, 6], { left: 5, right: 2 }],
    [{ kind: "parking-lot", switches: 4 }, [4, 4, 7], { sw1: 2, sw2: 3, sw3: 3, sw4: 2 }],
    [{ kind: "parking-lot", switches: 3, hosts: [3, 0, 2] }, [5, 3, 7], { sw1: 4, sw2: 2, sw3: 3 }],
    [{ kind: "testbed" }, [20, 10, 36], { t1: 7, t2: 7, t3: 7, t4: 7, l1: 4, l2: 4, l3: 4, l4: 4, s1: 4, s2: 4 }],
    [{ kind: "leaf-spine", leaves: 3, spines: 2, hosts: 5 }, [15, 5, 21], { leaf1: 7, leaf3: 7, spine1: 3, spine2: 3 }],
    [{ kind: "rail", machines: 3, spines: 2 }, [24, 10, 40], { rail1: 5, rail8: 5, spine1: 8, spine2: 8 }],
    [
      { kind: "rail", machines: 3, nics: 4, units: 2, spines: 1 },
      [24, 9, 32],
      { "rail1-1": 4, "rail2-4": 4, spine1: 8 },
    ],
    [
      { kind: "rail", machines: 3, nics: 2, units: 2, pods: 2, spines: 3, cores: 4 },
      [24, 18, 72],
      { "rail1-1": 6, "rail4-2": 6, "spine1-1": 8, "spine2-3": 8, core1: 6, core4: 6 },
    ],
    [{ kind: "fat-tree", k: 4 }, [16, 20, 48], { e1_1: 4, e4_2: 4, a1_1: 4, a4_2: 4, c1: 4, c4: 4 }],
    [{ kind: "fat-tree", k: 4, hosts: 6 }, [48, 20, 80], { e1_1: 8, a1_1: 4, c4: 4 }],
    [{ kind: "fat-tree", k: 2 }, [2, 5, 6], { e1_1: 2, a1_1: 2, c1: 2 }],
  ];

  it.each(cases)("%j", (topology, counts, expected) => {
    const scenario = scenarioOf(topology);
    expect([scenario.hosts.length, scenario.switches.length, scenario.links.length]).toEqual(counts);
    expect(degrees(scenario)).toMatchObject(expected);
    for (const { groupOfHost } of new Graph(scenario).nextHopGroups()) {
      expect(groupOfHost).toHaveLength(scenario.hosts.length);
      expect(groupOfHost).not.toContain(kUnreachable);
    }
  });

  it.each([
    ["dumbbell", { kind: "dumbbell", senders: 2 }, "s1", "r2", 2, 1],
    ["parking-lot", { kind: "parking-lot", switches: 4 }, "h1-1", "h4-1", 4, 1],
    ["testbed, one ToR", { kind: "testbed" }, "h1-1", "h1-5", 1, 1],
    ["testbed, one side", { kind: "testbed" }, "h1-1", "h2-1", 3, 2],
    ["testbed, across", { kind: "testbed" }, "h1-1", "h4-5", 5, 8],
    ["leaf-spine", { kind: "leaf-spine", leaves: 3, spines: 4, hosts: 2 }, "h1-1", "h3-2", 3, 4],
    ["rail, one rail", { kind: "rail", machines: 3, spines: 4 }, "h1-3", "h3-3", 1, 1],
    ["rail, across rails", { kind: "rail", machines: 3, spines: 4 }, "h1-3", "h1-4", 3, 4],
    ["rail, across units", { kind: "rail", machines: 2, units: 2, spines: 4 }, "h2-3", "h3-3", 3, 4],
    ["rail, within a pod", { kind: "rail", machines: 2, units: 2, pods: 2, spines: 4, cores: 3 }, "h1-3", "h3-3", 3, 4],
    ["rail, across pods", { kind: "rail", machines: 2, units: 2, pods: 2, spines: 4, cores: 3 }, "h1-3", "h5-3", 5, 48],
    ["fat-tree, one edge", { kind: "fat-tree", k: 8 }, "h1-1-1", "h1-1-4", 1, 1],
    ["fat-tree, one pod", { kind: "fat-tree", k: 8 }, "h1-1-1", "h1-4-1", 3, 4],
    ["fat-tree, across", { kind: "fat-tree", k: 8 }, "h1-1-1", "h8-4-4", 5, 16],
  ])("%s: switches on the way, and paths", (_, topology, from, to, hops, paths) => {
    const scenario = scenarioOf(topology);
    expect(new Graph(scenario).switchesOnPath(from, to)).toBe(hops);
    expect(pathCount(scenario, from, to)).toBe(paths);
  });

  it("gives links the defaults of `link`, and those between switches what differs", () => {
    const link = { rate: "100Gbps", delay: "2us" };
    const rates = (topology: object) =>
      Object.fromEntries(scenarioOf({ link, ...topology }).links.map((l) => [`${l.from} ${l.to}`, [l.rate, l.delay]]));
    expect(rates({ kind: "dumbbell", senders: 1, bottleneck: { rate: "10Gbps" } })).toEqual({
      "s1 left": [100e9, 2000],
      "r1 right": [100e9, 2000],
      "left right": [10e9, 2000],
    });
    const uplink = { delay: "5us" };
    expect(rates({ kind: "fat-tree", k: 2, uplink })).toMatchObject({
      "h1-1-1 e1_1": [100e9, 2000],
      "e1_1 a1_1": [100e9, 5000],
      "a1_1 c1": [100e9, 5000],
    });
    expect(rates({ kind: "leaf-spine", leaves: 1, spines: 1, hosts: 1, uplink })["leaf1 spine1"]).toEqual([
      100e9, 5000,
    ]);
    expect(rates({ kind: "parking-lot", switches: 2, uplink })["sw1 sw2"]).toEqual([100e9, 5000]);
    expect(scenarioOf({ kind: "testbed" }).links.every((l) => l.rate === 40e9 && l.delay === 1000)).toBe(true);
  });

  it("lets single devices differ, and pins routes", () => {
    const scenario = scenarioOf(
      {
        kind: "testbed",
        host_overrides: { "h1-2": { burst: "1KB" } },
        switch_overrides: { l3: { ecn: { kmin: "7KB" } } },
        routes: [{ from: "h1-1", to: "h2-1", via: ["t1", "l2", "t2"] }],
      },
      { host: { path_mtu: 512 }, switch: { ecn: { kmax: "90KB" } } },
    );
    expect(scenario.hosts.filter(({ burst }) => burst === 1000).map(({ name }) => name)).toEqual(["h1-2"]);
    expect(scenario.hosts.every(({ path_mtu }) => path_mtu === 512)).toBe(true);
    expect(scenario.switches.filter(({ ecn }) => ecn.kmin === 7000).map(({ name }) => name)).toEqual(["l3"]);
    expect(scenario.switches.every(({ ecn }) => ecn.kmax === 90_000)).toBe(true);
    expect(new Graph(scenario).switchesBetween("h1-1", "h2-1")).toEqual(["t1", "l2", "t2"]);
  });

  it("hashes by the scenario's seed unless told another", () => {
    expect(scenarioOf({ kind: "star", hosts: 2 }, { seed: 7 }).ecmp_seed).toBe(7);
    expect(scenarioOf({ kind: "star", hosts: 2, ecmp_seed: 3 }, { seed: 7 }).ecmp_seed).toBe(3);
  });

  it.each([
    [{ kind: "ring" }, /^topology.kind: ring is not one of graph, star, dumbbell, .*fat-tree/],
    [{ kind: "fat-tre", k: 4 }, /^topology.kind: .*did you mean fat-tree\?$/],
    [{ kind: "star" }, /^topology.hosts: is missing/],
    [{ kind: "star", hosts: 1025 }, /^topology.hosts: 1025 is too large; must be at most 1024/],
    [{ kind: "star", hosts: 2, links: ["h1 -- sw"] }, /^topology.links: unknown field; did you mean link\?/],
    [{ kind: "fat-tree", k: 5 }, /^topology.k: k must be even/],
    [
      { kind: "fat-tree", k: 64 },
      /^topology.k: k = 64 with 32 hosts on each edge switch makes 65536 hosts; at most 65000/,
    ],
    [
      { kind: "parking-lot", switches: 3, hosts: [1, 2] },
      /^topology.hosts: 2 numbers for 3 switches; give one number for all switches/,
    ],
    [
      { kind: "leaf-spine", leaves: 2, spines: 10, hosts: 1020 },
      /^topology.links: switch leaf1 has 1030 ports; at most 1024/,
    ],
    [
      { kind: "rail", machines: 2, spines: 4, pods: 2 },
      /^topology.cores: is not there, and 2 pods .*; cores: 4, for example/,
    ],
    [
      { kind: "rail", machines: 2, spines: 4, cores: 2 },
      /^topology.cores: join several pods, and there is one; pods: 2/,
    ],
    [
      { kind: "rail", machines: 1000, units: 2, pods: 5, spines: 4, cores: 2 },
      /^topology.machines: 10000 machines of 8 NICs make 80000 hosts; at most 65000/,
    ],
    [
      { kind: "rail", machines: 1, nics: 1, pods: 4, spines: 300, cores: 1 },
      /^topology.links: switch core1 has 1200 ports; at most 1024/,
    ],
    [
      { kind: "testbed", switch_overrides: { t5: {} } },
      /^topology.switch_overrides.t5: unknown switch t5; did you mean t1\?/,
    ],
    [
      { kind: "testbed", switch_overrides: { t2: { ecn: { kmin: "1MB" } } } },
      /^topology.switch_overrides.t2.ecn.kmin: 1 MB is greater than kmax 200 KB/,
    ],
  ])("refuses %j", (topology, message) => expect(problems(topology)[0]).toMatch(message));

  it("tells of many devices alike in few warnings", () => {
    const topology = { kind: "fat-tree", k: 8 };
    const { warnings } = parseScenario({ topology, switch: { ecn: { kmin: "1MB", kmax: "2MB" } } });
    expect(warnings).toHaveLength(20);
    expect(warnings.at(-1)).toBe("and 61 more warnings");
  });
});

describe("addresses of ports", () => {
  it("are each of one, of the most switches with the most ports, and apart from others'", () => {
    const seen = new Set<number>();
    for (const index of [0, 1, 255, 256, 9_998, 9_999]) {
      for (let port = 0; port < kMostPorts; port++) seen.add(switchMac(index, port));
    }
    expect(seen.size).toBe(6 * kMostPorts);
    expect(Math.min(...seen)).toBe(0x0257_5300_0000);
    expect(Math.max(...seen)).toBeLessThan(0x0257_5400_0000);
    // Rows of 256 do not meet: the last switch's first row ends before the second of the first begins.
    expect(switchMac(9_999, 255)).toBeLessThan(switchMac(0, 256));
    expect(switchMac(9_999, 511)).toBeLessThan(switchMac(0, 512));
  });
});

describe("next-hop groups", () => {
  it("are few: hosts behind the same ports share one", () => {
    const scenario = scenarioOf({ kind: "fat-tree", k: 8 });
    const tables = new Map(
      new Graph(scenario).nextHopGroups().map((table, i) => [scenario.switches[i]?.name, table.groups]),
    );
    // An edge switch: its own hosts, and everything else by any of the four aggregation switches.
    expect(tables.get("e1_1")).toHaveLength(5);
    expect(tables.get("e1_1")).toContainEqual([4, 5, 6, 7]);
    // A core switch: one port to each pod.
    expect(tables.get("c1")?.map((group) => group.length)).toEqual(Array(8).fill(1));
  });

  it("lead nowhere where nothing is", () => {
    const network = {
      hosts: [{ name: "a" }, { name: "b" }],
      switches: [{ name: "x" }, { name: "y" }],
      links: [
        { from: "a", to: "x", rate: 1, delay: 0, mtu: 1500 },
        { from: "y", to: "b", rate: 1, delay: 0, mtu: 1500 },
      ],
      routes: [],
    };
    expect(new Graph(network).nextHopGroups()).toEqual([
      { groups: [[0]], groupOfHost: Uint16Array.of(0, kUnreachable) },
      { groups: [[0]], groupOfHost: Uint16Array.of(kUnreachable, 0) },
    ]);
    expect(new Graph(network).switchesOnPath("a", "b")).toBe(0);
    expect(new Graph(network).switchesBetween("a", "b")).toEqual([]);
  });
});

describe("machines of several NICs", () => {
  const machinesOf = (topology: object) => scenarioOf(topology).hosts.map(({ name, machine }) => `${name} ${machine}`);

  it("are hosts that follow each other at a switch, or one at each rail", () => {
    expect(machinesOf({ kind: "star", hosts: 4, nics: 2 })).toEqual(["h1 m1", "h2 m1", "h3 m2", "h4 m2"]);
    expect(machinesOf({ kind: "leaf-spine", leaves: 2, spines: 1, hosts: 2, nics: 2 })).toEqual([
      "h1-1 m1",
      "h1-2 m1",
      "h2-1 m2",
      "h2-2 m2",
    ]);
    expect(machinesOf({ kind: "rail", machines: 1, nics: 2, units: 2, spines: 1 })).toEqual([
      "h1-1 m1",
      "h1-2 m1",
      "h2-1 m2",
      "h2-2 m2",
    ]);
    expect(machinesOf({ kind: "fat-tree", k: 4, nics: 2 }).slice(1, 3)).toEqual(["h1-1-2 m1", "h1-2-1 m2"]);
    expect(machinesOf({ kind: "rail", machines: 1, nics: 2, pods: 2, spines: 1, cores: 1 })).toEqual([
      "h1-1 m1",
      "h1-2 m1",
      "h2-1 m2",
      "h2-2 m2",
    ]);
    expect(machinesOf({ kind: "rail", machines: 1, nics: 1, spines: 1 })).toEqual(["h1-1 undefined"]);
  });

  it("are written out by name, and keep what else a host says", () => {
    const { hosts } = scenarioOf({
      switches: ["s"],
      hosts: { a: { machine: "m", burst: "64KB" }, b: { machine: "m" }, c: null },
      links: ["a -- s", "b -- s", "c -- s"],
    });
    expect(hosts.map(({ machine, burst }) => [machine, burst])).toEqual([
      ["m", 64_000],
      ["m", 32_000],
      [undefined, 32_000],
    ]);
    const rail = { kind: "rail", machines: 1, nics: 2, spines: 1, host_overrides: { "h1-2": { burst: "64KB" } } };
    expect(scenarioOf(rail).hosts.map(({ machine, burst }) => [machine, burst])).toEqual([
      ["m1", 32_000],
      ["m1", 64_000],
    ]);
  });

  it("are refused where they do not fit", () => {
    const divides = "a number that divides the hosts of a switch";
    const ofFour = (hosts: number) => [`topology.nics: machines of 4 NICs, and ${hosts} hosts at a switch; ${divides}`];
    expect(problems({ kind: "star", hosts: 6, nics: 4 })).toEqual(ofFour(6));
    expect(problems({ kind: "leaf-spine", leaves: 2, spines: 1, hosts: 6, nics: 4 })).toEqual(ofFour(6));
    expect(problems({ kind: "fat-tree", k: 4, nics: 4 })).toEqual(ofFour(2));
    expect(problems({ kind: "rail", machines: 1000, nics: 64, units: 2, spines: 1 })).toEqual([
      "topology.machines: 2000 machines of 64 NICs make 128000 hosts; at most 65000 hosts",
    ]);
    const links = ["a -- s", "b -- s"];
    expect(problems({ switches: ["s"], hosts: { a: { machine: "b" }, b: null }, links })).toEqual([
      "topology.hosts.a.machine: b, of which a is a NIC, is also a host that is not; another name, or machine: b of that host",
    ]);
    expect(problems({ switches: ["s"], hosts: { a: { machine: "b" }, b: { machine: "b" } }, links })).toEqual([]);
  });
});
