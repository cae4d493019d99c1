/**
 * How exactly packets leave: the gaps of a paced queue pair, by the kernel's clock at the other end of a veth, beside those of its rate;
 * alone on its NIC, and as one of a thousand of the same packets in all.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { max, quantileSorted } from "simple-statistics";
import { kFirstQpn } from "../../src/device/behaviour.js";
import type { Polling } from "../../src/native/types.js";
import type { BenchOptions, Row } from "../row.js";
import { type Backend, kBackends, NicBed, rateErrors, rowsOf, senders } from "./nic_bed.js";
import { kCpus } from "./testbed.js";
import type { Arrivals } from "./traffic.js";

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
  return await rowsOf(cases, rowName, options, (one) => measure(one, seconds));
}

async function measure(one: Case, seconds: number): Promise<Omit<Row, "name">> {
  return await NicBed.use(async (bed) => {
    const stamps = one.queuePairs === 1 ? kRate * seconds : 0;
    const queuePairs = senders(one.queuePairs, kSize, kRate, { spread: one.queuePairs > 1 });
    const record = await bed.record("b", { firstQpn: kFirstQpn, queuePairs: one.queuePairs, stamps });
    const nic = await bed.start({ ...one, node: "a", cpu: kCpus.device, queuePairs, dcqcn: false });
    const before = { at: performance.now(), cpu: nic.cpuSeconds() };
    await sleep(kSettleMs + seconds * 1000);
    const cpu = (1000 * (nic.cpuSeconds() - before.cpu)) / (performance.now() - before.at);
    nic.close();
    const arrivals = await record.arrivals();
    const errors = rateErrors(arrivals.queuePairs, queuePairs, kSize);
    return {
      metrics: {
        ...(stamps > 0 && gapMetrics(arrivals)),
        "rate error, worst": { value: max(errors), unit: "%", better: "less", tolerance: 1 },
        CPU: { value: 100 * cpu, unit: "%" },
      },
    };
  });
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
