/** Runs one case in this process and sends what it took to the parent: fork(child, [JSON of a Request]). */
import { readFileSync } from "node:fs";
import { runSimulation } from "../../src/clocks/sim/run.js";
import { loadAddon } from "../../src/native/addon.js";
import type { NativeSimulation, SimulationAddon, SimulationConfig } from "../../src/native/simulation_types.js";
import { CASES, type Request, type Sample } from "./cases.js";

const request = JSON.parse(process.argv[2] ?? "") as Request;
const chosen = CASES.find(({ name }) => name === request.name);
if (chosen === undefined) throw new Error(`no case ${request.name}`);

const addon = loadAddon<SimulationAddon>();
const memory = { before: 0, built: 0, after: 0, peak: 0 };
let runCpu = 0;

/** The native core, with a look at clock and memory around what costs. */
const watched = {
  ...addon,
  simulationManifest: () => addon.simulationManifest(),
  simulationFootprint: addon.simulationFootprint,
  Simulation: function make(config: SimulationConfig): NativeSimulation {
    memory.before = resident("VmRSS");
    const simulation = new addon.Simulation(config);
    memory.built = resident("VmRSS");
    const run = simulation.run.bind(simulation);
    const timed: NativeSimulation["run"] = (until, events) => {
      const before = process.cpuUsage();
      const reached = run(until, events);
      runCpu += seconds(process.cpuUsage(before));
      return reached;
    };
    Object.defineProperty(simulation, "run", { value: timed });
    return simulation;
  } as unknown as SimulationAddon["Simulation"],
};

const start = process.cpuUsage();
const scenario = chosen.scenario(request);
// Garbage of reading the scenario is not the simulation's.
global.gc?.();
const { result, performance } = await runSimulation(scenario, { signal: new AbortController().signal }, watched);
const sample: Sample = {
  hosts: scenario.hosts.length,
  flows: scenario.flows.length,
  simulated_s: result.duration_s,
  hops: performance.hops,
  events: performance.events,
  run_cpu_s: runCpu,
  whole_cpu_s: seconds(process.cpuUsage(start)),
  memory: { ...memory, after: resident("VmRSS"), peak: resident("VmHWM") },
  fct: result.fct,
};
process.send?.(sample);

function seconds({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1e6;
}

/** A size from /proc/self/status, bytes. Unlike getrusage()'s, they do not begin with the parent's. */
function resident(field: "VmRSS" | "VmHWM"): number {
  const kib = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return Number(kib) * 1024;
}
