/**
 * What a NIC receives, ICRC checked, PSN followed: data of 1,000 queue pairs from another NIC that sends as many as it can; without
 * marks, and with every packet marked, so that each flow has a CNP every 50 us or as often as it has packets.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { kEct0 } from "../../src/device/behaviour.js";
import type { BenchOptions, Row } from "../row.js";
import { type Backend, kBackends, kCongestionExperienced, NicBed, receivers, rowsOf, senders } from "./nic_bed.js";
import { kCpus } from "./testbed.js";

export const name = "nic receive";
export const title = "One NIC worker that receives what another sends, 1,000 queue pairs, interrupt";

const kQueuePairs = 1000;
const kFlood = 4_000_000;
const kSettleMs = 300;

interface Case {
  backend: Backend;
  size: number;
  marked: boolean;
}

const rowName = ({ backend, size, marked }: Case) => `${backend}, ${size} B, ${marked ? "all marked" : "not marked"}`;

export async function run(options: BenchOptions): Promise<Row[]> {
  const seconds = options.quick ? 1 : 5;
  const cases = kBackends.flatMap((backend) =>
    [66, 1066].flatMap((size) => [false, true].map((marked): Case => ({ backend, size, marked }))),
  );
  return await rowsOf(cases, rowName, options, (one) => measure(one, seconds));
}

async function measure({ size, backend, marked }: Case, seconds: number): Promise<Omit<Row, "name">> {
  return await NicBed.use(async (bed) => {
    const ecn = marked ? kCongestionExperienced : kEct0;
    const to = { node: "b", cpu: kCpus.device, backend, polling: "interrupt" } as const;
    const receiver = await bed.start({ ...to, queuePairs: receivers(kQueuePairs, size) });
    const queuePairs = senders(kQueuePairs, size, kFlood, { ecn });
    const from = { node: "a", cpu: kCpus.generator, backend: "af_xdp", polling: "busy" } as const;
    await bed.start({ ...from, queuePairs, dcqcn: false });
    await sleep(kSettleMs);
    const look = () => {
      const [received, cnps, wrong, lost] = receiver.counters(
        "rx_packets",
        "np_cnp_sent",
        "rx_icrc_encapsulated",
        "host_rx_overrun",
      ) as [number, number, number, number];
      return { at: performance.now() / 1000, cpu: receiver.cpuSeconds(), received, cnps, wrong, lost };
    };
    const before = look();
    await sleep(seconds * 1000);
    const after = look();
    const took = after.at - before.at;
    const received = after.received - before.received;
    return {
      metrics: {
        rate: { value: received / took / 1e3, unit: "kpps", better: "more" },
        CNPs: { value: (after.cnps - before.cnps) / took / 1e3, unit: "k/s" },
        CPU: { value: (100 * (after.cpu - before.cpu)) / took, unit: "%" },
        "CPU per packet": { value: ((after.cpu - before.cpu) * 1e9) / received, unit: "ns", better: "less" },
        "lost by the host": { value: (100 * (after.lost - before.lost)) / received, unit: "%" },
        "wrong ICRC": { value: after.wrong - before.wrong, unit: "" },
      },
    };
  });
}
