/** Ranks on machines of several NICs: where they are, who reaches whom inside, and which rails collectives take. */
import { describe, expect, it } from "vitest";
import { kSend } from "../../../src/scenario/graphs/graph.js";
import { nodesOf } from "../../../src/scenario/graphs/place.js";
import { parseScenario } from "../../../src/scenario/scenario.js";
import type { Scenario } from "../../../src/scenario/types.js";
import { problemsOf } from "../../fixtures/refusal.js";

/** Two rails of three machines of two NICs, named so that the NICs of a machine do not follow each other. */
const kWritten = {
  switches: ["r1", "r2"],
  hosts: {
    a1: { machine: "a" },
    b1: { machine: "b" },
    a2: { machine: "a" },
    b2: { machine: "b" },
    c1: { machine: "c" },
    c2: { machine: "c" },
  },
  links: ["a1 -- r1", "b1 -- r1", "c1 -- r1", "a2 -- r2", "b2 -- r2", "c2 -- r2", "r1 -- r2"],
};
const kRail = { kind: "rail", machines: 4, nics: 4, spines: 2 };
const kAllReduce = { pattern: "collective", collective: "allreduce", size: "1MB" };

const parse = (entry: object, topology: object, seed = 1) =>
  parseScenario({ topology, seed, transport: { type: "rc" }, traffic: [{ ...kAllReduce, ...entry }] });
const scenarioOf = (entry: object, topology: object = kWritten, seed?: number): Scenario =>
  parse(entry, topology, seed).scenario;
const hostsOf = (entry: object, topology?: object, seed?: number) => scenarioOf(entry, topology, seed).graphs[0]?.hosts;
const refusal = (entry: object, topology: object = kWritten) => problemsOf(() => parse(entry, topology)).join("\n");

/** Pairs of hosts that flows are between. */
const pairsOf = ({ flows }: Scenario) => new Set(flows.map(({ from, to }) => `${from} ${to}`));

describe("ranks on machines of several NICs", () => {
  it("fill a machine before they go on to the next, each at the next NIC", () => {
    expect(hostsOf({})).toEqual(["a1", "a2", "b1", "b2", "c1", "c2"]);
    expect(hostsOf({ per_host: 2, ranks: 6 })).toEqual(["a1", "a1", "a2", "a2", "b1", "b1"]);
    expect(hostsOf({ ranks: 3, hosts: ["c2", "a1", "c1"] })).toEqual(["c2", "c1", "a1"]);
    expect(hostsOf({ ranks: 6 }, kRail)).toEqual(["h1-1", "h1-2", "h1-3", "h1-4", "h2-1", "h2-2"]);
  });

  it("take machines in turns by round-robin, and then another NIC of each", () => {
    expect(hostsOf({ place: "round-robin" })).toEqual(["a1", "b1", "c1", "a2", "b2", "c2"]);
    expect(hostsOf({ place: "round-robin", per_host: 2, ranks: 8 })?.slice(6)).toEqual(["a1", "b1"]);
  });

  it("stay together on their machines where these are chosen at random", () => {
    const orders = Array.from({ length: 20 }, (_, seed) => hostsOf({ place: "random" }, kWritten, seed) ?? []);
    for (const order of orders) {
      const pairs = [0, 2, 4].map((at) => order.slice(at, at + 2).join());
      expect([...pairs].sort()).toEqual(["a1,a2", "b1,b2", "c1,c2"]);
    }
    expect(new Set(orders.map(String)).size).toBe(6);
  });

  it("have no flow to another NIC of their machine", () => {
    const scenario = scenarioOf({ algorithm: "direct" });
    expect(scenario.graphs[0]?.machines).toEqual(["a", "a", "b", "b", "c", "c"]);
    expect(scenario.flows).toHaveLength(6 * 4);
    expect(pairsOf(scenario)).not.toContain("a1 a2");
    expect(pairsOf(scenario)).toContain("a1 b2");
  });
});

describe("collectives on machines of several NICs", () => {
  const rails = (scenario: Scenario) => new Set([...pairsOf(scenario)].map((pair) => pair.match(/\d( |$)/g)?.join("")));

  it("have a ring for each NIC, and each NIC sends as much as any other on its own rail", () => {
    for (const collective of ["allreduce", "allgather", "reducescatter"]) {
      const scenario = scenarioOf({ collective, algorithm: "ring", size: "1024KB" }, kRail);
      expect(rails(scenario)).toEqual(new Set(["1 1", "2 2", "3 3", "4 4"]));
      expect(scenario.flows).toHaveLength(16);
      expect(new Set(scenario.flows.map(({ from }) => from)).size).toBe(16);
      expect(new Set(scenario.flows.map(({ to }) => to)).size).toBe(16);
      expect(new Set(scenario.flows.map(({ bytes }) => bytes)).size).toBe(1);
    }
  });

  it("cross rails once in each ring where the number of machines is odd", () => {
    const scenario = scenarioOf({ algorithm: "ring" }, { ...kRail, machines: 3 });
    const crossing = scenario.flows.filter(({ from, to }) => from.slice(-1) !== to.slice(-1));
    expect(crossing.map(({ from, to }) => `${from} ${to}`).sort()).toEqual([
      "h3-1 h1-2",
      "h3-2 h1-3",
      "h3-3 h1-4",
      "h3-4 h1-1",
    ]);
    expect(scenario.flows).toHaveLength(12);
  });

  it.each(["tree", "two-level-ring", "two-level-tree"])("use all rails, and cross none, by %s", (algorithm) => {
    const scenario = scenarioOf({ algorithm }, kRail);
    expect(rails(scenario)).toEqual(new Set(["1 1", "2 2", "3 3", "4 4"]));
    const sent = new Map<string, number>();
    for (const { from, bytes } of scenario.flows) {
      const rail = from.slice(-1);
      sent.set(rail, (sent.get(rail) ?? 0) + (bytes ?? 0));
    }
    expect(new Set(sent.values()).size).toBe(1);
  });

  it("take NICs in turns where each has several ranks", () => {
    const scenario = scenarioOf({ algorithm: "ring", per_host: 2 }, kRail);
    expect(scenario.flows).toHaveLength(16);
    expect(rails(scenario)).toEqual(new Set(["1 1", "2 2", "3 3", "4 4"]));
    const more = scenarioOf({ algorithm: "ring", per_host: 2, channels: 8 }, kRail);
    expect(rails(more)).toEqual(rails(scenario));
    expect(new Set(more.flows.map(({ bytes }) => bytes)).size).toBeLessThanOrEqual(2);
  });

  it("are by one ring where it is asked for, or machines are not alike", () => {
    const ring = (entry: object) => scenarioOf({ algorithm: "ring", ...entry }, kRail).flows.length;
    expect(ring({ channels: 1 })).toBe(4);
    expect(ring({ ranks: 10 })).toBe(3);
  });

  it("know machines also by turns: rings go from one to the next, and a broadcast begins at rank 0", () => {
    const turns = scenarioOf({ algorithm: "ring", place: "round-robin" }, kRail);
    expect(pairsOf(turns)).toEqual(pairsOf(scenarioOf({ algorithm: "ring" }, kRail)));
    const place = ["a2", "b2", "a1", "b1"];
    const { graphs } = scenarioOf({ collective: "broadcast", algorithm: "ring", place, ranks: 4 });
    const [{ graph }] = graphs as [(typeof graphs)[number]];
    const waits = (i: number) => (graph.firstDependency[i + 1] as number) - (graph.firstDependency[i] as number);
    const first = [...graph.kind].flatMap((kind, i) => (kind === kSend && waits(i) === 0 ? [i] : []));
    expect(first.length).toBeGreaterThan(0);
    for (const send of first) expect(send).toBeLessThan(graph.first[1] as number);
  });

  it("of two levels are refused where machines have not as many ranks each", () => {
    expect(refusal({ algorithm: "two-level-ring", ranks: 6 }, kRail)).toContain(
      "allreduce: two-level-ring: some machines have fewer than 4 ranks; it takes as many ranks on each machine",
    );
    expect(refusal({ algorithm: "tree", ranks: 6 }, kRail)).toBe("");
  });
});

describe("nodes of placed ranks", () => {
  const context = { hosts: ["a1", "b1", "a2", "b2"], machineOf: (host: string) => host.slice(0, 1) };

  it("follow the order of NICs, and tell how many there are", () => {
    expect(nodesOf(["b2", "a1", "b1", "a2"], context)).toEqual({
      order: [2, 0, 1, 3],
      count: 2,
      most: 2,
      perNode: 2,
      nics: 2,
    });
    expect(nodesOf(["a1", "a1", "a2", "b1"], context)).toMatchObject({
      count: 2,
      most: 3,
      perNode: undefined,
      nics: 1,
    });
    // As many ranks, but on one NIC more.
    expect(nodesOf(["a1", "a2", "b1", "b1"], context)).toMatchObject({ perNode: 2, nics: 1 });
  });
});
