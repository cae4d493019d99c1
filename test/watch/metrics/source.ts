/** A source of metrics that does as told. */
import type { MetricsSource } from "../../../src/watch/metrics/registry.js";
import { describedAs } from "../../native/counters.js";

export const sw = { switch: "sw0", port: "a" };
export const nic = { device: "roce0" };

export interface Told {
  counters: [string, Record<string, string>, number][];
  source: MetricsSource;
}

export function source(counters: Told["counters"], overrides: Partial<MetricsSource> = {}): Told {
  const told = { counters } as Told;
  told.source = {
    counters: () => [
      {
        manifest: told.counters.map(([name, labels]) => describedAs(name, labels)),
        value: (i) => told.counters[i]?.[2] ?? 0,
      },
    ],
    switches: () => [],
    nics: () => [],
    pairCounters: () => ["tx_packets", "tx_wire_bytes"].map((name) => describedAs(name, {}, "queue_pair")),
    histograms: () => [],
    ports: () => [],
    discovery: () => [],
    workers: () => [{ name: "sw0", loopGapNs: 2_500_000 }],
    reloads: () => ({ succeeded: 0, failed: 0 }),
    ...overrides,
  };
  return told;
}

export const kSwitch = { version: "1.2.3", kind: "switch", queuePairs: 0, nodeInfiniband: false } as const;
export const kNic = { version: "1.2.3", kind: "nic", queuePairs: 0, nodeInfiniband: false } as const;
