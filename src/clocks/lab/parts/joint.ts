/** What a part says of the ends of its links to others. */
import type { Carrier, CarrierLosses } from "../../../host/carrier.js";
import type { Crossing } from "../../../scenario/parts.js";

/** The end of a link to another part, after a run. */
export interface JointReport {
  crossing: Crossing;
  carrier: Carrier;
  /** Shortest there and back, wall ns. */
  roundTrip: number;
  /** Since the run began. */
  losses: Partial<CarrierLosses>;
}
