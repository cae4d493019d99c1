/** Message graphs on fair shares of links: their ways are those of packets, and what is told is what that network has. */
import { describe, expect, it } from "vitest";
import { fairTimes, idealTimes } from "../../src/clocks/graph_networks.js";
import { graphResults } from "../../src/clocks/graph_watch.js";
import { runSimulation } from "../../src/clocks/sim/run.js";
import { SimulationTables } from "../../src/clocks/sim/tables.js";
import { loadAddon } from "../../src/native/addon.js";
import type { NativeSimulation, SimulationAddon } from "../../src/native/simulation_types.js";
import { linkLoads } from "../../src/result/link_loads.js";
import { Fabric } from "../../src/scenario/fabric.js";
import { parseScenario } from "../../src/scenario/scenario.js";
import type { Scenario } from "../../src/scenario/types.js";

const addon = loadAddon<SimulationAddon>();
const kLink = { rate: "100Gbps", delay: "500ns", mtu: 9000 };
const kRest = {
  host: { path_mtu: 4096 },
  switch: { buffer: { total: "64MB", headroom: "auto" }, pfc: { priorities: [3] } },
  congestion: { algorithm: "none" },
  transport: { type: "rc" },
};
const kAllToAll = { pattern: "collective", collective: "alltoall", size: "8MB", place: "random" };

const scenarioOf = (topology: object, more: object = {}) =>
  parseScenario({ topology, ...kRest, traffic: [kAllToAll], ...more }).scenario;
const fair = (scenario: Scenario) => fairTimes(scenario, new Fabric(scenario), addon);
const seconds = (scenario: Scenario) => {
  const { times } = fair(scenario);
  return graphResults(scenario.graphs, times, new Fabric(scenario), addon).map(({ time_s = Number.NaN }) => time_s);
};

/** Bytes of frames that each direction of a link has carried, by packets. */
async function carriedByPackets(scenario: Scenario): Promise<number[]> {
  const fabric = new Fabric(scenario);
  let bytes: number[] = [];
  const count = (native: NativeSimulation) => {
    const ports = scenario.switches.map((_, i) => fabric.ports[i]?.length ?? 0);
    const counts = { nics: scenario.hosts.length, links: scenario.links.length };
    const tables = new SimulationTables(addon.simulationManifest(), native.counters(), ports, counts);
    bytes = scenario.links.flatMap((_, i) => [0, 1].map((side) => tables.direction(2 * i + side).sum("wire_bytes")));
  };
  const counting: SimulationAddon = {
    ...addon,
    Simulation: function Counting(config: ConstructorParameters<SimulationAddon["Simulation"]>[0]) {
      const native = new addon.Simulation(config);
      return new Proxy(native, {
        get(target, name: keyof NativeSimulation) {
          if (name === "close") count(target);
          return target[name].bind(target);
        },
      });
    } as unknown as SimulationAddon["Simulation"],
  };
  await runSimulation(scenario, { signal: new AbortController().signal }, counting);
  return bytes;
}

describe("fair shares of links", () => {
  const leafSpine = { kind: "leaf-spine", leaves: 4, spines: 3, hosts: 3, link: kLink };
  it.each<[string, object, object]>([
    ["a hash among spines", leafSpine, { seed: 5 }],
    ["switches that route", leafSpine, { switch: { ...kRest.switch, forwarding: "routed" } }],
    ["a fat tree, whose switches choose apart", { kind: "fat-tree", k: 4, link: kLink }, {}],
    ["machines of two NICs on rails", { kind: "rail", machines: 3, nics: 2, units: 2, spines: 2, link: kLink }, {}],
    [
      "a path that is pinned",
      { ...leafSpine, routes: [{ from: "h1-1", to: "h2-1", via: ["leaf1", "spine3", "leaf2"] }] },
      { seed: 2 },
    ],
    ["packets that are sprayed over spines", leafSpine, { switch: { ...kRest.switch, load_balancing: "spray" } }],
  ])("puts messages on the links that packets take: %s", async (what, topology, more) => {
    const scenario = scenarioOf(topology, more);
    const { carried } = fair(scenario);
    const frames = await carriedByPackets(scenario);
    expect(frames).toHaveLength(2 * scenario.links.length);
    // Beside a message: headers of its packets, and a few acknowledgements; where they are sprayed, as luck would have it.
    const luck = what.includes("sprayed") ? 0.05 : 0;
    for (const [i, bytes] of frames.entries()) {
      const own = carried[i] as number;
      expect(bytes).toBeGreaterThanOrEqual(own * (1 - luck));
      expect(bytes).toBeLessThan(own * (1.025 + luck) + 100_000);
    }
  });

  it("has a job on a fabric take as long as packets do, but for headers, where congestion control costs nothing", async () => {
    const scenario = scenarioOf({ kind: "star", hosts: 6, link: kLink });
    const outcome = await runSimulation(scenario, { signal: new AbortController().signal });
    const [time = 0] = seconds(scenario);
    // 5 messages of a sixth of the size from each, and two cables.
    expect(time).toBeCloseTo((5 * 8e6 * 8) / 6 / 100e9 + 1e-6, 8);
    const packets = outcome.result.graphs?.[0]?.time_s ?? Number.NaN;
    expect(packets).toBeGreaterThan(time);
    expect(packets).toBeLessThan(time * 1.06);
  });

  it("is the ideal network where nothing is shared, and two jobs on one link have a half of it each", () => {
    const star = { kind: "dumbbell", senders: 2, bottleneck: kLink, link: kLink };
    const ring = { pattern: "collective", collective: "broadcast", size: "1MB", ranks: 2 };
    const one = { ...ring, id: "one", place: ["s1", "r1"] };
    const other = { ...ring, id: "other", place: ["s2", "r2"] };
    const alone = scenarioOf(star, { traffic: [one] });
    const [job] = alone.graphs;
    if (job === undefined) throw new Error("there is a graph");
    expect(fair(alone).times).toEqual(idealTimes(job, new Fabric(alone), addon));
    const [single = 0] = seconds(alone);
    expect(single).toBeCloseTo(1.5e-6 + 80e-6, 12);
    for (const time of seconds(scenarioOf(star, { traffic: [one, other] })))
      expect(time).toBeCloseTo(1.5e-6 + 160e-6, 12);
    // The second begins when the first has half of its bytes: both have a half of the link then.
    const late = scenarioOf(star, { traffic: [one, { ...other, start: "40us" }] });
    expect(seconds(late).map((time) => Math.round(time * 1e9))).toEqual([121_500, 121_500]);
  });

  it("tells of the links that were busiest, as a part of the time until all had ended", () => {
    const scenario = scenarioOf(
      { kind: "star", hosts: 4, link: kLink },
      { traffic: [{ pattern: "collective", collective: "broadcast", algorithm: "ring", size: "1MB", ranks: 2 }] },
    );
    const { times, carried } = fair(scenario);
    const loads = linkLoads(scenario, carried, graphResults(scenario.graphs, times, new Fabric(scenario), addon));
    expect(loads.map(({ from, to, bytes }) => ({ from, to, bytes }))).toEqual([
      { from: "h1", to: "sw", bytes: 1e6 },
      { from: "sw", to: "h2", bytes: 1e6 },
    ]);
    for (const { utilisation } of loads) expect(utilisation).toBeCloseTo(80 / 81, 9);
  });
});

describe("an all-to-all by PXN on rails", () => {
  const rail = { kind: "rail", machines: 3, nics: 4, spines: 2, link: kLink };
  const scenario = (algorithm: string) =>
    scenarioOf(rail, {
      traffic: [{ pattern: "collective", collective: "alltoall", size: "1200KB", algorithm, inside_rate: "3.6Tbps" }],
    });
  const ofSpines = ({ links }: Scenario, bytes: ArrayLike<number>) =>
    links.reduce(
      (sum, { to }, i) => sum + (/spine/.test(to) ? (bytes[2 * i] as number) + (bytes[2 * i + 1] as number) : 0),
      0,
    );

  it("sends no packet across the spines, which all that goes to other rails crosses otherwise", async () => {
    const [plain, pxn] = [scenario("pairwise"), scenario("pxn")];
    expect(ofSpines(pxn, await carriedByPackets(pxn))).toBe(0);
    // From each of 12 ranks 6 of 11 messages, up and down again.
    expect(ofSpines(plain, fair(plain).carried)).toBe(2 * 12 * 6 * 100_000);
    expect(ofSpines(plain, await carriedByPackets(plain))).toBeGreaterThan(2 * 12 * 6 * 100_000);
  });

  it("takes as long as a NIC needs for what leaves the machine, and no longer than without it", () => {
    const [[pxn = 0], [plain = 0]] = [seconds(scenario("pxn")), seconds(scenario("pairwise"))];
    const nic = (8 * 100_000 * 8) / 100e9;
    expect(pxn).toBeGreaterThan(nic);
    expect(pxn).toBeLessThan(nic * 1.05);
    expect(plain).toBeGreaterThan(pxn);
  });
});
