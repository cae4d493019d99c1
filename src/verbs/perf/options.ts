/** Options of a test, in the terms of perftest. */

export const kPerfTests = ["write-bw", "read-bw", "send-bw", "write-lat", "send-lat"] as const;
export type PerfTest = (typeof kPerfTests)[number];

export interface PerfOptions {
  test: PerfTest;
  /** Port in TCP's number space; the RDMA CM service ID is made of it. */
  port: number;
  /** Lengths of messages, bytes; one run comes after the other. */
  sizes: readonly number[];
  /** Messages of each queue pair; not with `seconds`. */
  iterations: number;
  /** Time to run instead, s; the first and last quarter do not count. */
  seconds?: number;
  qps: number;
  /** Messages of a queue pair that are under way at most. */
  depth: number;
  /** True if both ends send; bandwidth only. */
  bidirectional: boolean;
  /** Path MTU to ask for, bytes. */
  mtu?: number;
  /** Rate of all queue pairs together, bit/s of payload. */
  rate?: number;
  /** True if rates are told in Gb/s, not in MiB/s. */
  gbits: boolean;
  /** True if it is told, too, how busy the host's CPUs were. */
  cpuUtil: boolean;
}

export const kDefaultPort = 18515;
/** Sizes of `-a`: 2 B to 8 MiB. */
export const kAllSizes: readonly number[] = Array.from({ length: 23 }, (_, i) => 2 ** (i + 1));

export function isLatency(test: PerfTest): boolean {
  return test.endsWith("-lat");
}

/** Tells whether both ends move data by SEND, for which the receiver works too. */
export function isSend(test: PerfTest): boolean {
  return test.startsWith("send-");
}

/** perftest's defaults for a test. */
export function defaultsOf(test: PerfTest): { size: number; iterations: number; depth: number } {
  if (isLatency(test)) return { size: 2, iterations: 1000, depth: 1 };
  return { size: 65536, iterations: test === "write-bw" ? 5000 : 1000, depth: 128 };
}
