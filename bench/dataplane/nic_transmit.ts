/**
 * What one worker sends with 1,000 queue pairs, each paced at a rate of its own, ICRC and all: the most when it is asked for more than it
 * can, and then the load that it holds, at which every queue pair has its rate from its first packet to its last.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { max, mean } from "simple-statistics";
import { kFirstQpn } from "../../src/device/behaviour.js";
import type { BenchOptions, Row } from "../row.js";
import { type Backend, kBackends, NicBed, rateErrors, rowsOf, senders } from "./nic_bed.js";
import { kCpus } from "./testbed.js";

export const name = "nic transmit";
export const title = "One NIC worker, busy, 1,000 paced queue pairs, to a counter behind a veth";

const kQueuePairs = 1000;
/** Packets/s: more than any host sends by sockets. */
const kFlood = 4_000_000;
/** bit/s, of which that is as much with packets of 1066 bytes. */
const kLink = 40e9;
/** Parts of the most that are tried until one is held. */
const kLoads = [0.95, 0.9, 0.8, 0.7, 0.6];
/** Held: no queue pair's rate is farther off, %. */
const kHeld = 0.1;
const kSettleMs = 300;
/** A busy worker has its CPU for itself. */
const kWhole = 0.97;

interface Case {
  backend: Backend | "live";
  size: number;
  /** Where the veth's other end does its work: on the sender's CPU, or on the other one as if there were a wire. */
  delivery: "here" | "elsewhere";
}

interface Measured {
  /** Packets/s that arrived. */
  rate: number;
  /** Of the queue pairs, %. */
  errors: number[];
  /** CPU that the worker had, 1 is all of it. */
  cpu: number;
}

const rowName = ({ backend, size, delivery }: Case) => `${backend}, ${size} B, delivery ${delivery}`;

export async function run(options: BenchOptions): Promise<Row[]> {
  const seconds = options.quick ? 1 : 10;
  const cases = (["here", "elsewhere"] as const).flatMap((delivery) =>
    ([...kBackends, "live"] as const).flatMap((backend) =>
      [66, 1066].map((size): Case => ({ backend, size, delivery })),
    ),
  );
  return await rowsOf(cases, rowName, options, async (one) => {
    const { rate, cpu } = await measure(one, kFlood, seconds / 4);
    let load = 0;
    let held: Measured = { rate: 0, errors: [100], cpu: 0 };
    for (const part of kLoads) {
      load = Math.round(rate * part);
      held = await measure(one, load, seconds / 8);
      // The long run has the say; a short one tells whether it is worth while.
      if (max(held.errors) < 2 * kHeld) held = await measure(one, load, seconds);
      if (max(held.errors) < kHeld) break;
    }
    const worst = max(held.errors);
    return {
      metrics: {
        most: { value: rate / 1e3, unit: "kpps", better: "more" },
        throughput: { value: (rate * one.size * 8) / 1e9, unit: "Gb/s" },
        CPU: { value: 100 * cpu, unit: "%" },
        "CPU per packet": { value: (1e9 * cpu) / rate, unit: "ns", better: "less" },
        held: { value: load / 1e3, unit: "kpps", better: "more" },
        "rate error, mean": { value: mean(held.errors), unit: "%" },
        "rate error, worst": { value: worst, unit: "%" },
      },
      ...(cpu < kWhole ? { note: "others used this CPU" } : worst >= kHeld && { note: "not held" }),
    };
  });
}

async function measure({ backend, size, delivery }: Case, offered: number, seconds: number): Promise<Measured> {
  return await NicBed.use(async (bed) => {
    const queuePairs = senders(kQueuePairs, size, offered);
    const { counter, arrivals } = await bed.record("b", { firstQpn: kFirstQpn, queuePairs: kQueuePairs, stamps: 0 });
    if (delivery === "elsewhere") await bed.deliverElsewhere();
    const sender = { node: "a", cpu: kCpus.device, backend, rate: kLink } as const;
    const nic = await bed.start({ ...sender, polling: "busy", queuePairs, dcqcn: false });
    await sleep(kSettleMs);
    const before = { ...(await counter.read()), cpu: nic.cpuSeconds() };
    await sleep(seconds * 1000);
    const after = { ...(await counter.read()), cpu: nic.cpuSeconds() };
    nic.close();
    const errors = rateErrors((await arrivals()).queuePairs, queuePairs, size);
    const took = (after.at - before.at) / 1e9;
    return { rate: (after.count - before.count) / took, errors, cpu: (after.cpu - before.cpu) / took };
  });
}
