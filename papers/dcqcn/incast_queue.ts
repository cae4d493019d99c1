/**
 * The receiver's queue in an incast of 20 to 1 at 40 Gb/s (section 6.3 of the DCQCN paper), papers/dcqcn/incast-20to1.yaml, and
 * what others have measured of it. Lengths are of the second half of 100 ms, in KB; link time is what was used of what headers leave.
 *
 * ns-3: percentiles of samples every 10 us of the second half of 100 ms, made with the parameters of the paper's table 14 (R_HAI 200 Mb/s,
 * lowest rate 100 Mb/s) and links of 1 us. HPCC: github.com/alibaba-edu/High-Precision-Congestion-Control, commit 9f4be2a (ns-3.17), CC_MODE 1,
 * which has no byte counter and no CNP interval; a cut at most each 50 us stands for the latter. Its R_HAI applies by the timer alone from the
 * second increase after fast recovery on; with R_HAI = R_AI = 40 Mb/s that is additive increase, nearest to the paper. ns3-rdma:
 * github.com/bobzhuyb/ns3-rdma, commit e8a27d0 (ns-3.17), of the paper's first author. Both mark when a packet leaves the queue. Their
 * distributions are in papers/dcqcn/reference/, for `weir paper dcqcn-fig19 --reference`.
 */

import { goodputLimit } from "../../src/result/goodput_limit.js";
import { queueCdf } from "../../src/result/queue_cdf.js";
import type { Evidence, TraceValues } from "../engine/experiment.js";

export const kFile = "dcqcn/incast-20to1.yaml";
const kQueue = { switch: "sw", port: "h21", priority: 3 };

/** KB, section 6.3 and figure 19. */
export const kPaper = { dcqcn: { p95: 76.6 }, dctcp: { p95: 162.9 } };

export interface Lengths {
  p50: number;
  p95: number;
  p99: number;
  max: number;
}

export const kNs3: readonly (Lengths & { label: string; short: string })[] = [
  { label: "HPCC-ns3", short: "HPCC", p50: 6.288, p95: 324.88, p99: 356.32, max: 390.904 },
  { label: "HPCC-ns3, R_HAI = R_AI", short: "HPCC hai40", p50: 8.384, p95: 231.608, p99: 249.424, max: 265.144 },
  { label: "ns3-rdma", short: "ns3-rdma", p50: 10.2, p95: 237.66, p99: 253.98, max: 262.14 },
];

export const kNs3Text = `ns-3 with table 14, queue p50 / p95 / p99 / longest: ${kNs3
  .map(({ label, p50, p95, p99, max }) => `${label} ${[p50, p95, p99, max].map(Math.round).join(" / ")} KB`)
  .join("; ")}.`;

export function lengthsOf({ result }: Pick<Evidence, "result">): Lengths {
  const found = result.switches[kQueue.switch]?.queues[kQueue.port]?.[kQueue.priority];
  const { p50 = 0, p95 = 0, p99 = 0, max = 0 } = found ?? {};
  return { p50: p50 / 1000, p95: p95 / 1000, p99: p99 / 1000, max: max / 1000 };
}

/** Part of the time at or below a length. */
export function distributionOf({ result, series }: Pick<Evidence, "result" | "series">): TraceValues {
  const points = queueCdf({ result, series }, `${kQueue.switch}:${kQueue.port}:${kQueue.priority}`);
  return { x: points.map(([length]) => length), y: points.map(([, part]) => part) };
}

/** % of what headers leave of the link. */
export function usedOf({ result, scenario }: Pick<Evidence, "result" | "scenario">): number | undefined {
  const limit = goodputLimit(scenario, Number(result.payload_share));
  return limit === undefined ? undefined : (100 * result.totals.goodput_bps) / limit;
}

/** Sentences that more than one experiment judges; each is one statement of the paper. */
export const QUEUE_OF_DCQCN = "For example, the 95th-percentile queue length is 76.6KB with DCQCN";
export const LONGEST_QUEUE =
  "The switch counter shows that the queue length never exceeds 100KB (translates to 20us at 40Gbps).";
export const TOTAL_THROUGHPUT = "the total throughput is always more than 39Gbps for K:1 incast, K = 1 ... 19";
