/** The devices of a running lab: its switches, then its hosts' NICs, in meant units. */

import { macText } from "../../base/mac.js";
import { Device, type DeviceHost, type DevicePort, type DeviceSource } from "../../device/device.js";
import type { ProgramIdentity } from "../../device/protocol.js";
import { pfcState } from "../../host/port_probe.js";
import { loadAddon } from "../../native/addon.js";
import type { NativeAddon } from "../../native/types.js";
import { hostMac, switchMac } from "../../scenario/addresses.js";
import { Fabric, type FabricPort } from "../../scenario/fabric.js";
import { Share } from "../../scenario/parts.js";
import { flowsAt } from "../../scenario/traffic.js";
import type { HostConfig, Link, SwitchConfig, TrafficClasses } from "../../scenario/types.js";
import type { LabAccess } from "./access.js";
import { labCapturePorts } from "./capture.js";

/** Name of each NIC's interface. */
export const kNicInterface = "weir0";
const kVeth = { reaches: "yes", reason: "a veth passes every frame" } as const;

export type RunningDevices = Pick<LabAccess, "scenario" | "scale" | "switches" | "nics" | "now"> & {
  /** Programs that use the NIC of host number `host`. */
  programs?(host: number): ReadonlyMap<number, ProgramIdentity>;
};
/** Facts about a lab that only the process knows: its version, and where the lab is served. */
export type LabHost = Pick<DeviceHost, "version"> & { control: string; metrics: string | null };

export function labDevices(lab: RunningDevices, { version, control, metrics }: LabHost): Device[] {
  const { switches, hosts } = lab.scenario;
  const share = new Share(lab.scenario);
  const fabric = new Fabric(lab.scenario);
  const uptime = () => Math.max(0, lab.now()) / 1e9;
  const host = { version, status: () => ({ uptime_s: uptime(), control, metrics, dashboard: null }) };
  return [
    ...share.switches.map((number, index) => {
      const { name } = switches[number] as SwitchConfig;
      return new Device(labSwitch(lab, fabric, { name, number, index }), host);
    }),
    ...share.hosts.map((number, index) => {
      const { name } = hosts[number] as HostConfig;
      return new Device(labNic(lab, fabric, { name, number, index }), host);
    }),
  ];
}

interface Place {
  name: string;
  /** Position among all switches, or hosts, of the scenario. */
  number: number;
  /** Position among those that run here. */
  index: number;
}

function labSwitch(lab: RunningDevices, fabric: Fabric, { name, number, index }: Place): DeviceSource {
  const { worker } = lab.switches;
  const peers = fabric.peers(number);
  const config = () => lab.scenario.switches[number] as SwitchConfig;
  return {
    ...common(lab, name, index),
    get addon() {
      return loadAddon<NativeAddon>();
    },
    kind: "switch",
    worker,
    counted: () => lab.switches.counters,
    switchSetting: () => ({ config: config(), ports: peers.map((name) => ({ name })) }),
    nicSetting: () => undefined,
    ports() {
      const { ports } = worker.switchState(index);
      return peers.map((peer, i) => ({
        ...portStatus(lab.scenario.links[fabric.ports[number]?.[i]?.link ?? -1] as Link, config().pfc),
        name: peer,
        interface: peer,
        mac: macText(switchMac(number, i)),
        up: ports[i]?.up ?? false,
      }));
    },
  };
}

function labNic(lab: RunningDevices, fabric: Fabric, { name, number, index }: Place): DeviceSource {
  const port = fabric.ports[lab.scenario.switches.length + number]?.[0] as FabricPort;
  const link = () => lab.scenario.links[port.link] as Link;
  const neighbour = () => lab.scenario.switches[port.peer] as SwitchConfig;
  return {
    ...common(lab, name, index),
    get addon() {
      return loadAddon<NativeAddon>();
    },
    kind: "nic",
    worker: lab.nics.worker,
    counted: () => lab.nics.counters,
    switchSetting: () => undefined,
    programs: () => lab.programs?.(index) ?? new Map(),
    nicSetting() {
      const { scenario } = lab;
      const pairs = flowsAt(scenario.flows, name).map(({ flow: { from, to, priority } }) => ({
        peer: from === name ? to : from,
        priority,
      }));
      const { congestion, hosts } = scenario;
      const { receive_buffer, qcn } = hosts[number] as HostConfig;
      return { classes: neighbour(), receiveBuffer: receive_buffer.size, congestion, qcn, pairs };
    },
    ports() {
      const own = { name: kNicInterface, interface: kNicInterface, mac: macText(hostMac(number)), up: true };
      return [{ ...portStatus(link(), neighbour().pfc), ...own }];
    },
  };
}

const common = (lab: RunningDevices, name: string, index: number) => ({
  name,
  index,
  scale: lab.scale,
  places: () => labCapturePorts(lab, name),
});

/** Status that is the same at all ports of labs. */
function portStatus(link: Link, pfc: TrafficClasses["pfc"]) {
  return {
    namespace: null,
    tx_stalled: false,
    rx_stuck: false,
    tx_falls_back: false,
    mtu: link.mtu,
    rate: link.rate,
    recoveries: 0,
    transitions: 0,
    interface_mtu: link.mtu,
    mtu_changes: 0,
    receive: "af_packet",
    transmit: "af_packet",
    xdp_mode: null,
    xdp_queues: 0,
    rx_zero_copy: null,
    tx_zero_copy: null,
    backend_reason: "labs use packet sockets",
    pfc: pfcState(pfc.enabled && pfc.priorities.length > 0, kVeth),
    mac_control: kVeth,
    probe: null,
  } satisfies Partial<DevicePort>;
}
