/** What differs between the daemons: their files, their workers, and what of them cannot change while they run. */
import { readFileSync } from "node:fs";
import { readConfigText, readScenarioText } from "../base/yaml.js";
import { listParameters } from "../dashboard/parameters.js";
import type { Parameter } from "../dashboard/protocol.js";
import { composeNicWorker, composeSwitchWorkers, type PeerMacs } from "../device/compose.js";
import type {
  DaemonPort,
  InspectInterface,
  LoadedDaemon,
  NicDaemonConfig,
  SwitchDaemonConfig,
} from "../device/file/load.js";
import { parseNicDaemon, parseSwitchDaemon } from "../device/file/load.js";
import type { BackendChoice } from "../host/backend.js";
import type { WorkerConfig } from "../native/types.js";

export type DaemonConfig = SwitchDaemonConfig | NicDaemonConfig;

/** A daemon's file as it was read, and what is put over it without reading it again. */
export interface DaemonFile {
  kind: DaemonConfig["kind"];
  path: string;
  text: string;
  /** Each `path=value`. */
  set: readonly string[];
}

/** @throws WeirError if it cannot be read. */
export function readDaemonFile(kind: DaemonConfig["kind"], path: string): DaemonFile {
  return { kind, path, text: readConfigText(path, kind), set: [] };
}

/** @throws ScenarioError, WeirError */
export function parseDaemonFile(
  { kind, path, text, set }: DaemonFile,
  inspect: InspectInterface,
): LoadedDaemon<DaemonConfig> {
  const options = { set, inspect, cpus: cpusOfHost() };
  return kind === "switch" ? parseSwitchDaemon(text, path, options) : parseNicDaemon(text, path, options);
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
 * @param macs Those of its peers that have been found.
 */
export function composeWorkers(
  config: DaemonConfig,
  backends: readonly BackendChoice[],
  answersArp: boolean,
  macs: PeerMacs,
): WorkerConfig[] {
  return config.kind === "switch"
    ? composeSwitchWorkers(config, backends)
    : [composeNicWorker(config, backends[0], answersArp, macs)];
}

/** The worker of each port, by its position. */
export function ownersOf(config: DaemonConfig): number[] {
  return config.kind === "switch" ? config.ports.map(({ worker }) => worker) : [0];
}

export function portsOf(config: DaemonConfig): DaemonPort[] {
  return config.kind === "switch" ? config.ports : [config.port];
}

/** What of it the dashboard can change. */
export function parametersOf({ text, path, set, kind }: DaemonFile, config: DaemonConfig): Parameter[] {
  const { data } = readScenarioText(text, path, set, kind);
  return config.kind === "switch"
    ? listParameters({
        data,
        switchAt: [],
        buffer: config.switch.buffer,
        congestion: undefined,
        qcn: config.switch.qcn.enabled,
      })
    : listParameters({ data, switchAt: undefined, buffer: undefined, congestion: config.congestion, qcn: false });
}

/** Fields that differ between two configurations although a running daemon cannot change them. */
export function fixedChanges(before: DaemonConfig, after: DaemonConfig): string[] {
  const [old, fresh] = [fixedFields(before), fixedFields(after)];
  return Object.keys(old).filter((field) => JSON.stringify(old[field]) !== JSON.stringify(fresh[field]));
}

function fixedFields(config: DaemonConfig): Record<string, unknown> {
  const { name, metrics, dashboard, control } = config;
  const own = { name, metrics, dashboard, control };
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
