/** What differs between the daemons: their files, their workers, and what of them cannot change while they run. */
import { readFileSync } from "node:fs";
import type {
  DaemonPort,
  InspectInterface,
  LoadedDaemon,
  NicDaemonConfig,
  SwitchDaemonConfig,
} from "../config/daemon.js";
import { loadNicDaemon, loadSwitchDaemon } from "../config/daemon.js";
import type { WorkerConfig } from "../native/types.js";
import type { BackendChoice } from "./backend.js";
import { composeNicWorker, composeSwitchWorkers } from "./compose.js";

export type DaemonConfig = SwitchDaemonConfig | NicDaemonConfig;

export function loadDaemon(
  kind: DaemonConfig["kind"],
  file: string,
  inspect: InspectInterface,
): LoadedDaemon<DaemonConfig> {
  const options = { inspect, cpus: cpusOfHost() };
  return kind === "switch" ? loadSwitchDaemon(file, options) : loadNicDaemon(file, options);
}

/** With those that are offline: a worker says that it is not pinned where its own stays so. */
function cpusOfHost(): number {
  try {
    const last = /\d+\s*$/.exec(readFileSync("/sys/devices/system/cpu/present", "utf8")); // as in 0-7
    return last === null ? Number.POSITIVE_INFINITY : Number(last[0]) + 1;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/**
 * @param backends Of each port, in the order of portsOf().
 * @param answersArp A NIC's address is its own, not the kernel's.
 */
export function composeWorkers(
  config: DaemonConfig,
  backends: readonly BackendChoice[],
  answersArp: boolean,
): WorkerConfig[] {
  return config.kind === "switch"
    ? composeSwitchWorkers(config, backends)
    : [composeNicWorker(config, backends[0], answersArp)];
}

/** The worker of each port, by its position. */
export function ownersOf(config: DaemonConfig): number[] {
  return config.kind === "switch" ? config.ports.map(({ worker }) => worker) : [0];
}

export function portsOf(config: DaemonConfig): DaemonPort[] {
  return config.kind === "switch" ? config.ports : [config.port];
}

/** Fields that differ between two configurations although a running daemon cannot change them. */
export function fixedChanges(before: DaemonConfig, after: DaemonConfig): string[] {
  const [old, fresh] = [fixedFields(before), fixedFields(after)];
  return Object.keys(old).filter((field) => JSON.stringify(old[field]) !== JSON.stringify(fresh[field]));
}

function fixedFields(config: DaemonConfig): Record<string, unknown> {
  const { name, metrics, control } = config;
  const own = { name, metrics, control };
  if (config.kind === "switch") return { ...own, ports: config.ports, workers: config.workers };
  const { interface: netdev, namespace, rate, mtu, mac, backend } = config.port;
  const { path_mtu, burst, receive_buffer } = config.host;
  const queue_pairs = config.queue_pairs.map((pair) => ({ ...pair, send: pair.send && { ...pair.send, rate: 0 } }));
  const { address } = config;
  return {
    ...own,
    interface: netdev,
    namespace,
    rate,
    mtu,
    mac,
    backend,
    worker: config.worker,
    address,
    path_mtu,
    burst,
    receive_buffer,
    queue_pairs,
  };
}
