/** Figure 5 of the DCQCN paper really run in virtual time: the simulated switch marks as equation 5 says. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { nativeObstacle, skipWhere } from "../../../test/obstacles.js";
import { runExperiment } from "../../engine/run.js";
import { fakeRunners, paperOptions } from "../../engine/test/fakes.js";
import { findExperiment } from "../../registry.js";

skipWhere(nativeObstacle());

const directory = mkdtempSync(join(tmpdir(), "weir-paper-marking-"));
afterAll(() => rmSync(directory, { recursive: true }));

it("marks of packets are those of equation 5", async () => {
  const experiment = findExperiment("dcqcn-fig5");
  if (experiment === undefined) throw new Error("no figure 5");
  const options = paperOptions(directory, { clocks: ["sim", "model"] });
  const outcome = await runExperiment(experiment, { ...fakeRunners, sim: { run: runSimulation } }, options);
  expect(outcome.complete).toBe(true);
  for (const { verdicts } of outcome.statements) {
    expect(verdicts.map(({ ruling }) => ruling)).toEqual(["holds", "holds"]);
  }
  const { sim } = outcome.observations;
  expect(Object.keys(sim?.values ?? {}).sort()).toEqual(Object.keys(experiment.quantities).sort());
  // The picture has queues beyond 40 KB, which the table tells of, too.
  const cut = sim?.traces?.cut_off;
  expect(cut?.x.at(-1)).toBeGreaterThan(60);
  expect(cut?.y.at(-1)).toBeGreaterThan(99);
  for (const value of Object.values(sim?.values ?? {})) expect(value).toBeLessThanOrEqual(100);
  for (const { differences } of outcome.overlays) expect(differences[0]?.mean_absolute).toBeLessThan(0.5);
});
