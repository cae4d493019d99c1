/**
 * TCP of ordinary sockets from one host to another through a switch, with the offloads that veth has by default, beside the bridge.
 *
 * iperf3, one stream. Nothing is pinned: sender, receiver and switch share the CPUs as the kernel likes. CPU is what all of the machine
 * was busy, so anything else that runs is in it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { median } from "simple-statistics";
import { busySeconds } from "../../papers/engine/bench/cpu.js";
import { runTool, ToolError } from "../../src/host/tools.js";
import type { BenchOptions, Row } from "../row.js";
import { BRIDGE, type RunningDevice, WEIR_DEVICES } from "./devices.js";
import { Testbed } from "./testbed.js";
import type { Station } from "./traffic.js";

export const name = "tcp";
export const title = "TCP through the switch, default offloads, one stream";

interface Sample {
  /** 0: nothing arrived in time. */
  gbps: number;
  /** CPU seconds per second. */
  busy: number;
  retransmits: number;
}

/** Of timeout(1). */
const kTimedOut = 124;
const kAddresses = { gen: "10.0.0.1", sink: "10.0.0.2" };

export async function run(options: BenchOptions): Promise<Row[]> {
  if (!(await hasIperf())) {
    process.stderr.write("  left out: iperf3 not found (apt install iperf3)\n");
    return [];
  }
  const [rounds, seconds] = options.quick ? [1, 2] : [3, 4];
  const devices = [...WEIR_DEVICES, BRIDGE].filter(({ name }) => name === BRIDGE.name || options.wants(name));
  const samples = new Map<string, Sample[]>(devices.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const device of devices) {
      process.stderr.write(`  round ${round} of ${rounds}: ${device.name}\n`);
      const bed = await Testbed.create();
      let running: RunningDevice | undefined;
      try {
        await configure(bed, "gen", "sink");
        await configure(bed, "sink", "gen");
        running = await device.start(bed, { cpu: -1 });
        samples.get(device.name)?.push(await transfer(bed, seconds));
      } finally {
        running?.close();
        bed.close();
      }
    }
  }
  const middle = (device: string, value: (sample: Sample) => number) => median((samples.get(device) ?? []).map(value));
  const bridge = middle(BRIDGE.name, ({ gbps }) => gbps);
  return devices.map(({ name }) => {
    const rates = (samples.get(name) ?? []).map(({ gbps }) => gbps);
    const rate = median(rates);
    return {
      name,
      metrics: {
        goodput: { value: rate, unit: "Gb/s", better: "more", min: Math.min(...rates), max: Math.max(...rates) },
        "to bridge": { value: rate / bridge, unit: "", better: "more" },
        "CPU per Gb/s": { value: middle(name, ({ busy, gbps }) => (100 * busy) / gbps), unit: "%" },
        retransmits: { value: middle(name, ({ retransmits }) => retransmits), unit: "" },
      },
      ...(rates.includes(0) && { note: "FAILS: nothing arrived" }),
    };
  });
}

async function configure(bed: Testbed, host: "gen" | "sink", peer: "gen" | "sink"): Promise<void> {
  const station: Station = bed[host];
  const lines = [
    `link set dev ${station.interface} arp on\n`,
    `address add ${kAddresses[host]}/24 dev ${station.interface}\n`,
    `neighbour replace ${kAddresses[peer]} lladdr ${bed[peer].mac} dev ${station.interface} nud permanent\n`,
  ];
  await bed.network.namespace(host).run("ip", ["-batch", "-"], lines.join(""));
}

/** The server ends with its one client. */
async function transfer(bed: Testbed, seconds: number): Promise<Sample> {
  const server = bed.network
    .namespace("sink")
    .run("timeout", [String(seconds + 6), "iperf3", "--server", "--one-off", "--bind", kAddresses.sink]);
  server.catch(() => {}); // the client says what is wrong
  const before = busySeconds();
  const start = performance.now();
  const stdout = await connectTo(bed, seconds);
  if (stdout === undefined) return { gbps: 0, busy: 0, retransmits: 0 };
  const busy = (busySeconds() - before) / ((performance.now() - start) / 1000);
  await server.catch(() => {});
  const { end } = JSON.parse(stdout) as {
    end: { sum_sent: { retransmits: number }; sum_received: { bits_per_second: number } };
  };
  return { gbps: end.sum_received.bits_per_second / 1e9, busy, retransmits: end.sum_sent.retransmits };
}

/** iperf3's report, or undefined if it took too long. The server may need a moment to listen. */
async function connectTo(bed: Testbed, seconds: number): Promise<string | undefined> {
  const client = ["iperf3", "--client", kAddresses.sink, "--time", String(seconds), "--json"];
  for (let attempt = 0; ; attempt++) {
    try {
      const { stdout } = await bed.network.namespace("gen").run("timeout", [String(seconds + 4), ...client]);
      return stdout;
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
      if (error.status === kTimedOut) return undefined;
      if (attempt === 5) throw error;
      await sleep(200);
    }
  }
}

async function hasIperf(): Promise<boolean> {
  return await runTool("iperf3", ["--version"]).then(
    () => true,
    () => false,
  );
}
