/** Differences between the daemons: their files, and the settings that cannot change while they run. */
import { readFileSync } from "node:fs";
import { readConfigText } from "../base/yaml.js";
import { hearsAcknowledgements, hearsTelemetry } from "../congestion/flow_state.js";
import { hearsCnmDatagrams } from "../device/compose.js";
import {
  type DeviceConfig,
  loadNicDaemon,
  loadSwitchDaemon,
  type NicDaemonConfig,
  type SwitchDaemonPort,
} from "../device/file/load.js";
import { readConfigDb } from "../device/sonic/config_db.js";
import {
  type ConvertOptions,
  checkConverted,
  convertConfigDb,
  switchYaml,
  warningsOf,
} from "../device/sonic/convert.js";
import type { InspectInterface } from "../host/interface.js";
import type { DeviceConfigs } from "./devices.js";

/** Source of a daemon's configuration. */
export interface DaemonSource {
  kind: DeviceConfig["kind"];
  /** Path of its file; a name for what was made without one. */
  path: string;
  /** Text of the file, if there is none to read. */
  text?: string;
  /** Returns the addresses of now, for a NIC that has those of the kernel whatever they are. @throws WeirError */
  follow?: (() => NicAddresses) | undefined;
  /** Set if the file is a config_db.json of SONiC. */
  sonic?: ConvertOptions | undefined;
  /** Assignments `path=value` over the file's own. */
  set?: readonly string[] | undefined;
}

/** Addresses of a NIC, and its ways beyond its link. */
export type NicAddresses = Pick<NicDaemonConfig, "addresses" | "gateways">;

/** A daemon's file as it was read, and the assignments over it that do not read it again. */
export interface DaemonFile {
  kind: DeviceConfig["kind"];
  path: string;
  text: string;
  /** Assignments `path=value`. */
  set: readonly string[];
  /** Warnings of the conversion, before the file is checked. */
  warnings: readonly string[];
}

/** @throws WeirError if it cannot be read, ScenarioError for a config_db.json that is wrong. */
export function readDaemonFile({ kind, path, text: made, sonic, set = [] }: DaemonSource): DaemonFile {
  if (sonic === undefined) return { kind, path, text: made ?? readConfigText(path, kind), set, warnings: [] };
  const converted = convertConfigDb(readConfigDb(path), path, sonic);
  checkConverted(converted);
  // Lines and columns are those of the file that `--print` shows.
  const text = switchYaml(converted);
  return { kind, path: `${path} (as switch.yaml)`, text, set, warnings: warningsOf(converted) };
}

/** Configuration of a daemon as its file has it. */
export interface ParsedDaemon {
  name: string;
  devices: DeviceConfigs;
  warnings: string[];
}

/** @throws ScenarioError, WeirError */
export function parseDaemonFile(
  { kind, path, text, set, warnings }: DaemonFile,
  inspect: InspectInterface,
): ParsedDaemon {
  const options = { set, text, inspect, cpus: cpusOfHost() };
  if (kind === "switch") {
    const { config, warnings: more } = loadSwitchDaemon(path, options);
    return { name: config.name, devices: [config], warnings: [...warnings, ...more] };
  }
  const { name, config, others, warnings: more } = loadNicDaemon(path, options);
  return { name, devices: [config, ...others], warnings: [...warnings, ...more] };
}

/** Counts CPUs that are offline, too: a worker says that it is not pinned if its own stays so. */
function cpusOfHost(): number {
  try {
    const last = /\d+\s*$/.exec(readFileSync("/sys/devices/system/cpu/present", "utf8")); // The text is such as 0-7.
    return last === null ? Number.POSITIVE_INFINITY : Number(last[0]) + 1;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Fields that differ between two configurations although a running daemon cannot change them. */
export function fixedChanges(before: DeviceConfigs, after: DeviceConfigs): string[] {
  if (before.length !== after.length) return ["ports"];
  const changed = before.flatMap((config, i) => {
    const fresh = after[i] as DeviceConfig;
    return [...differences(fixedFields(config), fixedFields(fresh)), ...changedPorts(config, fresh)];
  });
  return [...new Set(changed)];
}

function differences(old: Record<string, unknown>, fresh: Record<string, unknown>): string[] {
  const fields = [...new Set([...Object.keys(old), ...Object.keys(fresh)])];
  return fields.filter((field) => JSON.stringify(old[field]) !== JSON.stringify(fresh[field]));
}

function changedPorts(old: DeviceConfig, fresh: DeviceConfig): string[] {
  if (old.kind !== "switch" || fresh.kind !== "switch") return [];
  const same = old.ports.every(({ name }, i) => fresh.ports[i]?.name === name);
  if (!same || fresh.ports.length !== old.ports.length) return ["ports"];
  return old.ports.flatMap((port, i) => {
    const fields = differences(fixedOfPort(port), fixedOfPort(fresh.ports[i] ?? port));
    return fields.map((field) => `${field} of port ${port.name}`);
  });
}

/** All fields of a port but its limits, as the file names them. */
function fixedOfPort({
  backend,
  priority_rates: _rates,
  queue_limits: _limits,
  storm_control: _storms,
  max_learned_addresses: _learned,
  vlans: _vlans,
  ...port
}: SwitchDaemonPort): Record<string, unknown> {
  return { ...port, ...backend };
}

function fixedFields(config: DeviceConfig): Record<string, unknown> {
  const { name, metrics, dashboard, control } = config;
  // Whether LLDP frames come in is settled at the start.
  const own = { name, metrics, dashboard, control, lldp: config.lldp !== undefined };
  if (config.kind === "switch") {
    const { router, workers } = config;
    // The kernel's twins are made at the start.
    const twins = router?.kernel && { mac: router.mac, interfaces: router.interfaces };
    return {
      ...own,
      workers,
      "router.kernel": router?.kernel,
      "router.interfaces": twins,
    };
  }
  const { interface: netdev, namespace, rate, mtu, mac, backend } = config.port;
  const { path_mtu, burst, receive_buffer } = config.host;
  const queue_pairs = config.queue_pairs.map((pair) => ({ ...pair, send: pair.send && { ...pair.send, rate: 0 } }));
  const { addresses: address, gateways: gateway, vlan, transport, programs } = config;
  // Connections agree on feedback when they begin.
  const { algorithm } = config.congestion;
  const feedback = [hearsAcknowledgements(algorithm), hearsTelemetry(algorithm)];
  return {
    ...own,
    interface: netdev,
    namespace,
    rate,
    mtu,
    mac,
    ...backend,
    worker: config.worker,
    vlan,
    path_mtu,
    burst,
    receive_buffer,
    transport,
    queue_pairs,
    programs,
    // Queue pairs of the file have paths from the beginning; programs are told.
    ...(queue_pairs.length > 0 && { address, gateway }),
    "congestion.algorithm": feedback,
    // The kinds of frames that come in are settled at the start.
    "qcn.notification": hearsCnmDatagrams(config),
  };
}
