/** Priority of acknowledgements and NAKs of reliable connections. */
import { type Full, integer, section } from "../../base/fields.js";
import type { HostFeature } from "./feature.js";

export const ackSchema = section({
  priority: integer(
    "Priority (PCP) of acknowledgements and NAKs, where it is another than that of the data that they are for. Default: as the data.",
    0,
    7,
  ),
  dscp: integer("DSCP of acknowledgements and NAKs that have a `priority` of their own.", 0, 63, 48),
});

export const kAck = {
  native: ({ ack: { priority, dscp } }) => ({
    ...(priority !== undefined && { ack_dscp: dscp, ack_priority: priority }),
  }),
} satisfies HostFeature<{ ack: Full<typeof ackSchema> }>;
