/**
 * What one worker sends with 1,000 queue pairs, each paced at a rate of its own, ICRC and all: as many packets as it can, and
 * whether each queue pair gets its rate, from its first packet to its last, at a load that is to be held.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { max, mean } from "simple-statistics";
import { kFirstQpn } from "../../src/native/behaviour.js";
import type { BenchOptions, Metric, Row } from "../row.js";
import { type Backend, kBackends, NicBed, senders, wireBits } from "./nic_bed.js";
import { kCpus } from "./testbed.js";
import { Counter, readArrivals } from "./traffic.js";

export const name = "nic transmit";
export const title = "One NIC worker, 1,000 paced queue pairs, to a counter behind a veth";

const kQueuePairs = 1000;
/** More than any host sends by sockets. */
const kFlood = 4_000_000;
/** Packets/s that are to be held, by size of the frame. */
const kHeld = new Map([
  [66, 1_200_000],
  [1066, 900_000],
]);
const kSettleMs = 300;

interface Case {
  backend: Backend;
  size: number;
  /** Packets/s of all. */
  offered: number;
  /** Where the veth's other end does its work: on the sender's CPU, or on the other one as if there were a wire. */
  delivery: "here" | "elsewhere";
}

const rowName = ({ backend, size, offered, delivery }: Case) =>
  `${backend}, ${size} B, delivery ${delivery}, ${offered === kFlood ? "flood" : `${offered / 1e6} Mpps`}`;

export async function run(options: BenchOptions): Promise<Row[]> {
  const seconds = options.quick ? 1 : 10;
  const cases = (["here", "elsewhere"] as const).flatMap((delivery) =>
    kBackends.flatMap((backend) =>
      [...kHeld].flatMap(([size, held]) =>
        [kFlood, held].map((offered): Case => ({ backend, size, offered, delivery })),
      ),
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
  const { backend, size, offered, delivery } = one;
  const directory = mkdtempSync(join(tmpdir(), "weir-bench-"));
  const bed = await NicBed.create();
  try {
    const file = join(directory, "arrivals");
    const recorded = { firstQpn: kFirstQpn, queuePairs: kQueuePairs, stamps: 0 };
    const queuePairs = senders(kQueuePairs, size, offered);
    const counter = await Counter.record(bed.station("b"), file, recorded);
    const nic = await bed.start({ node: "a", cpu: kCpus.device, backend, polling: "busy", queuePairs, dcqcn: false });
    try {
      if (delivery === "elsewhere") await bed.deliverElsewhere();
      await sleep(kSettleMs);
      const before = await counter.read();
      await sleep(seconds * 1000);
      const after = await counter.read();
      const [unsent] = nic.counters("tx_no_descriptor") as [number];
      nic.close();
      await counter.close();
      const rate = ((after.count - before.count) * 1e9) / (after.at - before.at);
      const metrics: Record<string, Metric> = {
        rate: { value: rate / 1e3, unit: "kpps", better: "more" },
        throughput: { value: (rate * size * 8) / 1e9, unit: "Gb/s" },
        "per packet": { value: 1e9 / rate, unit: "ns" },
      };
      if (offered === kFlood) return { name: rowName(one), metrics };
      const errors = readArrivals(file, recorded).queuePairs.map(({ first, last, packets }, i) => {
        const got = ((packets - 1) * wireBits(size) * 1e9) / (last - first);
        return Math.abs(100 * (got / (queuePairs[i]?.rate_cap ?? 0) - 1));
      });
      metrics["rate error, mean"] = { value: mean(errors), unit: "%" };
      metrics["rate error, worst"] = { value: max(errors), unit: "%", better: "less", tolerance: 1 };
      return { name: rowName(one), metrics, ...(unsent > 0 && { note: "the host did not take all" }) };
    } finally {
      nic.close();
      await counter.close();
    }
  } finally {
    bed.close();
    rmSync(directory, { recursive: true });
  }
}
