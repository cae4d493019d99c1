import { loadAddon } from "../../../src/native/addon.js";
import type { NativeSimulation, SimulationAddon } from "../../../src/native/simulation_types.js";

/** The native core, told to run `events` events at a time whatever it is asked for. `ran` is told the time reached after each; ns. */
export function sliced(events: number, ran: (now: number) => void = () => {}): SimulationAddon {
  const addon = loadAddon<SimulationAddon>();
  return {
    simulationManifest: () => addon.simulationManifest(),
    simulationFootprint: addon.simulationFootprint,
    IdealNetwork: addon.IdealNetwork,
    FairNetwork: addon.FairNetwork,
    Simulation: function Sliced(config: ConstructorParameters<SimulationAddon["Simulation"]>[0]) {
      const native: NativeSimulation = new addon.Simulation(config);
      return new Proxy(native, {
        get(target, name: keyof NativeSimulation) {
          if (name === "run") {
            return (until: number) => {
              const reached = target.run(until, events);
              ran(target.progress().now);
              return reached;
            };
          }
          return target[name].bind(target);
        },
      });
    } as unknown as SimulationAddon["Simulation"],
  };
}
