/** The ports of a daemon: their interfaces as probed, the backends chosen for them, and what has become of them since. */

import { portsOf } from "../device/compose.js";
import type { DaemonPort, DeviceConfig } from "../device/file/load.js";
import type { PortStatus } from "../device/protocol.js";
import { macText } from "../device/reports.js";
import { type BackendChoice, chooseBackend } from "../host/backend.js";
import { describeProbe, type MacControl, type PortProbe, pfcState, probePort } from "../host/port_probe.js";
import type { NativeAddon } from "../native/types.js";

export interface PortEvents {
  /** An interface went down or is gone, or is there again. */
  port(name: string, up: boolean): void;
  /** The name stands for another interface, which is used now; `found` describes it. */
  replaced(name: string, found: string): void;
  /** `port` is the MTU that the port itself keeps. */
  mtu(name: string, mtu: { from: number; to: number; port: number }): void;
  /** The host stopped taking frames to send, or what arrives is not taken from it; or that is over. */
  stalled(name: string, what: { tx: boolean; rx: boolean }): void;
  /** AF_XDP was picked, and could not be opened at one of them, which `reason` names: all do without. */
  fellBack(names: readonly string[], reason: string): void;
}

export interface PortSetup {
  backend: BackendChoice;
  /** Or why there is none. */
  probe: PortProbe | string;
}

interface PortState {
  up: boolean;
  tx_stalled: boolean;
  rx_stuck: boolean;
  transitions: number;
  recoveries: number;
  interface_mtu: number | null;
  mtu_changes: number;
}

interface Port {
  config: DaemonPort;
  setup: PortSetup;
  state: PortState;
}

/** Ports keep their order, and what their file says of them, as long as the daemon runs. */
export class Ports {
  private readonly ports: Port[];

  constructor(
    config: DeviceConfig,
    private readonly addon: Pick<NativeAddon, "probeInterface">,
    private readonly events: PortEvents,
  ) {
    this.ports = portsOf(config).map((port) => {
      const probe = probePort(addon, port.interface, port.namespace);
      const interface_mtu = typeof probe === "string" ? null : probe.mtu;
      return {
        config: port,
        setup: { probe, backend: chooseBackend(config.kind, port, probe) },
        state: {
          up: true,
          tx_stalled: false,
          rx_stuck: false,
          transitions: 0,
          recoveries: 0,
          interface_mtu,
          mtu_changes: 0,
        },
      };
    });
  }

  get backends(): BackendChoice[] {
    return this.ports.map(({ setup }) => setup.backend);
  }

  /** Packet sockets wherever AF_XDP was not asked for by name. False if nothing changes by that. */
  giveUpXdp(reason: string): boolean {
    const changed: string[] = [];
    for (const { config, setup } of this.ports) {
      const { backend } = setup;
      const receive = config.backend.receive === "auto" ? "af_packet" : backend.receive;
      const transmit = config.backend.transmit === "auto" ? "af_packet" : backend.transmit;
      if (receive === backend.receive && transmit === backend.transmit) continue;
      setup.backend = { ...backend, receive, transmit, reason: `af_xdp failed: ${reason}` };
      changed.push(config.name);
    }
    if (changed.length > 0) this.events.fellBack(changed, reason);
    return changed.length > 0;
  }

  /** A worker's record of a port: up or not, its MTU (0: unknown), opened anew or not. */
  take(index: number, up: boolean, mtu: number, reopened: boolean): void {
    const port = this.ports[index];
    if (port === undefined) return;
    const { config, state } = port;
    const cameBack = up && !state.up;
    if (up !== state.up) {
      state.up = up;
      state.transitions++;
      this.events.port(config.name, up);
    }
    if (reopened) this.#lookAgain(port);
    if (reopened && up && !cameBack) state.transitions += 2; // away and back between two looks
    if (cameBack || (reopened && up)) state.recoveries++;
    if (mtu !== 0) this.#takeMtu(port, mtu);
  }

  /** A worker's record of whether frames wait at a port for the host, or in it. */
  takeStall(index: number, tx: boolean, rx: boolean): void {
    const port = this.ports[index];
    if (port === undefined) return;
    Object.assign(port.state, { tx_stalled: tx, rx_stuck: rx });
    this.events.stalled(port.config.name, { tx, rx });
  }

  /** @param seen Whether MAC control frames have arrived at a port. */
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

  /** Fields of the log line about each port at the start. */
  *logFields(): Iterable<Record<string, string>> {
    for (const { config, setup } of this.ports) {
      const { receive, transmit, xdp_mode, backend_reason } = backendStatus(setup);
      yield {
        port: config.name,
        interface: config.interface,
        found: found(setup.probe),
        receive,
        transmit,
        ...(xdp_mode !== null && { xdp_mode }),
        why: backend_reason,
      };
    }
  }

  /** What does not work as it is set up, with the reason or remedy. */
  *warnings(config: DeviceConfig): Iterable<{ port: string; reason?: string; message: string }> {
    for (const { config: port, setup } of this.ports) {
      for (const message of setup.backend.warnings) yield { port: port.name, message };
      const { pfc, mac_control } = portPfc(config, setup, false);
      if (pfc !== "not possible here") continue;
      const message = "PFC: not possible here, the peer's pauses do not arrive";
      yield { port: port.name, reason: mac_control.reason, message };
    }
  }

  #lookAgain(port: Port): void {
    const { name, interface: netdev, namespace } = port.config;
    port.setup.probe = probePort(this.addon, netdev, namespace);
    this.events.replaced(name, found(port.setup.probe));
  }

  #takeMtu({ config, state }: Port, mtu: number): void {
    const from = state.interface_mtu;
    state.interface_mtu = mtu;
    if (from === null || from === mtu) return;
    state.mtu_changes++;
    this.events.mtu(config.name, { from, to: mtu, port: config.mtu });
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
