/**
 * gen -- dut -- sink: two veth pairs between three network namespaces, as in a benchmark of a switch.
 *
 * A veth has no queue of its own: a frame is received by whoever sends it, in the same system call. So what `gen` sends is delivered
 * to the device under test on CPU 0, the generator's; and what the device sends is delivered, up to the drop at `sink`, on its own CPU.
 * "one core" moves the receiving side of `gen`'s link to the device's CPU too: its NAPI becomes a thread that is pinned there.
 */
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { runTool } from "../../src/host/tools.js";
import { LabNetwork } from "../../src/host/veth.js";
import { hostMac } from "../../src/scenario/addresses.js";
import { type Counter, type Sending, type Source, type Station, send } from "./traffic.js";

export type Placement = "split" | "one core";

/** The generator's, and the device's: the last one. On a machine with one CPU they are the same. */
export const kCpus = { generator: 0, device: availableParallelism() - 1 };

export class Testbed {
  /** Kernel threads that work for the device. */
  readonly threads: string[] = [];

  private constructor(
    readonly network: LabNetwork,
    readonly gen: Station,
    readonly sink: Station,
  ) {}

  static async create(mtu = 1500): Promise<Testbed> {
    const [genMac, sinkMac] = [hostMac(0), hostMac(1)];
    const network = await LabNetwork.create(
      [
        { name: "gen", role: "host" },
        { name: "dut", role: "switch" },
        { name: "sink", role: "host" },
      ],
      [
        { from: "gen", to: "dut", mtu, fromMac: genMac },
        { from: "sink", to: "dut", mtu, fromMac: sinkMac },
      ],
    );
    try {
      const station = (name: string, mac: number): Station => ({
        namespace: network.namespace(name).path,
        interface: "weir0",
        mac: formatMac(mac),
      });
      const bed = new Testbed(network, station("gen", genMac), station("sink", sinkMac));
      // GRO gives a veth NAPI, without which live XDP frames are dropped. Frames of sockets go past it while the peer has TSO.
      await bed.ethtool("dut", "gen", "gro", "on");
      await bed.ethtool("sink", "weir0", "gro", "on");
      return bed;
    } catch (error) {
      network.close();
      throw error;
    }
  }

  async ethtool(node: string, name: string, ...features: string[]): Promise<void> {
    await this.network.namespace(node).run("ethtool", ["-K", name, ...features]);
  }

  /** From now on what arrives from gen is received on the device's CPU. Call it once the device lives. */
  async receiveOnDeviceCpu(): Promise<void> {
    await this.ethtool("gen", "weir0", "tso", "off");
    this.threads.push(...(await receiveOn(this.network, "dut", "gen", kCpus.device)));
  }

  sending(source: Source, size: number, seconds: number, rate = 0): Sending {
    return { source, from: this.gen, to: this.sink, size, seconds, rate, cpu: kCpus.generator };
  }

  /** A few frames from sink, so that the device learns where it is. */
  async announceSink(): Promise<void> {
    await send({ ...this.sending("packet", 64, 0.01, 1000), from: this.sink, to: this.gen });
  }

  /** Waits until frames pass, and has the device learn where both stations are. */
  async waitForForwarding(counter: Counter): Promise<void> {
    for (let i = 0; i < 50; i++) {
      await this.announceSink();
      const { count: before } = await counter.read();
      const { frames } = await send(this.sending("packet", 64, 0.05, 2000));
      await sleep(20);
      if ((await counter.read()).count - before >= frames / 2) return;
      await sleep(100);
    }
    throw new Error("the device under test does not forward");
  }

  close(): void {
    this.network.close();
  }
}

function formatMac(mac: number): string {
  return (mac.toString(16).padStart(12, "0").match(/../g) ?? []).join(":");
}

/**
 * What arrives at a veth is received by kernel threads on `cpu`, which are returned; of sk_buffs only those whose sender has no TSO.
 */
export async function receiveOn(network: LabNetwork, node: string, name: string, cpu: number): Promise<string[]> {
  const before = new Set(napiThreads(name));
  // A namespace sees its own interfaces in a /sys of its own.
  const script = `mount -t sysfs sysfs /sys; echo 1 > /sys/class/net/${name}/threaded`;
  await network.namespace(node).run("unshare", ["--mount", "sh", "-ec", script]);
  const threads = napiThreads(name).filter((one) => !before.has(one));
  for (const pid of threads) {
    await runTool("taskset", ["-pc", String(cpu), pid]);
    await runTool("renice", ["-n", "-20", "-p", pid]);
  }
  return threads;
}

/** Kernel threads that receive from links of this name. */
function napiThreads(name: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/comm`, "utf8").startsWith(`napi/${name}-`);
    } catch {
      return false; // ended meanwhile
    }
  });
}
