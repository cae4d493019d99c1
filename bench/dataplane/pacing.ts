/**
 * A thousand queue pairs on one NIC, each with a rate of its own: does each get it?
 *
 *   sudo npx tsx bench/dataplane/pacing.ts [queue pairs, 1000] [seconds, 4]
 *
 * Host `a` sends to host `b` through one switch on veth pairs, in real time (scale 1), with congestion control off. The
 * rates are spread evenly over 0.5 to 1.5 Mb/s, counted as a link counts: frame, FCS, preamble and gap. All numbers come from
 * the capture at `b`, whose stamps are the kernel's. They tell when the worker handed a frame to the kernel, which is up to a
 * turn of its poll loop after the frame was due: so the spread of gaps has that host noise in it, and the lateness against
 * the exact schedule of each queue pair is printed next to it.
 *
 * Needs root (or the capabilities that `weir lab run` needs), about 130 MB of temporary space for each second, and an
 * otherwise idle machine. Exit status 1 if the rate of any queue pair in any whole second is off by more than 1% and by
 * more than one packet, 3 if this host lost packets.
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { quantileSorted } from "simple-statistics";
import { parseScenario } from "../../src/config/scenario.js";
import { runLab } from "../../src/lab/run.js";
import { kEthernetOverhead } from "../../src/wire/frame_size.js";

const kFirstQpn = 0x11;
/** Where the base transport header is in a frame: Ethernet 14, IPv4 20, UDP 8. */
const kBth = 42;
/** Left out at the start. */
const kSettle = 0.5;

const count = Number(process.argv[2] ?? 1000);
const seconds = Number(process.argv[3] ?? 4);
const rates = Array.from({ length: count }, (_, i) => 500_000 + Math.round((1e6 * i) / count));

const { scenario } = parseScenario({
  name: "pacing",
  scale: 1,
  duration: `${seconds + kSettle + 0.1}s`,
  topology: {
    link: { rate: "10Gbps", delay: "1us" },
    hosts: ["a", "b"],
    switches: ["sw"],
    links: ["a -- sw", "b -- sw"],
  },
  congestion: { algorithm: "none" },
  traffic: rates.map((rate) => ({ from: "a", to: "b", rate })),
  probes: { interval: "100ms" },
});

const directory = mkdtempSync(join(tmpdir(), "weir-pacing-"));
try {
  const { result } = await runLab(scenario, {
    signal: new AbortController().signal,
    capture: [{ target: "b--sw", file: "b.pcap" }],
    captureDir: directory,
  });
  const { fidelity, frames } = result as typeof result & { frames: { sent: number; missing: number } };
  const { loop_gap_us: gap } = fidelity;
  console.log(
    `${count} queue pairs, ${(rates.reduce((sum, rate) => sum + rate, 0) / 1e6).toFixed(0)} Mb/s in all, ${seconds} s`,
  );
  console.log(
    `frames: ${frames.sent} sent, ${frames.missing} missing, ${Number(fidelity.capture_dropped)} not captured`,
  );
  console.log(
    `poll loop: gaps p50 ${gap.p50.toFixed(0)} us, p99 ${gap.p99.toFixed(0)} us, max ${gap.max.toFixed(0)} us`,
  );
  if (!fidelity.valid) console.log(`the host did not keep up: ${fidelity.reasons.join("; ")}`);
  if (frames.missing === 0 && fidelity.capture_dropped === 0) {
    process.exitCode = report(readArrivals(join(directory, "b.pcap"))) ? 0 : 1;
  } else {
    console.log("no judgement: packets were lost by this host, or are not in the capture");
    process.exitCode = 3;
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}

interface Arrivals {
  /** By queue pair: kernel stamps, s since the first of all. */
  times: number[][];
  /** What one packet takes on the link, bits. */
  bits: number;
}

/** Reads a nanosecond pcap of data packets, none of which may be missing. */
function readArrivals(file: string): Arrivals {
  const times: number[][] = Array.from({ length: count }, () => []);
  const descriptor = openSync(file, "r");
  const chunk = Buffer.alloc(16 << 20);
  let filled = 0;
  let at = 24;
  let origin: bigint | undefined;
  let bits = 0;
  for (;;) {
    const got = readSync(descriptor, chunk, filled, chunk.length - filled, null);
    filled += got;
    while (at + 16 <= filled && at + 16 + chunk.readUInt32LE(at + 8) <= filled) {
      const stamp = BigInt(chunk.readUInt32LE(at)) * 1_000_000_000n + BigInt(chunk.readUInt32LE(at + 4));
      const length = chunk.readUInt32LE(at + 8);
      origin ??= stamp;
      const list = times[chunk.readUIntBE(at + 16 + kBth + 5, 3) - kFirstQpn];
      if (list === undefined || chunk.readUIntBE(at + 16 + kBth + 9, 3) !== list.length)
        throw new Error("a packet is missing");
      // The first packet of a message is longer by its RETH; messages of 4 MB have one in 3,907.
      if (list.length > 0) bits = (length + kEthernetOverhead) * 8;
      list.push(Number(stamp - origin) / 1e9);
      at += 16 + length;
    }
    if (got === 0) break;
    chunk.copyWithin(0, at, filled);
    filled -= at;
    at = 0;
  }
  closeSync(descriptor);
  return { times, bits };
}

/** Prints the figures; true if every rate holds. */
function report({ times, bits }: Arrivals): boolean {
  let wrong = 0;
  const worst = { percent: 0, packets: 0 };
  const relativeGaps: number[] = [];
  const lateness: number[] = [];
  times.forEach((list, i) => {
    const rate = rates[i] as number;
    for (let second = 0; second < seconds; second++) {
      const expected = rate / bits;
      const packets = passed(list, kSettle + second + 1) - passed(list, kSettle + second);
      const off = Math.abs(packets - expected);
      worst.percent = Math.max(worst.percent, (100 * off) / expected);
      worst.packets = Math.max(worst.packets, off);
      if (off > Math.max(1, 0.01 * expected)) wrong++;
    }
    const inside = list.filter((time) => time >= kSettle && time < kSettle + seconds);
    const gap = bits / rate;
    for (let k = 1; k < inside.length; k++)
      relativeGaps.push(((inside[k] as number) - (inside[k - 1] as number)) / gap);
    // The schedule is the earliest line of this slope that no packet is ahead of.
    const offsets = inside.map((time, k) => time - k * gap);
    const earliest = offsets.reduce((low, x) => Math.min(low, x), Number.POSITIVE_INFINITY);
    for (const offset of offsets) lateness.push((offset - earliest) * 1e6);
  });
  relativeGaps.sort((a, b) => a - b);
  lateness.sort((a, b) => a - b);
  const at = (sorted: number[], p: number, digits: number) => quantileSorted(sorted, p).toFixed(digits);
  const mean = relativeGaps.reduce((sum, x) => sum + x, 0) / relativeGaps.length;
  console.log(
    `rate in each second: worst off by ${worst.percent.toFixed(3)}%, or ${worst.packets.toFixed(3)} packets; ${wrong} too far`,
  );
  console.log(
    `gap / expected: mean ${mean.toFixed(6)}, p1 ${at(relativeGaps, 0.01, 4)}, p50 ${at(relativeGaps, 0.5, 4)}, p99 ${at(relativeGaps, 0.99, 4)}`,
  );
  console.log(
    `host noise: packets later than their schedule by p50 ${at(lateness, 0.5, 0)} us, p99 ${at(lateness, 0.99, 0)} us, max ${at(lateness, 1, 0)} us` +
      ` (gaps are ${((bits / 1.5e6) * 1e3).toFixed(1)} to ${((bits / 0.5e6) * 1e3).toFixed(1)} ms)`,
  );
  return wrong === 0;
}

/** Packets up to a time, as a fraction between two of them. */
function passed(list: readonly number[], time: number): number {
  let low = 0;
  let high = list.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((list[middle] as number) < time) low = middle + 1;
    else high = middle;
  }
  const [before, after] = [list[low - 1], list[low]];
  if (before === undefined || after === undefined) throw new Error("the capture does not cover the whole time");
  return low - 1 + (time - before) / (after - before);
}
