/** Marking of the egress queues with CE, as RED does: the congestion point of DCQCN. */
import { choice, type Full, flag, fraction, priorities, section, size } from "../../base/fields.js";
import type { Findings } from "../../base/findings.js";
import { formatSize } from "../../base/units.js";
import { kFrameOverhead } from "../headroom.js";
import { kMostMemory } from "./buffer.js";
import { type CheckedPort, mask, type SwitchFeature } from "./feature.js";

export const ecnSchema = section({
  enabled: flag("Mark packets with CE.", true),
  kmin: size("Queue length above which marking starts (paper: t_ECN).", { default: "5KB", max: kMostMemory }),
  kmax: size("Queue length above which every packet is marked.", { default: "200KB", max: kMostMemory }),
  pmax: fraction("Marking probability at kmax.", { default: "1%" }),
  mark: choice("Decide when a packet joins the queue, or when it leaves.", ["enqueue", "dequeue"], "enqueue"),
  queue: choice(
    "Queue length that is looked at: the present one, or a moving average.",
    ["instantaneous", "averaged"],
    "instantaneous",
  ),
  weight: fraction("Weight of a new sample in the moving average.", { default: 0.002, min: 1e-6 }),
  priorities: priorities("Priorities whose packets are marked.", [3]),
});

export type EcnConfig = Full<typeof ecnSchema>;

/** Thresholds of a port, which can be other than those of its switch. */
export type Marking = Pick<EcnConfig, "kmin" | "kmax" | "pmax">;

export interface Needs {
  name: string;
  ecn: EcnConfig;
  profiled: ReadonlyMap<string, { ecn: Marking }>;
}

/** Warns of figures in KB that were written without a unit: every packet would be marked from a very short queue on. */
function checkKmax(s: Needs, ports: readonly CheckedPort[], found: Findings): void {
  if (!s.ecn.enabled || s.ecn.priorities.length === 0) return;
  for (const { name, mtu } of ports) {
    const { kmax } = s.profiled.get(name)?.ecn ?? s.ecn;
    if (kmax === 0 || kmax >= 2 * (mtu + kFrameOverhead)) continue;
    found.warn(
      `switch ${s.name}: kmax ${formatSize(kmax)} is less than two packets of MTU ${mtu}, on the port to ${name}: hardly a queue goes ` +
        `unmarked (a size without a unit is in bytes: for KB write ${kmax}KB)`,
    );
    return;
  }
}

export const redOf = ({ queue, weight }: EcnConfig, { kmin, kmax, pmax }: Marking) => ({
  kmin,
  kmax,
  pmax,
  averaged: queue === "averaged",
  weight,
});

export const kEcn = {
  check: (needs, ports, at, found) => {
    const { kmin, kmax } = needs.ecn;
    if (kmin > kmax) {
      const message = `${formatSize(kmin)} is greater than kmax ${formatSize(kmax)}`;
      found.problem(at("ecn", "kmin"), message, "kmin must be between 0 and kmax");
    }
    checkKmax(needs, ports, found);
  },
  native: ({ ecn }) => ({
    ecn_priorities: ecn.enabled ? mask(ecn.priorities) : 0,
    mark_on_dequeue: ecn.mark === "dequeue",
    red: redOf(ecn, ecn),
  }),
  report: ({ ecn: { enabled, kmin, kmax, pmax, priorities } }) => ({ ecn: { enabled, kmin, kmax, pmax, priorities } }),
} satisfies SwitchFeature<Needs>;
