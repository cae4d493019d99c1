/** One figure really run in virtual time, all of its 9.7 s. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { Result } from "../../../src/result/result.js";
import { nativeObstacle, skipWhere } from "../../../test/obstacles.js";
import { runExperiment } from "../../engine/run.js";
import { fakeRunners, paperOptions } from "../../engine/test/fakes.js";
import { findExperiment } from "../../registry.js";

skipWhere(nativeObstacle());

const directory = mkdtempSync(join(tmpdir(), "weir-paper-sim-"));
afterAll(() => rmSync(directory, { recursive: true }));

it("figure 8 of the NetFPGA paper: the queue returns to Q_eq, the rate to the link", async () => {
  const experiment = findExperiment("qcn-netfpga-fig8");
  if (experiment === undefined) throw new Error("no figure 8");
  const outcome = await runExperiment(
    experiment,
    { ...fakeRunners, sim: { run: runSimulation } },
    paperOptions(directory),
  );
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

  const result = JSON.parse(readFileSync(join(directory, "sim/qcn/result.json"), "utf8")) as Result;
  const point = result.switches.sw?.congestion_points?.r?.["3"];
  const [flow] = result.flows;
  // A sample each 150 KB and, while the queue was longer, sooner; most say nothing, most of the others the least.
  expect(point?.sampled).toBeGreaterThan((0.95e9 * 6 + 0.2e9 * 3.7) / 8 / 160e3);
  expect(point?.sampled).toBeGreaterThan(2 * (point?.cnms ?? 0));
  expect(flow?.cnm_handled).toBe(point?.cnms);
  expect(flow?.cnm_lowest).toBeLessThan(flow?.cnm_handled ?? 0);
  expect(flow?.cnm_lowest).toBeGreaterThan(0.5 * (flow?.cnm_handled ?? 0));
});
