/** Congestion points of QCN (IEEE 802.1Qau). Their schema is in congestion/qcn_points.ts, and check_qcn.ts judges them. */
import type { SwitchQcn } from "../../congestion/qcn_points.js";
import { mask, type SwitchFeature } from "./feature.js";

/** Thresholds of a port, which can be other than those of its switch. */
export type Points = Pick<SwitchQcn, "cpQSp" | "cpWeight" | "cpSampleBase">;

export const pointsOf = ({ cpQSp, cpWeight, cpSampleBase }: Points) => ({
  queue_set_point: cpQSp,
  weight: cpWeight,
  sample_base: cpSampleBase,
});

export const kQcn = {
  native: ({ qcn }) => ({
    ...(qcn.enabled && {
      cn_priorities: mask(qcn.priorities),
      cnm_priority: qcn.cnm_priority,
      cp_min_header_octets: qcn.cpMinHeaderOctets,
      ...(qcn.notification === "ip" && { cnms_by_ip: true }),
      qcn: pointsOf(qcn),
    }),
  }),
  report: ({ qcn: { enabled, priorities, cpQSp, cpWeight, cpSampleBase } }) => ({
    qcn: { enabled, priorities, cpQSp, cpWeight, cpSampleBase },
  }),
} satisfies SwitchFeature<{ qcn: SwitchQcn }>;
