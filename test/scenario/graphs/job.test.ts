/** Message graphs as traffic: where ranks are, the flows between them, and several jobs as one graph. */
import { describe, expect, it } from "vitest";
import { GraphBuilder, kAny } from "../../../src/scenario/graphs/graph.js";
import { combined } from "../../../src/scenario/graphs/job.js";
import { parseScenario } from "../../../src/scenario/scenario.js";
import type { Scenario } from "../../../src/scenario/types.js";
import { problemsOf } from "../../fixtures/refusal.js";

const kStar = { kind: "star", hosts: 4, link: { rate: "100Gbps" } };
const kAllReduce = { pattern: "collective", collective: "allreduce", size: "1MB" };

function scenarioOf(entry: object, rest: object = {}): Scenario {
  return parseScenario({ topology: kStar, transport: { type: "rc" }, traffic: [{ ...kAllReduce, ...entry }], ...rest })
    .scenario;
}
const hostsOf = (entry: object) => scenarioOf(entry).graphs[0]?.hosts;
const refusal = (entry: object, rest: object = {}) => problemsOf(() => scenarioOf(entry, rest)).join("\n");

describe("ranks of a message graph", () => {
  it("are packed, in turns, by chance, or as a list says", () => {
    expect(hostsOf({})).toEqual(["h1", "h2", "h3", "h4"]);
    expect(hostsOf({ per_host: 2, ranks: 6 })).toEqual(["h1", "h1", "h2", "h2", "h3", "h3"]);
    expect(hostsOf({ per_host: 2, ranks: 6, place: "round-robin" })).toEqual(["h1", "h2", "h3", "h4", "h1", "h2"]);
    expect(hostsOf({ place: ["h3", "h1"], ranks: 2 })).toEqual(["h3", "h1"]);
    const random = hostsOf({ place: "random" }) ?? [];
    expect([...random].sort()).toEqual(["h1", "h2", "h3", "h4"]);
    expect(hostsOf({ place: "random" })).toEqual(random);
    const others = Array.from({ length: 20 }, (_, seed) =>
      scenarioOf({ place: "random" }, { seed }).graphs[0]?.hosts.join(),
    );
    expect(new Set(others).size).toBeGreaterThan(5);
  });

  it("are refused where there is no room, no such host, or another number", () => {
    expect(refusal({ ranks: 5 })).toContain("5 ranks, and room for 4 on 4 hosts with 1 each");
    expect(refusal({ place: ["h1", "h9"], ranks: 2 })).toContain("h9");
    expect(refusal({ place: ["h1"], ranks: 2 })).toContain("names 1 hosts, and there are 2 ranks");
    expect(refusal({}, { transport: { type: "stream" } })).toContain("wait for others");
    expect(refusal({ operation: "read" })).toContain("by which nobody sends");
  });
});

describe("flows of a message graph", () => {
  it("are one for each pair of ranks at different hosts, with all its bytes", () => {
    const { flows, graphs } = scenarioOf({ id: "job", ranks: 4 });
    expect(flows.map(({ id, from, to }) => [id, from, to])).toEqual([
      ["job/0-1", "h1", "h2"],
      ["job/1-2", "h2", "h3"],
      ["job/2-3", "h3", "h4"],
      ["job/3-0", "h4", "h1"],
    ]);
    expect(flows.map(({ bytes, message, onDemand }) => [bytes, message, onDemand])).toEqual(
      flows.map(() => [1_500_000, 250_000, true]),
    );
    expect([...(graphs[0]?.pairs ?? [])]).toEqual([0, 1, 1, 2, 2, 3, 3, 0]);
  });

  it("are none within a host, and lead both ways where messages ask first", () => {
    expect(scenarioOf({ per_host: 4, ranks: 4 }).flows).toEqual([]);
    expect(scenarioOf({ rendezvous: "100KB" }).flows).toHaveLength(8);
    expect(scenarioOf({ rendezvous: "1MB" }).flows).toHaveLength(4);
  });

  it("begin behind those of other entries", () => {
    const flow = { from: "h1", to: "h2", bytes: "1MB" };
    const { graphs, flows } = parseScenario({
      topology: kStar,
      transport: { type: "rc" },
      traffic: [flow, kAllReduce, { ...kAllReduce, id: "other" }],
    }).scenario;
    expect(graphs.map(({ id, firstFlow }) => [id, firstFlow])).toEqual([
      ["collective", 1],
      ["other", 5],
    ]);
    expect(new Set(flows.map(({ id }) => id)).size).toBe(9);
  });

  it("let a scenario last as long as they need", () => {
    expect(scenarioOf({})).toMatchObject({ duration: 60e9, warmup: 0 });
    expect(scenarioOf({}, { duration: "1ms" })).toMatchObject({ duration: 1e6, warmup: 0 });
  });
});

describe("several graphs as one", () => {
  it("keep their operations, with ranks and dependencies behind those of the one before", () => {
    const job = (ranks: number) => {
      const builder = new GraphBuilder("file", ranks);
      const send = builder.send(0, ranks - 1, 10, 7);
      const joint = builder.calculate(0, 0);
      builder.requires(joint, send);
      builder.irequires(joint, send);
      builder.receive(ranks - 1, kAny, 10, kAny);
      return { graph: builder.build() };
    };
    const { first, kind, peer, tag, dependencies, firstDependency } = combined([job(2), job(3)]);
    expect([...first]).toEqual([0, 2, 3, 5, 5, 6]);
    expect([...kind]).toEqual([0, 2, 1, 0, 2, 1]);
    expect([...peer]).toEqual([1, 0, kAny, 4, 0, kAny]);
    expect([...tag]).toEqual([7, 0, kAny, 7, 0, kAny]);
    expect([...firstDependency]).toEqual([0, 0, 2, 2, 2, 4, 4]);
    expect([...dependencies]).toEqual([0, 0x8000_0000, 3, 0x8000_0003]);
  });
});
