/** Small scenarios drawn from listed seeds, of message graphs and of long flows: skipped, beside the same simulated whole. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { SimOptions } from "../../../src/clocks/sim/types.js";
import { parseScenario } from "../../../src/scenario/scenario.js";

/** Rates of the flows of 89, 1000 and 1033 rise all the time, by less in a stretch than counting packets can tell. */
const kSeeds = [11, 23, 37, 41, 59, 67, 73, 89, 1000, 1033];
const kBound = 0.03;
/** A graph waits for the slowest of many phases, and stretches are judged at their ends: both are allowed for in what is called valid. */
const kFactor = 1;

const link = fc.record({
  rate: fc.constantFrom("50Gbps", "100Gbps", "200Gbps"),
  delay: fc.constantFrom("300ns", "1us", "2us"),
  mtu: fc.constant(4300),
});
const topology = fc.oneof(
  fc.record({ kind: fc.constant("star"), hosts: fc.constantFrom(4, 6, 8), link }),
  fc.record({
    kind: fc.constant("rail"),
    machines: fc.constantFrom(3, 4),
    nics: fc.constant(2),
    spines: fc.constant(1),
    link,
  }),
);
const collective = fc.record({
  pattern: fc.constant("collective"),
  collective: fc.constantFrom("allreduce", "allgather", "alltoall", "broadcast"),
  size: fc.constantFrom("512KB", "1MB", "2MB"),
  iterations: fc.constantFrom(6, 12, 20),
});
const long = fc.record({ topology: fc.record({ kind: fc.constant("star"), hosts: fc.constantFrom(3, 5), link }) });
const drawn = fc.record({
  graph: fc.record({ topology, traffic: collective.map((one) => [one]) }),
  flows: long,
  algorithm: fc.constantFrom("dcqcn", "none"),
  verify: fc.constantFrom(undefined, 0.01, 0.1, 0.3),
});
type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never;
const draw = (seed: number) => fc.sample(drawn, { seed, numRuns: 1 })[0] as Drawn;

const scenarioOf = (more: object, algorithm: string, seed: number) =>
  parseScenario({
    host: { path_mtu: 4096 },
    switch: { buffer: { total: "32MB", headroom: "auto", priorities: 1 }, pfc: { priorities: [3] } },
    congestion: { algorithm },
    transport: { type: "rc" },
    seed,
    ...more,
  }).scenario;
type Scenario = ReturnType<typeof scenarioOf>;

const run = (scenario: Scenario, options: Partial<SimOptions> = {}) =>
  runSimulation(scenario, { signal: new AbortController().signal, ...options });
const told = ({ result, flowTable, series }: Awaited<ReturnType<typeof run>>) =>
  JSON.stringify([result, flowTable, series]);

/** The same with 1, 2 and 3 threads. */
async function forwarded(scenario: Scenario, verify: number | undefined) {
  const options = { fastForward: kBound, verify };
  const [first, ...others] = await Promise.all([1, 2, 3].map((threads) => run(scenario, { ...options, threads })));
  if (first === undefined) throw new Error("no run");
  for (const other of others) expect(told(other)).toBe(told(first));
  return first.result;
}

async function whole(scenario: Scenario) {
  return (await run(scenario)).result;
}

describe("fast-forward of scenarios that are drawn", () => {
  const compared = { graphs: 0, flows: 0 };

  it.each(kSeeds)("skips messages of graph %i within its bound, with any number of threads", async (seed) => {
    const { graph, algorithm, verify } = draw(seed);
    const scenario = scenarioOf(graph, algorithm, seed);
    const fast = await forwarded(scenario, verify);
    const exact = await whole(scenario);
    expect(fast.fct?.count).toBe(exact.fct?.count);
    const recalled = fast.fast_forward_graphs;
    if (recalled === undefined || recalled.skipped === 0 || !fast.fidelity.valid) return;
    ++compared.graphs;
    expect(Math.abs(fast.duration_s / exact.duration_s - 1)).toBeLessThan(kFactor * kBound);
  });

  it.each(kSeeds)("skips time of flows %i within its bound, with any number of threads", async (seed) => {
    const { flows, algorithm, verify } = draw(seed);
    const hosts = flows.topology.hosts;
    const from = Array.from({ length: hosts - 1 }, (_, i) => `h${i + 1}`);
    const traffic = [{ pattern: "incast", from, to: `h${hosts}` }];
    const scenario = scenarioOf({ ...flows, traffic, duration: "40ms", warmup: "2ms" }, algorithm, seed);
    const fast = await forwarded(scenario, verify);
    const exact = await whole(scenario);
    const skipped = fast.fast_forward;
    if (skipped === undefined || skipped.jumps === 0 || !fast.fidelity.valid) return;
    ++compared.flows;
    expect(skipped.verified.reached).toBeGreaterThanOrEqual(verify ?? 0.002);
    expect(Math.abs(fast.totals.goodput_bps / exact.totals.goodput_bps - 1)).toBeLessThan(kFactor * kBound);
  });

  it("has compared some of each", () => {
    expect(compared.graphs).toBeGreaterThan(1);
    expect(compared.flows).toBeGreaterThan(1);
  });
});
