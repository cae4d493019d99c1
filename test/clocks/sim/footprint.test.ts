/** Estimates of a simulation's memory agree with its use; and a run is refused where there is less. */
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { footprint, requireMemory } from "../../../src/clocks/sim/footprint.js";
import { loadAddon } from "../../../src/native/addon.js";
import type { SimulationAddon } from "../../../src/native/simulation_types.js";
import { parseScenario } from "../../../src/scenario/scenario.js";
import { kPatienceMs } from "../../limits.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";
import { programFile } from "../../programs/files.js";

skipWhere(nativeObstacle());

/** Pairs of flows, for 20 us. */
const network = (k: number, traffic: object[]) => ({
  name: "memory",
  duration: "20us",
  topology: { kind: "fat-tree", k, link: { rate: "100Gbps", delay: "1us" } },
  transport: { type: "rc" },
  probes: { interval: "1ms", flows: 0 },
  traffic,
});

it.each([
  ["of hosts alone", network(16, [])],
  ["of more of them", network(20, [])],
  // Later than the end: their queue pairs are there, and nothing is under way.
  ["of flows", network(8, [{ pattern: "permutation", qps: 250, bytes: "4KB", start: "19us" }])],
])("what a network %s is said to take is what it takes, within a factor of 1.5", (_, scenario) => {
  const command = [programFile("measured_footprint"), JSON.stringify(scenario)];
  const ran = spawnSync(process.execPath, command, { encoding: "utf8", timeout: kPatienceMs });
  expect(ran.stdout, ran.stderr).not.toBe("");
  const { said, taken } = JSON.parse(ran.stdout) as { said: number; taken: number };
  expect(said / taken).toBeGreaterThan(1 / 1.5);
  expect(said / taken).toBeLessThan(1.5);
});

it("grows with hosts, ports and flows", () => {
  const addon = loadAddon<SimulationAddon>();
  const said = (k: number, qps: number) =>
    footprint(parseScenario(network(k, [{ pattern: "permutation", qps, bytes: "4KB" }])).scenario, addon);
  expect(said(8, 1)).toBeGreaterThan(said(4, 1));
  expect(said(8, 20)).toBeGreaterThan(said(8, 1));
});

it("is refused with what it needs, what there is, and what to do", () => {
  const addon = loadAddon<SimulationAddon>();
  const { scenario } = parseScenario(network(8, [{ pattern: "permutation", bytes: "4KB" }]));
  // No scenario may have so many hosts: only their number counts here.
  const many = {
    ...scenario,
    hosts: Array(100_000).fill(scenario.hosts[0]),
    links: Array(2_000_000).fill(scenario.links[0]),
  };
  expect(() => requireMemory(scenario, addon, 1e9)).not.toThrow();
  expect(() => requireMemory(many, addon, 8 * 2 ** 30)).toThrow(
    /^this simulation needs \d+ GiB of memory at least, and 8\.0 GiB are available: 100000 hosts, 80 switches, 128 flows$/,
  );
});
