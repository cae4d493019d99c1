/** The devices of a running lab: its switches, then its hosts' NICs, in meant units. */
import { macText } from "../base/mac.js";
import type { CapturePort } from "../device/captures.js";
import { Device, type DeviceHost, type DevicePort, type DeviceSource } from "../device/device.js";
import { pfcState } from "../host/port_probe.js";
import { loadAddon } from "../native/addon.js";
import type { NativeAddon } from "../native/types.js";
import { hostMac, switchMac } from "../scenario/addresses.js";
import { switchPorts } from "../scenario/topology.js";
import type { Scenario, TrafficClasses } from "../scenario/types.js";
import type { LabAccess } from "./access.js";
import { labCapturePorts } from "./capture.js";
import { queuePairsOf } from "./compose.js";

/** What the interface of each NIC is called. */
export const kNicInterface = "weir0";
const kVeth = { reaches: "yes", reason: "a veth passes every frame" } as const;

type Running = Pick<LabAccess, "scenario" | "scale" | "switches" | "nics" | "now">;
/** What the process knows of a lab, besides its devices: where it is served. */
export type LabHost = Pick<DeviceHost, "version"> & { control: string; metrics: string | null };

export function labDevices(lab: Running, { version, control, metrics }: LabHost): Device[] {
  const { switches, hosts } = lab.scenario;
  const uptime = () => Math.max(0, lab.now()) / 1e9;
  const host = { version, status: () => ({ uptime_s: uptime(), control, metrics, dashboard: null }) };
  return [
    ...switches.map(({ name }, index) => new Device(new LabSwitch(lab, name, index), host)),
    ...hosts.map(({ name }, index) => new Device(new LabNic(lab, name, index), host)),
  ];
}

abstract class LabDevice {
  readonly scale: number;

  constructor(
    protected readonly lab: Running,
    readonly name: string,
    readonly index: number,
  ) {
    this.scale = lab.scale;
  }

  get addon() {
    return loadAddon<NativeAddon>();
  }

  switchSetting(): ReturnType<DeviceSource["switchSetting"]> {
    return undefined;
  }

  nicSetting(): ReturnType<DeviceSource["nicSetting"]> {
    return undefined;
  }

  places(): CapturePort[] {
    return labCapturePorts(this.lab, this.name);
  }
}

class LabSwitch extends LabDevice implements DeviceSource {
  readonly kind = "switch";

  get worker() {
    return this.lab.switches.worker;
  }

  counted() {
    return this.lab.switches.counters;
  }

  override switchSetting() {
    return { config: this.#config(), ports: this.#links().map(({ peer }) => ({ name: peer })) };
  }

  ports(): DevicePort[] {
    const { ports } = this.worker.switchState(this.index);
    const { pfc } = this.#config();
    return this.#links().map(({ peer, link }, i) => ({
      ...portStatus(link, pfc),
      name: peer,
      interface: peer,
      mac: macText(switchMac(this.index, i)),
      up: ports[i]?.up ?? false,
    }));
  }

  #config() {
    return this.lab.scenario.switches[this.index] as Scenario["switches"][number];
  }

  #links() {
    return switchPorts(this.lab.scenario).get(this.name) ?? [];
  }
}

class LabNic extends LabDevice implements DeviceSource {
  readonly kind = "nic";

  get worker() {
    return this.lab.nics.worker;
  }

  counted() {
    return this.lab.nics.counters;
  }

  override nicSetting() {
    const { scenario } = this.lab;
    const host = scenario.hosts[this.index] as Scenario["hosts"][number];
    const pairs = queuePairsOf(scenario, this.name).map(({ flow, sends }) => ({
      peer: sends ? flow.to : flow.from,
      priority: flow.priority,
    }));
    const { algorithm } = scenario.congestion;
    return { classes: this.#link().neighbour, receiveBuffer: host.receive_buffer.size, algorithm, pairs };
  }

  ports(): DevicePort[] {
    const { link, neighbour } = this.#link();
    const own = { name: kNicInterface, interface: kNicInterface, mac: macText(hostMac(this.index)), up: true };
    return [{ ...portStatus(link, neighbour.pfc), ...own }];
  }

  #link() {
    const { name } = this;
    const { links, switches } = this.lab.scenario;
    const link = links.find(({ from, to }) => from === name || to === name);
    const neighbour = switches.find((s) => s.name === link?.from || s.name === link?.to);
    if (link === undefined || neighbour === undefined) throw new Error(`host ${name} is not linked to a switch`);
    return { link, neighbour };
  }
}

/** What is the same at all ports of labs. */
function portStatus(link: Scenario["links"][number], pfc: TrafficClasses["pfc"]) {
  return {
    namespace: null,
    tx_stalled: false,
    rx_stuck: false,
    mtu: link.mtu,
    rate: link.rate,
    recoveries: 0,
    transitions: 0,
    interface_mtu: link.mtu,
    mtu_changes: 0,
    receive: "af_packet",
    transmit: "af_packet",
    xdp_mode: null,
    backend_reason: "labs use packet sockets",
    pfc: pfcState(pfc.enabled && pfc.priorities.length > 0, kVeth),
    mac_control: kVeth,
    probe: null,
  } satisfies Partial<DevicePort>;
}
