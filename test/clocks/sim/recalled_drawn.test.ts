/** Message graphs of many kinds by memory of phases, beside the same by packets: what is called valid is as long. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { parseScenario } from "../../../src/scenario/scenario.js";

const link = fc.record({
  rate: fc.constantFrom("100Gbps", "200Gbps", "400Gbps"),
  delay: fc.constantFrom("200ns", "500ns", "1us", "2us"),
  mtu: fc.constant(4300),
});
const topology = fc.oneof(
  fc.record({ kind: fc.constant("star"), hosts: fc.constantFrom(4, 8, 12), link }),
  fc.record({
    kind: fc.constant("leaf-spine"),
    leaves: fc.constantFrom(2, 4),
    spines: fc.constantFrom(2, 4),
    hosts: fc.constantFrom(2, 4),
    link,
  }),
  fc.record({
    kind: fc.constant("rail"),
    machines: fc.constantFrom(4, 8),
    nics: fc.constantFrom(2, 4),
    spines: fc.constant(1),
    link,
  }),
);
const collective = fc
  .record({
    kind: fc.constantFrom(
      ["allreduce", "ring"],
      ["allreduce", "tree"],
      ["allgather", "ring"],
      ["reducescatter", "ring"],
      ["broadcast", "ring"],
    ),
    size: fc.constantFrom("1MB", "3MB", "4MB"),
    iterations: fc.constantFrom(2, 5, 10),
    chunk: fc.constantFrom(undefined, "256KB", "512KB"),
  })
  .map(({ kind: [collective, algorithm], chunk, ...rest }) => ({
    pattern: "collective",
    ...{ collective, algorithm, ...rest },
    ...(chunk && { chunk }),
  }));
const drawn = fc.record({
  topology,
  collective,
  algorithm: fc.constantFrom("dcqcn", "none", "hpcc"),
  seed: fc.integer({ min: 1, max: 99 }),
});

type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never;

async function run({ topology, algorithm, seed, collective }: Drawn, fastForward?: number) {
  const { scenario } = parseScenario({
    topology,
    host: { path_mtu: 4096 },
    switch: { buffer: { total: "32MB", headroom: "auto", priorities: 1 }, pfc: { priorities: [3] } },
    congestion: { algorithm },
    transport: { type: "rc" },
    seed,
    traffic: [collective],
  });
  return (await runSimulation(scenario, { signal: new AbortController().signal, fastForward })).result;
}

it("a message graph by memory that is called valid is as long as by packets, whatever it is", async () => {
  let skipped = 0;
  const property = fc.asyncProperty(drawn, async (one) => {
    const fast = await run(one, 0.03);
    const memory = fast.fast_forward_graphs?.skipped ?? 0;
    if (memory === 0 || !fast.fidelity.valid) return;
    skipped += memory > 0.3 ? 1 : 0;
    const exact = await run(one);
    expect(Math.abs(fast.duration_s / exact.duration_s - 1)).toBeLessThan(0.01);
  });
  await fc.assert(property, { numRuns: 24, seed: 2026, endOnFailure: true });
  expect(skipped).toBeGreaterThan(4);
});
