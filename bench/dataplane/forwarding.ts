/**
 * Frames per second through the soft switch, next to a plain Linux bridge between the same hosts.
 *
 *   sudo npx tsx bench/dataplane/forwarding.ts [rounds, 3]
 *
 * Host `a` sends to host `b` as fast as its software NIC can (frames of 1082 bytes, 10 Gb/s links in real time), over two veth
 * pairs. Between them is the soft switch with shared buffer, marking and PFC on, or a bridge of the kernel that only forwards.
 * Both run in turns, so that what else the machine does hits both alike; each line is one second after half a second of
 * settling. Both NICs share one CPU; the soft switch has the last one for itself, and so has the bridge, by packet steering.
 *
 * The rate is what arrives at `b`: the slowest of sender, switch and receiver. Lost: what the host dropped meanwhile.
 */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { medianSorted } from "simple-statistics";
import { parseScenario } from "../../src/config/scenario.js";
import { composeLab, labNetwork } from "../../src/lab/compose.js";
import { LabNetwork } from "../../src/lab/veth.js";
import { loadAddon } from "../../src/native/addon.js";
import { CounterTable } from "../../src/native/counters.js";
import type { NativeAddon } from "../../src/native/types.js";

const kSettleMs = 500;
const kMeasureMs = 1000;

const rounds = Number(process.argv[2] ?? 3);
const addon = loadAddon<NativeAddon>();
const { scenario } = parseScenario({
  name: "forwarding",
  scale: 1,
  duration: "10s",
  topology: {
    link: { rate: "10Gbps", delay: "1us" },
    hosts: ["a", "b"],
    switches: ["sw"],
    links: ["a -- sw", "b -- sw"],
  },
  congestion: { algorithm: "none" },
  traffic: [{ from: "a", to: "b" }],
  probes: { interval: "10ms" },
});

interface Measured {
  /** Arrived at b, frames/s. */
  rate: number;
  /** Sent by a, frames/s. */
  sent: number;
}

async function measure(softSwitch: boolean): Promise<Measured> {
  const { nodes, links } = labNetwork(scenario);
  const network = await LabNetwork.create(nodes, links);
  const cpus = availableParallelism();
  const [switches, nics] = composeLab(scenario, {
    scale: 1,
    end: (link, node) => network.end(link, node),
    capture: () => undefined,
    cpus: cpus >= 2 ? { switches: cpus - 1, nics: 0 } : { switches: -1, nics: -1 },
  });
  if (switches === undefined || nics === undefined) throw new Error("no workers");
  const workers = (softSwitch ? [nics, switches] : [nics]).map((config) => new addon.Worker(config));
  try {
    if (!softSwitch) {
      const ports = ["a", "b"].map((port) => `link set dev ${port} master br0\n`);
      const bridge = [
        "link add name br0 type bridge stp_state 0 mcast_snooping 0\n",
        ...ports,
        "link set dev br0 up\n",
      ];
      await network.namespace("sw").run("ip", ["-batch", "-"], bridge.join(""));
      // Receive packet steering: by default a veth does the receiver's work on the sender's CPU.
      const steer = `for port in a b; do echo ${(1 << (cpus - 1)).toString(16)} > /sys/class/net/$port/queues/rx-0/rps_cpus; done`;
      if (cpus >= 2) {
        await network.namespace("sw").run("unshare", ["--mount", "sh", "-ec", `mount -t sysfs sysfs /sys; ${steer}`]);
      }
    }
    for (const worker of workers) worker.open();
    const begin = addon.monotonicNow() + 100e6;
    for (const worker of workers) worker.begin(begin);
    await sleep(100 + kSettleMs);
    const counters = new CounterTable(workers[0] as (typeof workers)[0]);
    const look = () => {
      counters.refresh();
      const flow = scenario.flows[0]?.id ?? "";
      const count = (name: string, device: string) => counters.sum(name, { device, flow });
      return { at: addon.monotonicNow(), sent: count("tx_packets", "a"), received: count("rx_packets", "b") };
    };
    const before = look();
    await sleep(kMeasureMs);
    const after = look();
    const seconds = (after.at - before.at) / 1e9;
    return { rate: (after.received - before.received) / seconds, sent: (after.sent - before.sent) / seconds };
  } finally {
    for (const worker of workers) worker.close();
    network.close();
  }
}

try {
  const rates = { "soft switch": [] as number[], "Linux bridge": [] as number[] };
  for (let round = 0; round < rounds; round++) {
    for (const name of ["soft switch", "Linux bridge"] as const) {
      const { rate, sent } = await measure(name === "soft switch");
      rates[name].push(rate);
      console.log(`${name}: ${thousands(rate)} frames/s arrive of ${thousands(sent)} sent`);
    }
  }
  const [soft, bridge] = [rates["soft switch"], rates["Linux bridge"]].map((list) =>
    medianSorted(list.sort((x, y) => x - y)),
  );
  console.log(`median: soft switch ${thousands(soft ?? 0)}, Linux bridge ${thousands(bridge ?? 0)} frames/s`);
  console.log(`ratio: ${((soft ?? 0) / (bridge ?? 1)).toFixed(2)}`);
} finally {
}

function thousands(value: number): string {
  return `${(value / 1000).toFixed(1)} k`;
}
