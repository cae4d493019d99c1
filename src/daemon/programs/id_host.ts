/** What ids of connection managers need of their NIC. */

import type { GroupReports } from "../../wire/cm/group_reports.js";
import type { Clock } from "../../wire/cm/link.js";
import type { PathMtu } from "../../wire/cm/messages.js";
import type { NicAddress } from "./nic_address.js";
import type { PortSpace } from "./program_ports.js";

/** The part of the NIC that ids use. */
export interface IdHost {
  /** Those of now. */
  readonly addresses: readonly NicAddress[];
  /** EUI-64. */
  readonly guid: Buffer;
  readonly pathMtu: PathMtu;
  readonly clock: Clock;
  /** Returns 32 random bits. */
  random(): number;
  readonly groups: Pick<GroupReports, "join">;
  readonly ports: Readonly<Record<number, PortSpace>>;
}
