/** A sweep file in a folder of its own, and its plan. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { stringify } from "yaml";
import type { Plan } from "../../src/study/plan.js";
import { planSweep } from "../../src/study/sweep/plan_sweep.js";
import { loadSweep } from "../../src/study/sweep/spec.js";
import { starText } from "../fixtures/networks.js";
import { kCode } from "./fake_tools.js";

export const kScenario = `# A comment.
name: incast
topology: ${starText(["h1", "h2", "r"])}
switch: { ecn: { kmin: 5KB, kmax: 200KB } }
traffic:
  - { id: incast, from: [h1, h2], to: r }
`;

/** A folder that is removed with the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-sweep-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Writes scenario.yaml and sweep.yaml into `directory`; returns the latter's path. */
export function writeSweep(directory: string, spec: object, scenario = kScenario): string {
  const file = join(directory, "sweep.yaml");
  writeFileSync(join(directory, "scenario.yaml"), scenario);
  writeFileSync(file, stringify({ scenario: "scenario.yaml", ...spec }));
  return file;
}

export function plan(file: string, code = kCode): Plan {
  return planSweep(loadSweep(file), file, code).plan;
}
