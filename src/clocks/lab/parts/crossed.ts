/** Frames that have crossed a link between two parts, as its end here has counted them. */
import type { CounterTable } from "../../../native/counters.js";
import type { Crossing, Share } from "../../../scenario/parts.js";

export interface CrossedFrames {
  crossing: Crossing;
  /** Frames given to the interface, and those taken from it before anything is done to them, impairments included. */
  sent: number;
  received: number;
}

/** Counts the frames of each crossing, MAC control included. A frame that an impairment takes, or doubles, has come once. */
export function crossedFrames(share: Share, switches: CounterTable, nics: CounterTable): CrossedFrames[] {
  return share.crossings.map((crossing) => {
    const { near, far } = crossing;
    const atSwitch = share.switchAt(near) >= 0;
    // A host has one link.
    const port = atSwitch ? switches.at({ switch: near, port: far }) : nics.at({ device: near });
    const faults = (atSwitch ? switches : nics).at({ device: near, port: far });
    return {
      crossing,
      sent: port.of("sent", "control_tx").sum(),
      received: port.of("received", "control_rx").sum() + faults.of("fault").sum() - faults.of("duplicate").sum(),
    };
  });
}
