/** One figure really run in virtual time, all of its 9.7 s. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { findExperiment } from "../../src/experiments/registry.js";
import { runExperiment } from "../../src/experiments/run.js";
import { runSimulation } from "../../src/sim/run.js";
import { fakeRunners, paperOptions } from "./fakes.js";

const directory = mkdtempSync(join(tmpdir(), "weir-paper-sim-"));
afterAll(() => rmSync(directory, { recursive: true }));

it("figure 8 of the NetFPGA paper: the queue returns to Q_eq, the rate to the link", async () => {
  const experiment = findExperiment("qcn-netfpga-fig8");
  if (experiment === undefined) throw new Error("no figure 8");
  const outcome = await runExperiment(experiment, { ...fakeRunners, runSimulation }, paperOptions(directory));
  expect(outcome.runs).toMatchObject([{ clock: "sim", trial: "qcn", valid: true, folder: "sim/qcn" }]);
  expect(outcome.statements.map(({ verdicts }) => verdicts[0]?.ruling)).toEqual([
    "not judged", // compares the wire with it
    "holds",
    "holds",
    "holds",
  ]);
  const values = outcome.observations.sim?.values ?? {};
  // Everything that the experiment speaks of was measured.
  expect(Object.keys(values).sort()).toEqual(Object.keys(experiment.quantities).sort());
  for (const phase of ["before", "reduced", "after"]) expect(values[`utilisation_${phase}`]).toBeCloseTo(100, 0);
  // The service rate fell by 0.75 Gb/s while 117 KB were free: some frames had to go, and only then.
  expect(values.drops).toBeGreaterThan(0);
  expect(values.full_reduced).toBe(0);
}, 120_000);
