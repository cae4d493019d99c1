/** Reports of a part on the ends of its links to others. */
import type { Carrier, CarrierLosses } from "../../../host/carrier.js";
import type { Crossing } from "../../../scenario/parts.js";

/** The end of a link to another part, after a run. */
export interface JointReport {
  crossing: Crossing;
  carrier: Carrier;
  /** Shortest round trip, wall ns. */
  roundTrip: number;
  /** Losses since the run began. */
  losses: Partial<CarrierLosses>;
}
