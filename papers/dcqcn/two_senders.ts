/** Three machines on one switch, section 6.1 of the DCQCN paper: what figures 10 and 13 share. */

import { between, mean, type Signal } from "../../src/result/measure.js";
import { kEthernetOverhead, kHeaderBytes } from "../../src/wire/frame_size.js";
import type { Evidence } from "../engine/experiment.js";

export const kFile = "dcqcn/three-machines.yaml";
export const kFlows = ["first", "second"] as const;
export type FlowName = (typeof kFlows)[number];

/** Gb/s */
export const kLink = 40;
export const kFairShare = kLink / 2;

/** The second sender at the start: as section 3.1 has it, and from next to nothing, as section 5.2's model does. */
export const kStarts = {
  line: { label: "from line rate", set: [] },
  low: {
    label: "from 100 Mb/s",
    set: ["topology.host_overrides.h2.line_rate_start=false", "topology.host_overrides.h2.initial_rate=100Mbps"],
  },
} as const;
export type StartName = keyof typeof kStarts;

export const kStartChoice =
  "The second sender begins at line rate, as section 3.1 says; the model of section 5.2 begins at 0, so a second run begins at 100 Mb/s.";

export const kSince = "time since the second sender's start, ms";

/** R_C of a flow, Gb/s. */
export function sendingRate({ series }: Evidence, flow: FlowName): Signal {
  const { rate_bps = [] } = series.flows[flow] ?? {};
  return { time: series.time_s, values: rate_bps.map((bps) => bps / 1e9) };
}

/** Bytes of a flow that came to the receiver in each interval, as Gb/s of the link: with headers, FCS, preamble and gap. */
export function throughput({ scenario, series }: Evidence, flow: FlowName): Signal {
  const payload = scenario.hosts[0]?.path_mtu ?? 1024;
  const frame = (payload + kHeaderBytes + kEthernetOverhead) / payload;
  const { goodput_bps = [] } = series.flows[flow] ?? {};
  return { time: series.time_s, values: goodput_bps.map((bps) => (bps * frame) / 1e9) };
}

/** Means of 1 ms each, of a time in s. A sample is of the interval that ends with it. */
export function milliseconds({ time, values }: Signal, from: number, to: number): number[] {
  const interval = (time[1] ?? 1) - (time[0] ?? 0);
  const samples = between({ time, values }, from + interval / 2, to + interval / 2);
  const each = Math.round(0.001 / interval);
  return Array.from({ length: Math.floor(samples.length / each) }, (_, i) =>
    mean(samples.slice(i * each, (i + 1) * each)),
  );
}
