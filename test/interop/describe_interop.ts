import { describeGuests } from "../guests/capability.js";
import { kRxeImage } from "./rxe_guest.js";

/** describe() for tests with guests that have Soft-RoCE. */
export function describeInterop(name: string, body: () => void): void {
  describeGuests([kRxeImage], name, body);
}
