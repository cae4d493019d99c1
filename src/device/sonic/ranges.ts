/**
 * Ranges of the numbers in a config_db, as SONiC's YANG models have them (sonic-buildimage, src/sonic-yang-models); each names its module.
 * Where a switch of Weir has less (queues 0 to 7, say), the place of use notes that: the number is not wrong.
 */

/** Largest uint64. Beyond 2^53 a number loses its last digits, which no size or rate needs. */
const kMost = 2 ** 64;

type Range = readonly [least: number, most: number];

export const kRanges = {
  /** sonic-types: tc_type. */
  trafficClass: [0, 15],
  /** sonic-dscp-tc-map. */
  dscp: [0, 63],
  /** sonic-dot1p-tc-map. */
  dot1p: [0, 7],
  /** sonic-tc-queue-map: qindex, `[0-9]?`. */
  queueOfClass: [0, 9],
  /** sonic-tc-priority-group-map: pg; sonic-buffer-pg: pg_num. */
  priorityGroup: [0, 7],
  /** sonic-pfc-priority-queue-map, pfc_priority and qindex; sonic-port-qos-map, pfc_enable and pfcwd_sw_enable. */
  pfcPriority: [0, 7],
  /** sonic-buffer-queue: qindex. sonic-queue takes any text. */
  queue: [0, 15],
  /** sonic-wred-profile: thresholds; sonic-buffer-profile and sonic-buffer-pool: sizes. Bytes. */
  bytes: [0, kMost],
  /** sonic-wred-profile: drop probabilities. */
  percent: [0, 100],
  /** sonic-scheduler: weight. */
  weight: [1, 100],
  /** sonic-scheduler: pir. Bytes or packets each second. */
  peak: [0, kMost],
  /** sonic-pfcwd. ms. */
  detection: [100, 5000],
  restoration: [100, 60_000],
  /** sonic-buffer-profile: dynamic_th; sonic-default-lossless-buffer-parameter: default_dynamic_th. log2. */
  dynamicThreshold: [-8, 7],
  /** sonic-port: speed, Mb/s. */
  speed: [1, 1_600_000],
  /** sonic-port: mtu. */
  mtu: [68, 9216],
} as const satisfies Record<string, Range>;
