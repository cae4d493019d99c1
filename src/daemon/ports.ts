/** The ports of a daemon: their interfaces as probed, the backends chosen for them, and what has become of them since. */
import type { DaemonPort } from "../config/daemon.js";
import type { NativeAddon } from "../native/types.js";
import { type BackendChoice, chooseBackend } from "./backend.js";
import { type DaemonConfig, portsOf } from "./kinds.js";
import { describeProbe, type MacControl, type PfcState, type PortProbe, pfcState, probePort } from "./port_probe.js";
import type { PortStatus } from "./protocol.js";

export interface PortSetup {
  backend: BackendChoice;
  /** Or why there is none. */
  probe: PortProbe | string;
}

export function setUpPorts(config: DaemonConfig, addon: Pick<NativeAddon, "probeInterface">): PortSetup[] {
  return portsOf(config).map((port) => {
    const probe = probePort(addon, port.interface, port.namespace);
    return { probe, backend: chooseBackend(config.kind, port, probe) };
  });
}

/** PFC of one port. @param seen MAC control frames have arrived. */
export function portPfc(
  config: DaemonConfig,
  { probe }: PortSetup,
  seen: boolean,
): { pfc: PfcState; mac_control: MacControl } {
  const guess: MacControl =
    typeof probe === "string" ? { reaches: "unknown", reason: `not probed: ${probe}` } : probe.mac_control;
  const mac_control: MacControl = seen ? { reaches: "yes", reason: "some have arrived" } : guess;
  const { pfc } = config.kind === "switch" ? config.switch : config.classes;
  return { pfc: pfcState(pfc.enabled && pfc.priorities.length > 0, mac_control), mac_control };
}

/** What `weir show ports` tells of the way between interface and Weir. */
export function backendStatus({
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

/** Fields of the log line about a port at the start. */
export function logFields(port: DaemonPort, setup: PortSetup): Record<string, string> {
  const { receive, transmit, xdp_mode, backend_reason } = backendStatus(setup);
  const { probe } = setup;
  return {
    port: port.name,
    interface: port.interface,
    found: typeof probe === "string" ? `unknown: ${probe}` : describeProbe(probe),
    receive,
    transmit,
    ...(xdp_mode !== null && { xdp_mode }),
    why: backend_reason,
  };
}
