/** Message graphs in virtual time: when they end, what is told of them, and that it depends on nothing else. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { SimOutcome } from "../../../src/clocks/sim/types.js";
import { GraphBuilder } from "../../../src/scenario/graphs/graph.js";
import { parseScenario } from "../../../src/scenario/scenario.js";
import type { Scenario } from "../../../src/scenario/types.js";
import { sliced } from "./sliced.js";

const kNetwork = {
  topology: { kind: "star", hosts: 8, link: { rate: "100Gbps", delay: "1us", mtu: 9000 } },
  host: { path_mtu: 4096 },
  switch: { buffer: { total: "16MB", headroom: "auto" }, pfc: { priorities: [3] } },
  congestion: { algorithm: "none" },
  transport: { type: "rc" },
};
const kAllReduce = { pattern: "collective", collective: "allreduce", algorithm: "ring", size: "8MB" };

const scenarioOf = (traffic: object[], more: object = {}) => parseScenario({ ...kNetwork, traffic, ...more }).scenario;
const run = (
  scenario: Scenario,
  more: Partial<Parameters<typeof runSimulation>[1]> = {},
  addon?: Parameters<typeof runSimulation>[2],
) => runSimulation(scenario, { signal: new AbortController().signal, ...more }, addon);
const graphOf = ({ result }: SimOutcome) => result.graphs?.[0];

/** A scenario with this graph in place of the collective's. */
function withGraph(make: (graph: GraphBuilder) => void, ranks: number): Scenario {
  const scenario = scenarioOf([{ ...kAllReduce, ranks }]);
  const builder = new GraphBuilder("test", ranks);
  make(builder);
  return { ...scenario, graphs: scenario.graphs.map((job) => ({ ...job, graph: builder.build() })) };
}

const digest = ({ result, flowTable, timeline }: SimOutcome) =>
  createHash("sha256")
    .update(JSON.stringify([result, flowTable, timeline]))
    .digest("hex");

describe("a message graph in virtual time", () => {
  it("ends when its last receive has, and so does the run", async () => {
    const outcome = await run(scenarioOf([kAllReduce]));
    const { result, complete } = outcome;
    expect(complete).toBe(true);
    expect(result.fidelity).toMatchObject({ valid: true });
    // 14 steps: 1 MB with the headers of 245 packets, one packet more on the second link, two cables, some acknowledgements.
    const step = ((1e6 + 245 * 82 + 20 + 4178) * 8) / 100 + 2000;
    expect(graphOf(outcome)?.time_s).toBeGreaterThan((14 * step) / 1e9);
    expect(graphOf(outcome)?.time_s).toBeLessThan((14 * step * 1.001) / 1e9);
    expect(graphOf(outcome)).toMatchObject({
      ranks: 8,
      messages: 112,
      bytes: 112e6,
      critical: { messages: 14, ranks: 8 },
    });
    expect(graphOf(outcome)?.ideal_s).toBeCloseTo((14 * (2000 + 80_000)) / 1e9, 12);
    expect(result.fct).toMatchObject({ count: 112, incomplete: 0 });
    expect(result.flows[0]?.goodput_bps).toBeGreaterThan(90e9);
  });

  it("is the same to the byte with any number of threads, and however the run is cut", async () => {
    const traffic = [
      { ...kAllReduce, size: "1MB" },
      { pattern: "collective", collective: "alltoall", size: "800KB", start: "20us", id: "other" },
    ];
    const more = { congestion: { algorithm: "dcqcn" } };
    const alone = digest(await run(scenarioOf(traffic, more)));
    for (const threads of [2, 3, 7]) expect(digest(await run(scenarioOf(traffic, more), { threads }))).toBe(alone);
    expect(digest(await run(scenarioOf(traffic, more), {}, sliced(997)))).toBe(alone);
  });

  it("is so on machines of several NICs, too, whose partitions are their own", async () => {
    const topology = {
      kind: "rail",
      machines: 4,
      nics: 4,
      spines: 2,
      link: { rate: "100Gbps", delay: "500ns", mtu: 9000 },
    };
    const traffic = [
      { ...kAllReduce, size: "1MB", inside_rate: "900Gbps", inside_latency: "300ns" },
      {
        pattern: "collective",
        collective: "alltoall",
        size: "400KB",
        id: "other",
        inside_rate: "900Gbps",
        inside_latency: "300ns",
      },
    ];
    const scenario = scenarioOf(traffic, { topology, congestion: { algorithm: "dcqcn" } });
    const alone = await run(scenario);
    expect(alone.result.fidelity.valid).toBe(true);
    for (const threads of [2, 3, 7]) expect(digest(await run(scenario, { threads }))).toBe(digest(alone));
    expect(digest(await run(scenario, {}, sliced(997)))).toBe(digest(alone));
  });

  it("uses all NICs of its machines, and no spine, as its closed form has it", async () => {
    const [machines, nics, bytes, delay] = [2, 8, 64e6, 500];
    const topology = {
      kind: "rail",
      machines,
      nics,
      spines: 2,
      link: { rate: "400Gbps", delay: `${delay}ns`, mtu: 9000 },
    };
    const payload = 4096 / (4096 + 82);
    const times = new Map<string, number>();
    for (const algorithm of ["ring", "two-level-ring"]) {
      const outcome = await run(scenarioOf([{ ...kAllReduce, algorithm, size: bytes, chunk: "1MB" }], { topology }));
      const { result } = outcome;
      const time = (graphOf(outcome)?.time_s ?? 0) * 1e9;
      times.set(algorithm, time);
      const links = result.links ?? [];
      expect(links.filter(({ from }) => from.startsWith("spine")).map(({ packets }) => packets)).toEqual(
        Array(16).fill(0),
      );
      expect(new Set(links.filter(({ from }) => from.startsWith("h")).map(({ packets }) => packets)).size).toBeLessThan(
        4,
      );
    }
    // Each NIC sends its eighth of 2 (n - 1)/n of the data: n machines by two levels, n ranks by rings.
    const least = (n: number) => (((2 * (n - 1)) / n) * (bytes / nics) * (8 / 400)) / payload;
    for (const [algorithm, n] of [
      ["two-level-ring", machines],
      ["ring", machines * nics],
    ] as const) {
      expect(times.get(algorithm), algorithm).toBeGreaterThan(least(n));
      expect(times.get(algorithm), algorithm).toBeLessThan(1.02 * least(n) + 2 * n * (2 * delay + 400));
    }
  });

  it("runs beside flows, which end with it", async () => {
    const { result } = await run(scenarioOf([kAllReduce, { from: "h1", to: "h2", id: "beside" }]));
    expect(result.graphs?.[0]?.time_s).toBeGreaterThan(1.3e-3);
    expect(result.flows.find(({ id }) => id === "beside")?.goodput_bps).toBeGreaterThan(1e9);
    expect(result.fidelity.valid).toBe(true);
  });

  it("that cannot end is told with what waits, and is not valid", async () => {
    const scenario = withGraph((graph) => {
      graph.send(0, 1, 1000, 1);
      graph.receive(1, 0, 1000, 2, { line: 12 });
    }, 2);
    const { result } = await run(scenario);
    expect(result.fidelity.valid).toBe(false);
    expect(result.fidelity.reasons.join()).toContain(
      "1 of 2 operations wait for ever: rank 1, operation 0 (receive from rank 0, line 12)",
    );
    expect(result.graphs?.[0]).not.toHaveProperty("time_s");
    expect(result.fidelity.reasons).toHaveLength(1);
    expect(result.duration_s).toBeLessThan(1e-3);
  });

  it("that the duration cuts is incomplete", async () => {
    const { result } = await run(scenarioOf([kAllReduce], { duration: "500us" }));
    expect(result.graphs?.[0]).not.toHaveProperty("time_s");
    expect(result.graphs?.[0]?.ended).toBeGreaterThan(0);
    expect(result.fct?.incomplete).toBe(8);
  });

  it("tells calculation apart from exposed communication, phase by phase", async () => {
    const scenario = withGraph((graph) => {
      graph.enterPhase("forward");
      const calculation = graph.calculate(0, 100_000);
      const send = graph.send(0, 1, 1e6, 0);
      graph.requires(send, calculation);
      const receive = graph.receive(1, 0, 1e6, 0);
      graph.enterPhase("backward");
      graph.requires(graph.calculate(1, 50_000), receive);
    }, 2);
    const outcome = await run(scenario);
    const [graph] = outcome.result.graphs ?? [];
    const network = (graph?.critical?.network_s ?? 0) * 1e9;
    expect(network).toBeGreaterThan(82_000);
    expect(network).toBeLessThan(87_000);
    expect((graph?.time_s ?? 0) * 1e9).toBeCloseTo(150_000 + network, 3);
    // Rank 0 has calculated and is over; rank 1 has waited all the time before its calculation.
    expect((graph?.calculation_s ?? 0) * 1e9).toBeCloseTo(75_000, 3);
    expect((graph?.exposed_s ?? 0) * 1e9).toBeCloseTo((100_000 + network) / 2, 3);
    expect(graph?.phases.map(({ name }) => name)).toEqual(["forward", "backward"]);
    expect(graph?.time_line?.[1]).toMatchObject({ rank: 1, host: "h2" });
    const { traceEvents } = JSON.parse(outcome.timeline ?? "") as { traceEvents: { ph: string; dur?: number }[] };
    expect(traceEvents.filter(({ ph }) => ph === "X").map(({ dur }) => dur)).toEqual([100, 50]);
    expect(traceEvents.filter(({ ph }) => ph === "b")).toHaveLength(1);
  });
});
