/** Two hosts and a `weir switch` between them on veth pairs, all in this process: for benchmarks and live tests of verbs. */
import { setTimeout as sleep } from "node:timers/promises";
import { composeSwitchWorker } from "../../src/device/compose.js";
import { loadSwitchDaemon } from "../../src/device/file/load.js";
import { inspectInterface } from "../../src/host/interface.js";
import { LabNetwork } from "../../src/host/veth.js";
import { loadAddon } from "../../src/native/addon.js";
import { CounterTable } from "../../src/native/counters.js";
import type { ForwardingEntry, NativeAddon, NativeWorker } from "../../src/native/types.js";
import { type Device, type DeviceOptions, openDevice } from "../../src/verbs/index.js";

export interface FabricOptions {
  /** Default 4176: RoCE path MTU 4096. */
  mtu?: number;
  /** Fields of a switch daemon's ports and of the switch itself, as in switch.yaml. */
  port?: object;
  switch?: object;
  /** Of both devices. */
  device?: Partial<DeviceOptions>;
  /** Runs when the links are there and the devices not yet. */
  prepare?: (network: LabNetwork) => Promise<void>;
}

const kHosts = ["a", "b"] as const;
export type Host = (typeof kHosts)[number];

export class Fabric {
  private constructor(
    /** Hosts a and b, each with an interface weir0, and sw. */
    readonly network: LabNetwork,
    private readonly worker: NativeWorker,
    private readonly table: CounterTable,
    readonly a: Device,
    readonly b: Device,
  ) {}

  /** Host a is 10.0.0.1 and fd00::1, b is 10.0.0.2 and fd00::2. */
  static async create({ mtu = 4176, port, switch: extra, device, prepare }: FabricOptions = {}): Promise<Fabric> {
    const network = await LabNetwork.create(
      [...kHosts.map((name) => ({ name, role: "host" as const })), { name: "sw", role: "switch" }],
      kHosts.map((from) => ({ from, to: "sw", mtu })),
    );
    const opened: { close(): void }[] = [network];
    try {
      await prepare?.(network);
      const place = (link: number, node: string) => {
        const { interface: name, namespaceFd } = network.end(link, node);
        return { interface: name, namespace: `/proc/${process.pid}/fd/${namespaceFd}` };
      };
      const { config } = loadSwitchDaemon("fabric", {
        inspect: inspectInterface,
        text: JSON.stringify({ ports: kHosts.map((_, link) => ({ ...place(link, "sw"), ...port })), ...extra }),
      });
      const addon = loadAddon<NativeAddon>();
      const worker = new addon.Worker(composeSwitchWorker(config));
      opened.push(worker);
      worker.open();
      worker.begin(addon.monotonicNow());
      const devices: Device[] = [];
      for (const [i, host] of kHosts.entries()) {
        const address = [`10.0.0.${i + 1}/24`, `fd00::${i + 1}/64`];
        devices.push(await openDevice({ ...place(i, host), address, ...device }));
        opened.push(devices[i] as Device);
      }
      while (worker.manifest() === undefined) await sleep(1);
      return new Fabric(network, worker, new CounterTable(worker), devices[0] as Device, devices[1] as Device);
    } catch (error) {
      for (const one of opened.reverse()) one.close();
      throw error;
    }
  }

  /** What the switch has counted so far: sums over ports and priorities, by name. */
  counters(): Map<string, number> {
    this.table.refresh();
    return this.table.sums();
  }

  /** What the switch has learned. */
  forwardingTable(): ForwardingEntry[] {
    return this.worker.forwardingTable(0);
  }

  close(): void {
    this.a.close();
    this.b.close();
    this.worker.close();
    this.network.close();
  }
}
