/** The ports of a daemon: their interfaces as probed, the backends chosen for them, and their state since then. */

import { macText } from "../base/mac.js";
import { portsOf } from "../device/compose.js";
import type { DaemonPort, DeviceConfig } from "../device/file/load.js";
import type { PortStatus } from "../device/protocol.js";
import { type BackendChoice, chooseBackend } from "../host/backend.js";
import { describeProbe, type MacControl, type PortProbe, pfcState, probePort } from "../host/port_probe.js";
import type { NativeAddon } from "../native/types.js";
import type { Log } from "./log.js";

export interface PortSetup {
  backend: BackendChoice;
  /** The probe, or why there is none. */
  probe: PortProbe | string;
}

interface PortState {
  up: boolean;
  tx_stalled: boolean;
  rx_stuck: boolean;
  tx_falls_back: boolean;
  transitions: number;
  recoveries: number;
  interface_mtu: number | null;
  mtu_changes: number;
  xdp_queues: number;
  rx_zero_copy: boolean | null;
  tx_zero_copy: boolean | null;
}

interface Port {
  config: DaemonPort;
  setup: PortSetup;
  state: PortState;
}

/** Ports keep their order, and their settings of the file, as long as the daemon runs. */
export class Ports {
  private readonly ports: Port[];

  constructor(
    config: DeviceConfig,
    private readonly addon: Pick<NativeAddon, "probeInterface">,
    private readonly log: Log,
  ) {
    const direct = config.kind === "nic" && config.programs?.direct === true;
    this.ports = portsOf(config).map((port) => {
      const probe = probePort(addon, port.interface, port.namespace);
      const interface_mtu = typeof probe === "string" ? null : probe.mtu;
      return {
        config: port,
        setup: { probe, backend: chooseBackend(config.kind, { ...port, direct }, probe) },
        state: {
          up: true,
          tx_stalled: false,
          rx_stuck: false,
          tx_falls_back: false,
          transitions: 0,
          recoveries: 0,
          interface_mtu,
          mtu_changes: 0,
          xdp_queues: 0,
          rx_zero_copy: null,
          tx_zero_copy: null,
        },
      };
    });
  }

  get backends(): BackendChoice[] {
    return this.ports.map(({ setup }) => setup.backend);
  }

  /** Says of each port whether it is up. */
  get up(): boolean[] {
    return this.ports.map(({ state }) => state.up);
  }

  /** Falls back to packet sockets wherever AF_XDP or live frames were not asked for by name. Returns false if nothing changes by that. */
  giveUpXdp(reason: string): boolean {
    const changed: string[] = [];
    const ways = new Set<string>();
    for (const { config, setup } of this.ports) {
      const { backend } = setup;
      const receive = config.backend.receive === "auto" ? "af_packet" : backend.receive;
      const transmit = config.backend.transmit === "auto" ? "af_packet" : backend.transmit;
      if (receive === backend.receive && transmit === backend.transmit) continue;
      const failed = backend.transmit === "live" ? "live" : "af_xdp";
      setup.backend = { ...backend, receive, transmit, live_for_xdp: false, reason: `${failed} failed: ${reason}` };
      changed.push(config.name);
      ways.add(failed);
    }
    if (changed.length === 0) return false;
    this.log.warn({ ports: changed, reason }, `${[...ways].join(" and ")} cannot be opened, af_packet instead`);
    return true;
  }

  /** Takes a worker's record of a port: up or not, its MTU (0: unknown), opened anew or not. */
  take(index: number, up: boolean, mtu: number, reopened: boolean): void {
    const port = this.ports[index];
    if (port === undefined) return;
    const { config, state } = port;
    const cameBack = up && !state.up;
    if (up !== state.up) {
      state.up = up;
      state.transitions++;
      if (up) this.log.info({ port: config.name }, "interface is up again");
      else this.log.warn({ port: config.name }, "interface is down or gone");
    }
    if (reopened) this.#lookAgain(port);
    if (reopened && up && !cameBack) state.transitions += 2; // It was away and back between two looks.
    if (cameBack || (reopened && up)) state.recoveries++;
    if (mtu !== 0) this.#takeMtu(port, mtu);
  }

  /** Takes a worker's record of whether frames wait at a port for the host, or in it, and whether they leave another way than asked for. */
  takeStall(index: number, tx: boolean, rx: boolean, fallsBack: boolean): void {
    const found = this.ports[index];
    if (found === undefined) return;
    const { config, state } = found;
    const port = config.name;
    if (fallsBack !== state.tx_falls_back) this.#takeFallback(found, fallsBack);
    const same = tx === state.tx_stalled && rx === state.rx_stuck;
    Object.assign(state, { tx_stalled: tx, rx_stuck: rx, tx_falls_back: fallsBack });
    if (same) return;
    if (tx) this.log.warn({ port }, "the host takes no frames to send: they wait in the queues");
    if (rx) this.log.error({ port }, "frames arrive and are not taken from the host");
    if (!tx && !rx) this.log.info({ port }, "frames pass again");
  }

  /** Takes a worker's record of the AF_XDP sockets of a port: how many receive, and which way frames are not copied. */
  takeQueues(index: number, queues: number, rx: boolean, tx: boolean): void {
    const found = this.ports[index];
    if (found === undefined) return;
    const { config, setup, state } = found;
    const { receive, transmit } = setup.backend;
    const from = state.xdp_queues;
    state.xdp_queues = queues;
    state.rx_zero_copy = receive === "af_xdp" && queues > 0 ? rx : null;
    state.tx_zero_copy = transmit === "af_xdp" ? tx : null;
    if (from === 0 || queues === from) return;
    found.setup.probe = probePort(this.addon, config.interface, config.namespace);
    this.log.info(
      { port: config.name, from, to: queues },
      "the interface has another number of receive queues, all have sockets",
    );
  }

  /** @param seen Tells whether MAC control frames have arrived at a port. */
  status(config: DeviceConfig, seen: (port: string) => boolean): (PortStatus & { transitions: number })[] {
    return this.ports.map(({ config: port, setup, state }) => ({
      name: port.name,
      interface: port.interface,
      namespace: port.namespace ?? null,
      mac: macText(port.mac),
      mtu: port.mtu,
      rate: port.rate,
      ...state,
      ...backendStatus(setup),
      ...portPfc(config, setup, seen(port.name)),
    }));
  }

  /** Logs the backends of each port, and settings that do not work, with the reason or remedy. */
  tell(config: DeviceConfig): void {
    for (const { config: port, setup } of this.ports) {
      const { receive, transmit, xdp_mode, backend_reason: why } = backendStatus(setup);
      const fields = { port: port.name, interface: port.interface, found: found(setup.probe), receive, transmit };
      this.log.info({ ...fields, ...(xdp_mode !== null && { xdp_mode }), why }, "backend chosen");
    }
    for (const { config: port, setup } of this.ports) {
      for (const message of setup.backend.warnings) this.log.warn({ port: port.name }, message);
      const { pfc, mac_control } = portPfc(config, setup, false);
      if (pfc !== "not possible here") continue;
      const { reason } = mac_control;
      this.log.warn({ port: port.name, reason }, "PFC: not possible here, the peer's pauses do not arrive");
    }
  }

  #takeFallback({ config, setup }: Port, fallsBack: boolean): void {
    const { name: port } = config;
    const { receive, live_for_xdp } = setup.backend;
    if (live_for_xdp) {
      const gone = `no XDP program takes live frames now: all leave by ${receive}`;
      this.log.info({ port }, fallsBack ? gone : "an XDP program takes live frames");
      return;
    }
    const remedy = "on a veth: in the namespace of its peer, ethtool -K PEER gro on";
    if (fallsBack) this.log.warn({ port, remedy }, `the interface takes no live frames: they leave by ${receive}`);
    else this.log.info({ port }, "the interface takes live frames");
  }

  #lookAgain(port: Port): void {
    const { name, interface: netdev, namespace } = port.config;
    port.setup.probe = probePort(this.addon, netdev, namespace);
    this.log.info({ port: name, found: found(port.setup.probe) }, "another interface has the name, it is used now");
  }

  #takeMtu({ config, state }: Port, mtu: number): void {
    const from = state.interface_mtu;
    state.interface_mtu = mtu;
    if (from === null || from === mtu) return;
    state.mtu_changes++;
    const fields = { port: config.name, from, to: mtu, port_mtu: config.mtu };
    if (mtu < config.mtu) {
      this.log.warn(fields, "the interface's MTU is smaller than the port's now: longer frames are lost");
    } else this.log.info(fields, "the interface's MTU has changed, the port keeps its own until a restart");
  }
}

const found = (probe: PortProbe | string) => (typeof probe === "string" ? `unknown: ${probe}` : describeProbe(probe));

function portPfc(config: DeviceConfig, { probe }: PortSetup, seen: boolean): Pick<PortStatus, "pfc" | "mac_control"> {
  const guess: MacControl =
    typeof probe === "string" ? { reaches: "unknown", reason: `not probed: ${probe}` } : probe.mac_control;
  const mac_control: MacControl = seen ? { reaches: "yes", reason: "some have arrived" } : guess;
  const { pfc } = config.kind === "switch" ? config.switch : config.classes;
  return { pfc: pfcState(pfc.enabled && pfc.priorities.length > 0, mac_control), mac_control };
}

function backendStatus({
  backend,
  probe,
}: PortSetup): Pick<PortStatus, "receive" | "transmit" | "xdp_mode" | "backend_reason" | "probe"> {
  return {
    receive: backend.receive,
    transmit: backend.transmit,
    xdp_mode: backend.receive === "af_xdp" ? backend.xdp_mode : null,
    backend_reason: backend.reason,
    probe: typeof probe === "string" ? null : probe,
  };
}
