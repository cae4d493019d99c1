/**
 * How long a frame takes from one host's send() to the other's recv(), at 1,000 frames/s: one veth hop without a device, the bridge,
 * Weir by backend and by how it waits; and what an idle switch costs.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { BenchOptions, Metric, Row } from "../row.js";
import { CpuWatch, kDisturbed } from "./cpu.js";
import { BRIDGE, type RunningDevice, WAITING_DEVICES, WEIR_DEVICES } from "./devices.js";
import { kCpus, Testbed } from "./testbed.js";
import { startLatency } from "./traffic.js";

export const name = "latency";
export const title = "One-way latency of 64 B at 1,000 frames/s";

const kRate = 1000;
const kHop = "no device, one hop";
/** A latency is some microseconds of a machine that does other things too. */
const kTolerance = 0.25;

export async function run(options: BenchOptions): Promise<Row[]> {
  const seconds = options.quick ? 1 : 5;
  const devices = [undefined, BRIDGE, ...WEIR_DEVICES, ...WAITING_DEVICES];
  const rows: Row[] = [];
  for (const device of devices) {
    const name = device?.name ?? kHop;
    if (!options.wants(name)) continue;
    process.stderr.write(`  ${name}\n`);
    const bed = await Testbed.create();
    let running: RunningDevice | undefined;
    try {
      running = await device?.start(bed);
      await bed.announceSink();
      const dut = { namespace: bed.network.namespace("dut").path, interface: "gen", mac: bed.sink.mac };
      const to = device === undefined ? dut : bed.sink;
      const { pid, result } = startLatency(bed.gen, to, seconds, kRate, kCpus.generator);
      await sleep(100);
      const watch = new CpuWatch([pid]);
      await sleep(seconds * 900);
      const others = watch.others();
      const measured = await result;
      const us = (value: number): Metric => ({ value, unit: "us", better: "less", tolerance: kTolerance });
      const idle = running?.cpuSeconds() === undefined ? undefined : await idleShare(running, seconds);
      rows.push({
        name,
        metrics: {
          p50: us(measured.p50),
          p90: { value: measured.p90, unit: "us" },
          p99: us(measured.p99),
          "p99.9": { value: measured.p999, unit: "us" },
          max: { value: measured.max, unit: "us" },
          sent: { value: measured.sent, unit: "" },
          lost: { value: measured.lost, unit: "" },
          others: { value: others, unit: "%" },
          ...(idle !== undefined && { "CPU when idle": { value: 100 * idle, unit: "%" } }),
        },
        // Without a thread of its own, all happens on the CPU of the stop watch.
        ...(others > kDisturbed && idle !== undefined && { note: "disturbed" }),
      });
    } finally {
      running?.close();
      bed.close();
    }
  }
  return rows;
}

/** Of a CPU, while nothing happens. */
async function idleShare(device: RunningDevice, seconds: number): Promise<number> {
  await sleep(200);
  const [before, start] = [device.cpuSeconds() ?? 0, performance.now()];
  await sleep(seconds * 1000);
  return ((device.cpuSeconds() ?? 0) - before) / ((performance.now() - start) / 1000);
}
