/**
 * What routing costs: the same frames over the same kind of ports, routed and bridged in turn.
 *
 * Both switches live all the time, each between veth pairs of its own, and one of them has frames. Rates are of a second of the switch's
 * CPU, as what else the machine does would hit one more than the other; ratios are of what was measured one after the other.
 */

import { median } from "simple-statistics";
import type { BenchOptions, Metric, Row } from "../row.js";
import { type Device, type RunningDevice, WEIR_DEVICES } from "./devices.js";
import { type Case, measureAt } from "./forwarding.js";
import { Testbed } from "./testbed.js";
import { Counter } from "./traffic.js";

export const name = "routing";
export const title = "Routed beside bridged, all of gen's frames as fast as they come";

const kCases: readonly Pick<Case, "size" | "source" | "sink">[] = [
  { size: 64, source: "xdp", sink: "xdp" },
  { size: 1066, source: "xdp", sink: "xdp" },
  { size: 1066, source: "packet", sink: "packet" },
];
const kSinks = ["xdp", "packet"] as const;

export async function run(options: BenchOptions): Promise<Row[]> {
  const [rounds, seconds] = options.quick ? [3, 0.3] : [15, 0.5];
  const rows: Row[] = [];
  for (const device of WEIR_DEVICES) {
    for (const sink of kSinks) {
      const cases = kCases.filter((one) => one.sink === sink && options.wants(rowName(device, one)));
      if (cases.length === 0) continue;
      const beds = [await Bed.start(device, sink, false), await Bed.start(device, sink, true)] as const;
      try {
        for (const one of cases) {
          process.stderr.write(`  ${rowName(device, one)}\n`);
          const pairs: [bridged: number, routed: number][] = [];
          for (let round = 0; round < rounds; round++) {
            const [bridged, routed] = beds;
            // Each is first as often as second.
            const first = await (round % 2 === 0 ? bridged : routed).rate(one, seconds);
            const second = await (round % 2 === 0 ? routed : bridged).rate(one, seconds);
            pairs.push(round % 2 === 0 ? [first, second] : [second, first]);
          }
          rows.push(toRow(rowName(device, one), pairs));
        }
      } finally {
        for (const bed of beds) await bed.close();
      }
    }
  }
  return rows;
}

const rowName = (device: Device, { size, source, sink }: (typeof kCases)[number]) =>
  `${device.name}, ${size} B, ${source} source, ${sink} sink`;

/** A switch, and who sends through it and counts. */
class Bed {
  private constructor(
    private readonly bed: Testbed,
    private readonly device: RunningDevice,
    private readonly counter: Counter,
  ) {}

  static async start(device: Device, sink: Case["sink"], routes: boolean): Promise<Bed> {
    const bed = await Testbed.create();
    const opened: (() => void)[] = [() => bed.close()];
    try {
      const running = await device.start(bed, { routes });
      opened.push(() => running.close());
      const counter = await Counter.start(bed.sink, sink);
      const made = new Bed(bed, running, counter);
      opened.push(() => void counter.close());
      await bed.waitForForwarding(counter);
      return made;
    } catch (error) {
      for (const close of opened.reverse()) close();
      throw error;
    }
  }

  /** Frames in a second of the switch's CPU. */
  async rate({ size, source }: Pick<Case, "size" | "source">, seconds: number): Promise<number> {
    const { forwarded, cpu = 1 } = await measureAt(this.bed, this.counter, this.device, size, source, 0, seconds);
    return forwarded / cpu;
  }

  async close(): Promise<void> {
    await this.counter.close();
    this.device.close();
    this.bed.close();
  }
}

function toRow(name: string, pairs: readonly (readonly [bridged: number, routed: number])[]): Row {
  const spread = (values: number[]) => ({
    value: median(values),
    min: Math.min(...values),
    max: Math.max(...values),
  });
  const metrics: Record<string, Metric> = {
    bridged: { ...spread(pairs.map(([bridged]) => bridged / 1e3)), unit: "kpps" },
    routed: { ...spread(pairs.map(([, routed]) => routed / 1e3)), unit: "kpps" },
    "routed to bridged": { ...spread(pairs.map(([bridged, routed]) => routed / bridged)), unit: "", better: "more" },
  };
  return { name, metrics };
}
