/**
 * How exactly packets leave: the gaps of a paced queue pair, by the kernel's clock at the other end of a veth, beside those of its rate;
 * alone on its NIC, and as one of a thousand of the same packets in all.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { max, quantileSorted } from "simple-statistics";
import { kFirstQpn } from "../../src/native/behaviour.js";
import type { Polling } from "../../src/native/types.js";
import type { BenchOptions, Row } from "../row.js";
import { type Backend, kBackends, NicBed, rateErrors, senders } from "./nic_bed.js";
import { kCpus } from "./testbed.js";
import { type Arrivals, Counter, readArrivals } from "./traffic.js";

export const name = "nic pacing";
export const title = "Paced packets of 66 B, 100,000 per second in all, on an otherwise idle core";

const kSize = 66;
const kRate = 100_000;
const kSettleMs = 300;
/** At the start, of each row's packets. */
const kSettlePackets = (kRate * kSettleMs) / 1000;

interface Case {
  backend: Backend;
  polling: Polling;
  queuePairs: number;
}

const rowName = ({ backend, polling, queuePairs }: Case) =>
  `${backend}, ${polling}, ${queuePairs} queue pair${queuePairs === 1 ? "" : "s"}`;

export async function run(options: BenchOptions): Promise<Row[]> {
  const seconds = options.quick ? 1 : 10;
  const cases = kBackends.flatMap((backend) =>
    (["busy", "adaptive"] as const).flatMap((polling) =>
      [1, 1000].map((queuePairs): Case => ({ backend, polling, queuePairs })),
    ),
  );
  const rows: Row[] = [];
  for (const one of cases.filter((each) => options.wants(rowName(each)))) {
    process.stderr.write(`  ${rowName(one)}\n`);
    rows.push(await measure(one, seconds));
  }
  return rows;
}

async function measure(one: Case, seconds: number): Promise<Row> {
  const directory = mkdtempSync(join(tmpdir(), "weir-bench-"));
  const bed = await NicBed.create();
  try {
    const file = join(directory, "arrivals");
    const stamps = one.queuePairs === 1 ? kRate * seconds : 0;
    const recorded = { firstQpn: kFirstQpn, queuePairs: one.queuePairs, stamps };
    const queuePairs = senders(one.queuePairs, kSize, kRate, { spread: one.queuePairs > 1 });
    const counter = await Counter.record(bed.station("b"), file, recorded);
    const nic = await bed.start({ ...one, node: "a", cpu: kCpus.device, queuePairs, dcqcn: false });
    try {
      const before = { at: performance.now(), cpu: nic.cpuSeconds() };
      await sleep(kSettleMs + seconds * 1000);
      const cpu = (1000 * (nic.cpuSeconds() - before.cpu)) / (performance.now() - before.at);
      nic.close();
      await counter.close();
      const arrivals = readArrivals(file, recorded);
      const errors = rateErrors(arrivals.queuePairs, queuePairs, kSize);
      return {
        name: rowName(one),
        metrics: {
          ...(stamps > 0 && gapMetrics(arrivals)),
          "rate error, worst": { value: max(errors), unit: "%", better: "less", tolerance: 1 },
          CPU: { value: 100 * cpu, unit: "%" },
        },
      };
    } finally {
      nic.close();
      await counter.close();
    }
  } finally {
    bed.close();
    rmSync(directory, { recursive: true });
  }
}

/** Of one queue pair. */
function gapMetrics({ stamps }: Arrivals): Row["metrics"] {
  const gap = 1e9 / kRate;
  const counted = stamps.subarray(kSettlePackets);
  const errors = counted.subarray(1).map((at, i) => Math.abs(at - (counted[i] as number) - gap) / 1000);
  errors.sort();
  const at = (quantile: number) => quantileSorted(errors as unknown as number[], quantile);
  return {
    "gap error, p50": { value: at(0.5), unit: "us", better: "less", tolerance: 0.5 },
    "gap error, p99": { value: at(0.99), unit: "us", better: "less", tolerance: 0.5 },
    "gap error, p99.9": { value: at(0.999), unit: "us" },
    "gap error, max": { value: at(1), unit: "us" },
  };
}
