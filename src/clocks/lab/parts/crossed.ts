/** Frames that have crossed a link between two parts, as its end here has counted them. */
import type { CounterTable, CounterView } from "../../../native/counters.js";
import type { Crossing, Share } from "../../../scenario/parts.js";

export interface CrossedFrames {
  crossing: Crossing;
  /** Given to the interface, and taken from it before anything is done to them, impairments included. */
  sent: number;
  received: number;
}

const total = (view: CounterView, ...names: readonly string[]) => names.reduce((all, name) => all + view.sum(name), 0);

/** MAC control is in both counts. A frame that an impairment takes, or doubles, has come once. */
export function crossedFrames(share: Share, switches: CounterTable, nics: CounterTable): CrossedFrames[] {
  return share.crossings.map((crossing) => {
    const { near, far } = crossing;
    const atSwitch = share.switchAt(near) >= 0;
    // A host has one link; what its queue pairs count is counted by the NIC, too.
    const port = atSwitch ? switches.view({ switch: near, port: far }) : nics.view({ device: near }, "qpn");
    const faults = (atSwitch ? switches : nics).view({ device: near, port: far });
    const unknown = atSwitch ? "rx_mac_control_unknown" : "rx_unsupported_op_phy";
    return {
      crossing,
      sent: total(port, "tx_packets", "tx_pfc_frames", ...(atSwitch ? [] : ["tx_slow_path"])),
      received:
        total(port, "rx_packets", "rx_pfc_frames", "rx_pause_frames", unknown) +
        total(faults, "lost", "overflow") -
        faults.sum("duplicated"),
    };
  });
}
