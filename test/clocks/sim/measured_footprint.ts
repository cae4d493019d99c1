/** Runs the scenario that is its argument, and prints what it is said to take and what the process has grown by at most. */
import { readFileSync } from "node:fs";
import { footprint } from "../../../src/clocks/sim/footprint.js";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { loadAddon } from "../../../src/native/addon.js";
import type { SimulationAddon } from "../../../src/native/simulation_types.js";
import { parseScenario } from "../../../src/scenario/scenario.js";

/** Bytes that a field of this process's status has. */
function bytes(field: string): number {
  const [, kib] = new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return 1024 * Number(kib);
}

const addon = loadAddon<SimulationAddon>();
const before = bytes("VmRSS");
const { scenario } = parseScenario(JSON.parse(process.argv[2] ?? ""));
await runSimulation(scenario, { signal: new AbortController().signal });
console.log(JSON.stringify({ said: footprint(scenario, addon), taken: bytes("VmHWM") - before }));
