/** Congestion notification packets (CNP) of a NIC that receives marks: the notification point of DCQCN. */
import { type Full, integer, section, time } from "../../base/fields.js";
import type { HostFeature } from "./feature.js";

export const cnpSchema = section({
  dscp: integer("DSCP of congestion notification packets.", 0, 63, 48),
  priority: integer("Priority (PCP) of congestion notification packets.", 0, 7, 6),
  nic_interval: time(
    "Least time between two CNPs of the NIC, whichever flows they are of (paper section 3.3: 1 to 5 us of a ConnectX-3 Pro). CNPs that are owed wait in turn; one that a flow is owed while it waits for another is withheld (`np_cnp_withheld`). 0: no limit.",
    { default: "0s", max: 1e9 },
  ),
});

export const kCnp = {
  native: ({ cnp: { nic_interval, dscp, priority } }) => ({
    ...(nic_interval > 0 && { cnp_nic_interval: nic_interval }),
    cnp_dscp: dscp,
    cnp_priority: priority,
  }),
} satisfies HostFeature<{ cnp: Full<typeof cnpSchema> }>;
