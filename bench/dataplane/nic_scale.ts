/** What more queue pairs cost a NIC that sends the same number of packets: from 100 to 100,000 of them, each paced. */
import { setTimeout as sleep } from "node:timers/promises";
import { median } from "simple-statistics";
import type { BenchOptions, Row } from "../row.js";
import { NicBed, senders } from "./nic_bed.js";
import { kCpus } from "./testbed.js";

export const name = "nic scale";
export const title = "CPU of one NIC worker for 300,000 paced packets of 66 B per second in all, AF_XDP, interrupt";

const kSize = 66;
const kRate = 300_000;
const kCounts = [100, 1000, 10_000, 100_000];
/** Every queue pair has sent. */
const kSettleMs = 1000;

/** Of one run. */
interface Sample {
  /** Packets/s. */
  rate: number;
  /** CPU time per packet, ns: the kernel's part is in it. */
  cost: number;
}

const rowName = (count: number) => `${count} queue pairs`;

export async function run(options: BenchOptions): Promise<Row[]> {
  const [rounds, seconds] = options.quick ? [1, 1] : [3, 3];
  const counts = kCounts.filter((count) => options.wants(rowName(count)));
  const samples = new Map<number, Sample[]>();
  for (let round = 1; round <= rounds; round++) {
    for (const count of counts) {
      process.stderr.write(`  round ${round} of ${rounds}: ${rowName(count)}\n`);
      samples.set(count, [...(samples.get(count) ?? []), await measure(count, seconds)]);
    }
  }
  const cost = (count: number) => (samples.get(count) ?? []).map((sample) => sample.cost);
  return counts.map((count) => {
    const base = counts.includes(100) ? median(cost(100)) : undefined;
    return {
      name: rowName(count),
      metrics: {
        rate: { value: median((samples.get(count) ?? []).map(({ rate }) => rate)) / 1e3, unit: "kpps" },
        "CPU per packet": {
          value: median(cost(count)),
          unit: "ns",
          better: "less",
          min: Math.min(...cost(count)),
          max: Math.max(...cost(count)),
        },
        ...(base !== undefined && { "to 100": { value: median(cost(count)) / base, unit: "", better: "less" } }),
      },
    };
  });
}

async function measure(count: number, seconds: number): Promise<Sample> {
  return await NicBed.use(async (bed) => {
    const counter = await bed.count("b");
    const queuePairs = senders(count, kSize, kRate);
    const options = { cpu: kCpus.device, backend: "af_xdp", polling: "interrupt" } as const;
    const nic = await bed.start({ ...options, node: "a", queuePairs, dcqcn: false });
    await sleep(kSettleMs);
    const before = { ...(await counter.read()), cpu: nic.cpuSeconds() };
    await sleep(seconds * 1000);
    const after = { ...(await counter.read()), cpu: nic.cpuSeconds() };
    const packets = after.count - before.count;
    return { rate: (packets * 1e9) / (after.at - before.at), cost: ((after.cpu - before.cpu) * 1e9) / packets };
  });
}
