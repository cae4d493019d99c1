/** What differs between the daemons: their files, and what of them cannot change while they run. */
import { readFileSync } from "node:fs";
import { readConfigText } from "../base/yaml.js";
import { type DeviceConfig, type LoadedDaemon, loadNicDaemon, loadSwitchDaemon } from "../device/file/load.js";
import type { InspectInterface } from "../host/interface.js";

/** A daemon's file as it was read, and what is put over it without reading it again. */
export interface DaemonFile {
  kind: DeviceConfig["kind"];
  path: string;
  text: string;
  /** Each `path=value`. */
  set: readonly string[];
}

/** @throws WeirError if it cannot be read. */
export function readDaemonFile(kind: DeviceConfig["kind"], path: string): DaemonFile {
  return { kind, path, text: readConfigText(path, kind), set: [] };
}

/** @throws ScenarioError, WeirError */
export function parseDaemonFile(
  { kind, path, text, set }: DaemonFile,
  inspect: InspectInterface,
): LoadedDaemon<DeviceConfig> {
  const options = { set, inspect, cpus: cpusOfHost() };
  return kind === "switch" ? loadSwitchDaemon(path, { ...options, text }) : loadNicDaemon(path, { ...options, text });
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

/** Fields that differ between two configurations although a running daemon cannot change them. */
export function fixedChanges(before: DeviceConfig, after: DeviceConfig): string[] {
  const [old, fresh] = [fixedFields(before), fixedFields(after)];
  return Object.keys(old).filter((field) => JSON.stringify(old[field]) !== JSON.stringify(fresh[field]));
}

function fixedFields(config: DeviceConfig): Record<string, unknown> {
  const { name, metrics, dashboard, control } = config;
  const own = { name, metrics, dashboard, control };
  if (config.kind === "switch") return { ...own, ports: config.ports, workers: config.workers };
  const { interface: netdev, namespace, rate, mtu, mac, backend } = config.port;
  const { path_mtu, burst, receive_buffer } = config.host;
  const queue_pairs = config.queue_pairs.map((pair) => ({ ...pair, send: pair.send && { ...pair.send, rate: 0 } }));
  const { addresses: address, vlan, transport, programs } = config;
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
    vlan,
    path_mtu,
    burst,
    receive_buffer,
    transport,
    queue_pairs,
    programs,
  };
}
