/** The notification point on the wire: how soon a marked packet is answered by a CNP, and how many CNPs a NIC sends. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Polling } from "../../src/native/types.js";
import type { BenchOptions, Metric, Row } from "../row.js";
import { type Backend, kBackends, kCongestionExperienced, NicBed, receivers, rowsOf, senders } from "./nic_bed.js";
import { kCpus } from "./testbed.js";
import { startCnpLatency } from "./traffic.js";

export const name = "nic cnp";
export const title =
  "From ECN to CNP: send() of a marked packet to recv() of its CNP; and CNPs of 200 flows with marks all the time";

const kSize = 66;
const kLatencyRate = 1000;
const kFlows = 200;
/** Least time between two CNPs of a flow, us on the wire: 2000 is 50 us of meant time at scale 40. 0: one for every packet. */
const kIntervals = [2000, 1000, 500, 0];
/** What the sender makes in all; three packets of each flow between two of its CNPs, at the least interval that is not 0. */
const kMarkedRate = 1_200_000;
const kSettleMs = 300;

interface LatencyCase {
  backend: Backend;
  polling: Polling;
}

interface RateCase {
  backend: Backend;
  /** us on the wire. */
  interval: number;
}

const latencyName = ({ backend, polling }: LatencyCase) => `latency: ${backend}, ${polling}`;
const rateName = ({ backend, interval }: RateCase) =>
  `${kFlows} flows: ${backend}, ${interval === 0 ? "a CNP for each packet" : `one CNP per ${interval} us`}`;

export async function run(options: BenchOptions): Promise<Row[]> {
  const seconds = options.quick ? 1 : 5;
  const latencies = kBackends.flatMap((backend) =>
    (["busy", "adaptive", "interrupt"] as const).map((polling) => ({ backend, polling })),
  );
  const rates = kBackends.flatMap((backend) => kIntervals.map((interval) => ({ backend, interval })));
  return [
    ...(await rowsOf(latencies, latencyName, options, (one) => measureLatency(one, seconds))),
    ...(await rowsOf(rates, rateName, options, (one) => measureRate(one, seconds))),
  ];
}

async function measureLatency({ backend, polling }: LatencyCase, seconds: number): Promise<Omit<Row, "name">> {
  return await NicBed.use(async (bed) => {
    await bed.start({ node: "b", cpu: kCpus.device, backend, polling, queuePairs: receivers(1, kSize) });
    const [from, to] = [bed.station("a"), bed.station("b")];
    const run = startCnpLatency(from, to, seconds, kLatencyRate, kCpus.generator);
    const { p50, p90, p99, max, lost } = await run.result;
    const us = (value: number): Metric => ({ value, unit: "us", better: "less", tolerance: 0.25 });
    return {
      metrics: {
        p50: us(p50),
        p90: { value: p90, unit: "us" },
        p99: us(p99),
        max: { value: max, unit: "us" },
        lost: { value: lost, unit: "" },
      },
    };
  });
}

async function measureRate({ backend, interval }: RateCase, seconds: number): Promise<Omit<Row, "name">> {
  return await NicBed.use(async (bed) => {
    const place = { node: "b", cpu: kCpus.device, backend, polling: "adaptive" } as const;
    const cnpInterval = interval * 1000;
    const receiver = await bed.start({ ...place, queuePairs: receivers(kFlows, kSize), cnpInterval });
    const queuePairs = senders(kFlows, kSize, kMarkedRate, { ecn: kCongestionExperienced, spread: false });
    const from = { node: "a", cpu: kCpus.generator, backend, polling: "adaptive" } as const;
    const sender = await bed.start({ ...from, queuePairs, dcqcn: false });
    await sleep(kSettleMs);
    const look = () => {
      const [arrived] = sender.counters("rp_cnp_ignored") as [number];
      const [marked] = receiver.counters("np_ecn_marked_roce_packets") as [number];
      return { at: performance.now() / 1000, arrived, marked };
    };
    const before = look();
    await sleep(seconds * 1000);
    const after = look();
    const took = after.at - before.at;
    const arrived = (after.arrived - before.arrived) / took;
    return {
      metrics: {
        "CNPs at the sender": { value: arrived / 1e3, unit: "k/s", better: "more" },
        "marked packets": { value: (after.marked - before.marked) / took / 1e3, unit: "k/s" },
        ...(interval > 0 && { "of what is due": { value: (arrived * interval) / kFlows / 1e4, unit: "%" } }),
      },
    };
  });
}
