import { loadAddon } from "../../src/native/addon.js";
import type { NativeSimulation, SimulationAddon } from "../../src/native/simulation_types.js";

/** The native core, told to run `events` events at a time whatever it is asked for. */
export function sliced(events: number): SimulationAddon {
  const addon = loadAddon<SimulationAddon>();
  return {
    simulationManifest: () => addon.simulationManifest(),
    Simulation: function Sliced(config: ConstructorParameters<SimulationAddon["Simulation"]>[0]) {
      const native: NativeSimulation = new addon.Simulation(config);
      return new Proxy(native, {
        get(target, name: keyof NativeSimulation) {
          if (name === "run") return (until: number) => target.run(until, events);
          return target[name].bind(target);
        },
      });
    } as unknown as SimulationAddon["Simulation"],
  };
}
