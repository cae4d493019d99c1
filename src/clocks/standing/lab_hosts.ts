/** Hosts of a lab as places of programs: namespaces and links, a kernel's stack and a NIC on each, and the processes there. */
import { writeFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeFolder } from "../../base/folder.js";
import type { Device } from "../../device/device.js";
import type { ProgramIdentity } from "../../device/protocol.js";
import { type Inhabitant, inhabitants, processNamespace } from "../../host/inhabitants.js";
import { Machine } from "../../host/machine.js";
import { NetworkNamespace } from "../../host/namespace.js";
import { LabNetwork } from "../../host/veth.js";
import type { NativeAddon, NativeWorker } from "../../native/types.js";
import { wallRate } from "../../native/wall.js";
import { hostMac } from "../../scenario/addresses.js";
import { Fabric } from "../../scenario/fabric.js";
import { otherSpelling } from "../../scenario/host_names.js";
import { Share } from "../../scenario/parts.js";
import type { Scenario } from "../../scenario/types.js";
import { kRdmaPriority } from "../../wire/priority.js";
import { gatewayAddresses, hostAddresses, labNetwork, stackNode } from "../lab/compose.js";
import { kNicInterface } from "../lab/devices.js";
import { hostEnvironment, showDevices } from "./enter.js";
import { type HostEvents, InhabitedHost, shapeKernel } from "./host.js";
import { kOwnFolder } from "./place.js";

const kStepMs = 10;
/** Time that programs may take to end when they are told to. */
const kPatienceMs = 2000;

export interface LabHostsEvents {
  /** Is called when the lab cannot go on, because process 1 of a host has ended. */
  failed(reason: string): void;
  warn(message: string, fields?: object): void;
}

export class LabHosts {
  readonly #machines = new Map<string, Machine>();
  readonly #hosts: InhabitedHost[] = [];
  readonly #fabric: Fabric;
  /** Names of the hosts that run here, and their positions in the scenario. */
  readonly #places: readonly { name: string; number: number }[];
  #network: LabNetwork | undefined;

  private constructor(
    private readonly scenario: Scenario,
    /** Folder of the lab, with a folder for each host. */
    private readonly folder: string,
    private readonly events: LabHostsEvents,
  ) {
    this.#fabric = new Fabric(scenario);
    this.#places = new Share(scenario).hosts.map((number) => ({ name: scenario.hosts[number]?.name ?? "", number }));
  }

  /** Makes namespaces, links and addresses. @param folder It exists. @throws WeirError where that fails: then nothing is left. */
  static async build(scenario: Scenario, folder: string, events: LabHostsEvents): Promise<LabHosts> {
    const hosts = new LabHosts(scenario, folder, events);
    await hosts.#build();
    return hosts;
  }

  get network(): LabNetwork {
    return this.#network as LabNetwork;
  }

  machine(host: string): Machine {
    return this.#machines.get(host) as Machine;
  }

  /** Pid of process 1 of a host that runs here. */
  pidOf(host: string): number | undefined {
    return this.#machines.get(host)?.pid;
  }

  /** Variables that are set for programs, the same on each host. */
  get environment(): Record<string, string> {
    return hostEnvironment(this.folder);
  }

  /** Limits the kernels to what their links at `scale` carry. */
  async shape(scale: number): Promise<void> {
    const lacking = new Set([...this.#machines.values()].map((one) => one.lacking).filter((what) => what !== ""));
    for (const { name, number } of this.#places) {
      const rate = wallRate(this.#fabric.attachment(number).link.rate, scale);
      const why = await shapeKernel(this.machine(name), rate);
      if (why !== undefined) lacking.add(why);
    }
    for (const what of lacking) this.events.warn("not all of a host could be had", { what });
  }

  /** Opens a NIC for each host. @param worker Worker of the NICs; its ports are open. */
  open(addon: NativeAddon, worker: NativeWorker, scale: number): void {
    this.#places.forEach(({ name, number }, index) => {
      const { link, neighbour } = this.#fabric.attachment(number);
      const addresses = hostAddresses(number);
      const nic = {
        name: kNicInterface,
        address: addresses[0],
        addresses,
        gateways: gatewayAddresses(this.#fabric, number).map((address) => ({
          address,
          prefix: isIPv6(address) ? 128 : 32,
        })),
        vlan: undefined,
        programs: { priority: kRdmaPriority, group: undefined, direct: false },
        classes: neighbour,
        congestion: this.scenario.congestion,
        port: { interface: kNicInterface, mac: hostMac(number), rate: wallRate(link.rate, scale), mtu: link.mtu },
      };
      this.#hosts.push(new InhabitedHost({ name, index, folder: join(this.folder, name), nic }, addon, worker));
    });
  }

  /** Lets programs find their NICs from now on. @throws WeirError where a socket cannot be made. */
  async serve(devices: ReadonlyMap<string, Device>, events: HostEvents): Promise<void> {
    for (const host of this.#hosts) {
      const { name, folder } = host.place;
      const device = devices.get(name);
      if (device === undefined) continue;
      await host.serve(device, events);
      const why = await showDevices(this.machine(name).pid, folder);
      if (why !== undefined) this.events.warn("not all of a host could be had", { what: why });
    }
  }

  /** Programs that use the NIC of host number `host` of those here. */
  programs(host: number): ReadonlyMap<number, ProgramIdentity> {
    return this.#hosts[host]?.programs() ?? new Map();
  }

  /** Tells whether a program of librdmacm listens at the port of that host's NIC. */
  isListenedAt(host: string, port: number): boolean {
    return this.#hosts.some((one) => one.place.name === host && one.isListenedAt(port));
  }

  /** Takes a frame that has come to host number `host` of those here and is not for queue pairs. */
  take(host: number, bytes: Buffer): void {
    this.#hosts[host]?.take(bytes);
  }

  /** Processes by host, without process 1. */
  processes(): Map<string, Inhabitant[]> {
    const namespaces = new Map([...this.#machines].map(([name, { pid }]) => [name, processNamespace(pid) ?? ""]));
    const found = inhabitants(new Set([...namespaces.values()].filter((one) => one !== "")));
    return new Map(
      [...this.#machines].map(([name, { pid }]) => [
        name,
        (found.get(namespaces.get(name) ?? "") ?? []).filter((one) => one.pid !== pid),
      ]),
    );
  }

  /**
   * Tells programs to end, and those that they start meanwhile. Those that still run after two seconds are left.
   * @param signals All of them are sent.
   */
  async endPrograms(...signals: readonly NodeJS.Signals[]): Promise<void> {
    const told = new Set<number>();
    const limit = Date.now() + kPatienceMs;
    for (;;) {
      const living = [...this.processes().values()].flat().map(({ pid }) => pid);
      for (const pid of living) {
        if (told.has(pid)) continue;
        for (const signal of signals) tryToKill(pid, signal);
        told.add(pid);
      }
      if (living.length === 0 || Date.now() >= limit) return;
      await sleep(kStepMs);
    }
  }

  /** Removes the programs' NICs; their threads are to be stopped next, and then leave() is called. Idempotent. */
  close(): void {
    for (const host of this.#hosts) host.close();
  }

  /** Kills whatever runs on the hosts, and removes interfaces and namespaces. Idempotent. */
  leave(): void {
    this.#network?.close();
  }

  async #build(): Promise<void> {
    const { scenario, folder, events } = this;
    const hosts = join(folder, "hosts");
    writeFileSync(hosts, hostsFile(scenario));
    const seenAs = join(folder, kOwnFolder);
    makeFolder(seenAs, 0o755);
    const { nodes, links } = labNetwork(scenario, true);
    const inhabited = new Map(this.#places.map(({ name }) => [stackNode(name), name]));
    this.#network = await LabNetwork.create(nodes, links, async (node) => {
      const name = inhabited.get(node.name);
      if (name === undefined) return NetworkNamespace.create();
      const machine = await Machine.create({
        name,
        hosts,
        folder: { own: join(folder, name), seenAs },
        onLost: () => events.failed(`process 1 of ${name} has ended`),
      });
      this.#machines.set(name, machine);
      return machine;
    });
  }
}

/** Sends a signal to a process that may be gone already. */
function tryToKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process is gone.
  }
}

/** Contents of /etc/hosts for programs: names in either spelling. */
export function hostsFile({ hosts }: Pick<Scenario, "hosts">): string {
  const own = hosts.flatMap(({ name }, i) => {
    const names = [name, otherSpelling(name) ?? []].flat().join(" ");
    return hostAddresses(i).map((address) => `${address} ${names}`);
  });
  return `${["127.0.0.1 localhost", "::1 localhost", ...own].join("\n")}\n`;
}
