/** Parts of a switch's native configuration that are not in a scenario: congestion points, and changes in a run. */
import { describe, expect, it } from "vitest";
import { composeSimulation } from "../../../src/clocks/sim/compose.js";
import { SimulationTables } from "../../../src/clocks/sim/tables.js";
import type {
  NativeSimulation,
  NativeSimulationSwitch,
  SimulationAddon,
  SimulationConfig,
} from "../../../src/native/simulation_types.js";
import { accountFrames } from "../../../src/result/device_results.js";
import { Fabric } from "../../../src/scenario/fabric.js";
import { nativeCore } from "../../obstacles.js";
import { incast } from "./scenarios.js";

const kPriority = 3;
const addon = nativeCore<SimulationAddon>();

/** Two senders to a third host, without congestion control, and what `change` makes of it. */
function simulate(change: (config: SimulationConfig) => void = () => {}) {
  const scenario = incast({ congestion: { algorithm: "none" } });
  const config = composeSimulation(scenario, new Fabric(scenario), []);
  change(config);
  return { config, device: config.switches[0] as NativeSimulationSwitch, simulation: new addon.Simulation(config) };
}

const limited = (device: NativeSimulationSwitch, port: number, rate: number): NativeSimulationSwitch => ({
  ...device,
  ports: device.ports.map((p, i) => (i === port ? { ...p, priority_rates: Array.from({ length: 8 }, () => rate) } : p)),
});

function counted(simulation: NativeSimulation, port: number, name: string, priority = kPriority) {
  const manifest = addon.simulationManifest();
  const column = manifest.switch_priority.findIndex((description) => description.name === name);
  return simulation.counters().switch_priorities[
    (port * 8 + priority) * manifest.switch_priority.length + column
  ] as number;
}

describe("a switch of a simulation", () => {
  const cn = {
    cn_priorities: 1 << kPriority,
    cnm_priority: 6,
    cp_min_header_octets: 42,
    qcn: { queue_set_point: 26_000, weight: 1, sample_base: 150_000 },
  };

  it("has congestion points where it is told so", () => {
    const off = simulate().simulation;
    off.run(1e6, 1e9);
    expect(counted(off, 2, "cn_cp_transmitted_frames")).toBe(0);
    const { simulation } = simulate(({ switches: [device] }) => {
      Object.assign(device as NativeSimulationSwitch, cn);
    });
    simulation.run(1e6, 1e9);
    const made = counted(simulation, 2, "cn_cp_transmitted_cnms");
    expect(counted(simulation, 2, "cn_cp_transmitted_frames")).toBeGreaterThan(500);
    expect(made).toBeGreaterThan(5);
    expect(counted(simulation, 0, "queue_packets", 6) + counted(simulation, 1, "queue_packets", 6)).toBe(made);
  });

  it("defends its ports as it is told", () => {
    const cn_defence = Array.from({ length: 8 }, () => "edge" as const);
    const cn_alternate_priority = Array.from({ length: 8 }, () => 1);
    const { simulation } = simulate(({ switches: [device] }) => {
      const { ports } = Object.assign(device as NativeSimulationSwitch, cn);
      ports[0] = { ...(ports[0] as (typeof ports)[number]), cn_defence, cn_alternate_priority };
    });
    simulation.run(1e6, 1e9);
    expect(counted(simulation, 0, "cn_remapped_frames")).toBeGreaterThan(100);
    expect(counted(simulation, 1, "cn_remapped_frames")).toBe(0);
    expect(counted(simulation, 2, "queue_packets", 1)).toBeGreaterThan(10); // weighs a fiftieth
  });

  it("takes new rates of its queues in the course of a run", () => {
    const { simulation, device } = simulate(({ flows }) => {
      flows.stop.fill(1e7);
    });
    simulation.run(1e6, 1e9);
    const full = counted(simulation, 2, "queue_bytes");
    simulation.reconfigureSwitch(0, limited(device, 2, 1e9));
    simulation.run(2e6, 1e9);
    const slow = counted(simulation, 2, "queue_bytes") - full;
    expect(slow).toBeLessThan(125_000);
    expect(slow).toBeGreaterThan(115_000);
    simulation.reconfigureSwitch(0, device);
    simulation.run(3e6, 1e9);
    expect(counted(simulation, 2, "queue_bytes") - full - slow).toBeGreaterThan(1_150_000);
  });

  it("refuses what cannot change, and when", () => {
    const { simulation, device } = simulate();
    simulation.run(1e5, 1e9);
    const refused = (config: NativeSimulationSwitch) => expect(() => simulation.reconfigureSwitch(0, config));
    refused({ ...device, ports: device.ports.slice(1) }).toThrow(
      expect.objectContaining({ code: "INVALID_CONFIG", message: expect.stringContaining("the number of ports") }),
    );
    refused({ ...device, buffer: { ...device.buffer, total: 1 } }).toThrow(/the size of the buffer cannot change/);
    refused({ ...device, seed: "1" as unknown as number }).toThrow(
      /reconfigureSwitch\(config\)\.seed: expected a number/,
    );
    expect(() => simulation.reconfigureSwitch(1, device)).toThrow(RangeError);
    expect(simulation.run(1e6, 1)).toBe(false);
    refused(device).toThrow(expect.objectContaining({ code: "INVALID_STATE" }));
  });

  it("accounts for the CNMs that it made", () => {
    const { simulation, config } = simulate(({ switches: [device], flows }) => {
      Object.assign(device as NativeSimulationSwitch, cn);
      flows.stop.fill(1e6);
    });
    simulation.run(20e6, 1e9);
    const counts = { nics: config.nics.length, links: config.links.length };
    const tables = new SimulationTables(addon.simulationManifest(), simulation.counters(), [3], counts);
    const frames = accountFrames(tables.allSwitches(), tables.allNics());
    expect(frames).toMatchObject({ dropped: 0, missing: 0 });
    expect(frames.received).toBeGreaterThan(1_000);
  });
});
