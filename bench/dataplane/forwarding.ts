/**
 * Frames per second from one veth pair through a switch to another: Weir by backend, beside the bridge of the kernel and those switches
 * in user space that are installed.
 *
 * Every round has every device in a fresh testbed, so that what else the machine does hits all alike; figures are medians of the rounds.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { median } from "simple-statistics";
import type { BenchOptions, Metric, Row } from "../row.js";
import { CpuWatch, kDisturbed } from "./cpu.js";
import { BRIDGE, type Device, type RunningDevice, WEIR_DEVICES } from "./devices.js";
import { peerDevices } from "./peers.js";
import { type Placement, Testbed } from "./testbed.js";
import { Counter, type Source, startSending } from "./traffic.js";

export const name = "forwarding";
export const title = "Forwarding between two veth pairs, all of gen's frames as fast as they come";

export interface Case {
  size: number;
  source: Source;
  /** Where frames end: as sk_buffs, or in the driver. */
  sink: Source;
  placement: Placement;
}

/** What one run of one case has shown. */
export interface Sample {
  /** Frames/s. */
  offered: number;
  forwarded: number;
  /** Of the device's own thread, 1 is a whole CPU. */
  cpu: number | undefined;
  /** %: of a CPU, taken by what has nothing to do with this. */
  others: number;
}

const kCases: readonly Case[] = [
  ...[64, 1066, 1500].map((size): Case => ({ size, source: "xdp", sink: "xdp", placement: "split" })),
  ...[64, 1066].map((size): Case => ({ size, source: "packet", sink: "xdp", placement: "split" })),
  ...[64, 1066, 1500].map((size): Case => ({ size, source: "xdp", sink: "packet", placement: "split" })),
  ...[64, 1066, 1500].map((size): Case => ({ size, source: "packet", sink: "packet", placement: "split" })),
  { size: 64, source: "xdp", sink: "packet", placement: "one core" },
];
const kSettings: readonly Pick<Case, "placement" | "sink">[] = [
  { placement: "split", sink: "xdp" },
  { placement: "split", sink: "packet" },
  { placement: "one core", sink: "packet" },
];
/** A device whose CPU also receives does less the more it is flooded: what it is offered instead, frames/s, until none are lost. */
const kOffers = [0, 1_000_000, 850_000, 700_000, 600_000, 500_000, 400_000, 300_000, 200_000];
/** Sending starts, and the first of it is not counted. */
const kSettleMs = 200;

export async function run(options: BenchOptions): Promise<Row[]> {
  const [rounds, seconds] = options.quick ? [1, 0.5] : [3, 1];
  const peers = await peerDevices(options.peers);
  const devices = [...WEIR_DEVICES, ...peers, BRIDGE];
  const samples = new Map<string, Sample[]>();
  for (let round = 1; round <= rounds; round++) {
    for (const device of devices) {
      process.stderr.write(`  round ${round} of ${rounds}: ${device.name}\n`);
      for (const { placement, sink } of kSettings) {
        const here = kCases.filter((one) => one.placement === placement && one.sink === sink);
        const cases = here.filter((one) => options.wants(rowName(device, one)));
        if (cases.length === 0) continue;
        const measured = withDevice(device, placement, sink, async (bed, counter, running) => {
          for (const one of cases) {
            const sample = await measure(bed, counter, running, one, seconds);
            const key = rowName(device, one);
            samples.set(key, [...(samples.get(key) ?? []), sample]);
          }
        });
        await measured.catch((error: Error) => {
          if (!peers.includes(device)) throw error;
          process.stderr.write(`  left out: ${device.name}: ${error.message}\n`);
        });
      }
    }
  }
  return kCases.flatMap((one) =>
    devices.flatMap((device) => {
      const own = samples.get(rowName(device, one));
      return own === undefined ? [] : [toRow(rowName(device, one), own, samples.get(rowName(BRIDGE, one)), one)];
    }),
  );
}

function rowName(device: Device, { size, source, sink, placement }: Case): string {
  return `${device.name}, ${size} B, ${source} source, ${sink === "xdp" ? "xdp sink, " : ""}${placement}`;
}

async function withDevice(
  device: Device,
  placement: Placement,
  sink: Source,
  body: (bed: Testbed, counter: Counter, running: RunningDevice) => Promise<void>,
): Promise<void> {
  const bed = await Testbed.create();
  try {
    const running = await device.start(bed);
    try {
      // The bridge does its work where it receives: that is the device's CPU.
      if (placement === "one core" || device === BRIDGE) await bed.receiveOnDeviceCpu();
      const counter = await Counter.start(bed.sink, sink);
      try {
        await bed.waitForForwarding(counter);
        await body(bed, counter, running);
      } finally {
        await counter.close();
      }
    } finally {
      running.close();
    }
  } finally {
    bed.close();
  }
}

async function measure(
  bed: Testbed,
  counter: Counter,
  device: RunningDevice,
  { size, source, placement }: Case,
  seconds: number,
): Promise<Sample> {
  const once = (rate: number, duration: number) => measureAt(bed, counter, device, size, source, rate, duration);
  if (placement === "split") return await once(0, seconds);
  let best = { offer: 0, forwarded: 0 };
  for (const offer of kOffers) {
    const { offered, forwarded } = await once(offer, seconds / 4);
    if (forwarded > best.forwarded) best = { offer, forwarded };
    if (forwarded > 0.99 * offered) break;
  }
  return await once(best.offer, seconds);
}

export async function measureAt(
  bed: Testbed,
  counter: Counter,
  device: RunningDevice,
  size: number,
  source: Source,
  rate: number,
  seconds: number,
): Promise<Sample> {
  const { pid, result } = startSending(bed.sending(source, size, seconds + (2 * kSettleMs) / 1000, rate));
  await sleep(kSettleMs);
  const elsewhere = device.worker === undefined ? () => device.cpuSeconds() ?? 0 : undefined;
  const watch = new CpuWatch([pid, ...bed.threads], elsewhere);
  const before = { ...(await counter.read()), cpu: device.cpuSeconds() };
  await sleep(seconds * 1000);
  const after = { ...(await counter.read()), cpu: device.cpuSeconds() };
  const others = watch.others();
  const took = (after.at - before.at) / 1e9;
  const { frames, seconds: sending } = await result;
  return {
    offered: frames / sending,
    forwarded: (after.count - before.count) / took,
    others,
    cpu: before.cpu === undefined || after.cpu === undefined ? undefined : (after.cpu - before.cpu) / took,
  };
}

function toRow(name: string, samples: readonly Sample[], bridge: readonly Sample[] | undefined, { size }: Case): Row {
  const rates = samples.map(({ forwarded }) => forwarded / 1e3);
  const rate = median(rates);
  const offered = median(samples.map((sample) => sample.offered / 1e3));
  const others = median(samples.map((sample) => sample.others));
  const cpu = samples.flatMap((sample) => sample.cpu ?? []);
  const metrics: Record<string, Metric> = {
    rate: { value: rate, unit: "kpps", better: "more", min: Math.min(...rates), max: Math.max(...rates) },
    throughput: { value: (rate * size * 8) / 1e6, unit: "Gb/s" },
    offered: { value: offered, unit: "kpps" },
    ...(cpu.length > 0 && { CPU: { value: 100 * median(cpu), unit: "%" } }),
    others: { value: others, unit: "%" },
    ...(bridge !== undefined && {
      "to bridge": { value: rate / median(bridge.map(({ forwarded }) => forwarded / 1e3)), unit: "", better: "more" },
    }),
  };
  const notes = [
    rate > 0.97 * offered ? "the generator is the limit" : "the switch is the limit",
    ...(others > kDisturbed ? ["disturbed"] : []),
  ];
  return { name, metrics, note: notes.join(", ") };
}
