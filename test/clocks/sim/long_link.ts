/**
 * Simulates a link that holds more frames than this process may have memory for, and prints what is said then: 5 ms at 100 Gb/s hold
 * 430,000 frames of a datagram of 64 bytes, more than a simulation begins with.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { composeSimulation } from "../../../src/clocks/sim/compose.js";
import { loadAddon } from "../../../src/native/addon.js";
import type { SimulationAddon } from "../../../src/native/simulation_types.js";
import { Fabric } from "../../../src/scenario/fabric.js";
import { parseScenario } from "../../../src/scenario/scenario.js";

const { scenario } = parseScenario({
  name: "long",
  duration: "10ms",
  warmup: "0s",
  topology: {
    hosts: ["a", "b"],
    switches: ["s"],
    link: { rate: "100Gbps", delay: "5ms" },
    links: ["a -- s", "s -- b"],
  },
  congestion: { algorithm: "none" },
  traffic: [{ from: "a", to: "b", message: 64 }],
});
const addon = loadAddon<SimulationAddon>();
const simulation = new addon.Simulation(composeSimulation(scenario, new Fabric(scenario), []));
const [, present] = /VmSize:\s+(\d+) kB/.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
spawnSync("prlimit", ["--pid", String(process.pid), `--as=${Number(present) * 1024 + 100 * 2 ** 20}`]);
try {
  simulation.run(10e6, 1e12);
} catch (error) {
  const { code, message, hint } = error as { code: string; message: string; hint: string };
  console.log(JSON.stringify({ code, message, hint }));
}
