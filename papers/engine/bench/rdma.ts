/** RDMA between soft NICs on two hosts, by this installation's `weir perf`, each end a process of its own. */

import { WeirError } from "../../../src/base/error.js";
import { THIS_COMMAND } from "../../../src/base/this_command.js";
import type { PerfTest } from "../../../src/verbs/perf/options.js";
import { type PerfRow, perfSchema } from "../../../src/verbs/perf/report.js";
import type { Host, HostPair } from "./host_pair.js";
import { parse } from "./tcp.js";

export interface PerfRun {
  test: PerfTest;
  /** Bytes of a message. */
  size: number;
  seconds: number;
  /** Messages under way; default: the test's. */
  depth?: number;
}

/** The client of a run writes its report to a file: what it says tells when it has begun. */
export function perfCommand(
  pair: HostPair,
  host: Host,
  { test, size, seconds, depth }: PerfRun,
  report?: string,
  weir: readonly string[] = THIS_COMMAND,
): string[] {
  return [
    ...weir,
    ...["perf", test, "--device", pair.interface, "--address", `${pair.nicAddress(host)}/24`],
    ...["--size", String(size), "--duration", String(seconds)],
    ...(depth === undefined ? [] : ["--tx-depth", String(depth)]),
    ...(report === undefined ? [] : ["--out_json_file", report, pair.nicAddress(host === "a" ? "b" : "a")]),
  ];
}

/** The one row of a report. @throws WeirError */
export function readPerf(text: string): PerfRow {
  const { results } = parse("weir perf", text, perfSchema);
  const [row] = results;
  if (row === undefined || results.length > 1) throw new WeirError(`weir perf: ${results.length} results, not one`);
  return row;
}
