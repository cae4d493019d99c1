/** Tells Prometheus of running devices, whoever runs them: rates and times are the wall's, as they are counted. */
import type { Device } from "../../device/device.js";
import { loadAddon } from "../../native/addon.js";
import type { SimulationAddon } from "../../native/simulation_types.js";
import type { NativeWorker } from "../../native/types.js";
import type { MetricsSource, NicReading, PortReading, SwitchReading } from "./registry.js";

export interface MeasuredWorker {
  name: string;
  worker: Pick<NativeWorker, "worstGap" | "histograms">;
}

export function metricsOf(devices: readonly Device[], workers: readonly MeasuredWorker[]): MetricsSource {
  const of = (kind: Device["kind"]) => devices.filter((device) => device.kind === kind);
  return {
    counters: () => [...new Set(devices.map((device) => device.counted()))],
    switches: () => of("switch").map(switchReading),
    nics: () => of("nic").map(nicReading),
    pairCounters: () => loadAddon<SimulationAddon>().simulationManifest().queue_pair,
    histograms: () => workers.flatMap(({ worker }) => worker.histograms()),
    ports: () => devices.flatMap(portReadings),
    discovery: () =>
      devices
        .map((device) => ({ device: device.name, lldp: device.lldp(), dcbx: device.dcbx() }))
        .filter(({ lldp }) => lldp.enabled),
    workers: () => workers.map(({ name, worker }) => ({ name, loopGapNs: worker.worstGap() })),
  };
}

function switchReading(device: Device): SwitchReading {
  const { name, ports, buffer, pfc_priorities: pfc, ecn } = device.switchReport();
  return {
    name,
    ports: ports.map((port) => port.name),
    state: { buffer, ports },
    fdbEntries: device.forwardingEntries(),
    pfc,
    ecn: ecn.enabled ? ecn : undefined,
  };
}

function nicReading(device: Device): NicReading {
  const pairs = device.queuePairs().map((pair) => ({
    ...pair,
    rate: pair.rate / device.scale,
    target_rate: pair.target_rate / device.scale,
  }));
  return { device: device.name, pfc: device.qos().pfc_priorities, pairs, programs: device.programs() };
}

function portReadings(device: Device): PortReading[] {
  return device.ports().map((port) => ({
    ...port,
    device: device.name,
    netdev: device.kind === "nic" ? port.interface : undefined,
    rate: port.rate / device.scale,
  }));
}
