/** A lab that stays: the network of a scenario, on whose hosts people run their own programs. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { asWeirError, WeirError } from "../base/error.js";
import { makeFolder } from "../base/folder.js";
import { macText } from "../base/mac.js";
import type { StandingReport } from "../device/protocol.js";
import { inhabitants, processNamespace } from "../host/inhabitants.js";
import { Machine } from "../host/machine.js";
import { NetworkNamespace } from "../host/namespace.js";
import { inUserNamespace } from "../host/rootless.js";
import { LabNetwork } from "../host/veth.js";
import type { LabWorker } from "../lab/access.js";
import { composeLab, hostAddresses, labNetwork } from "../lab/compose.js";
import { LabControl } from "../lab/control.js";
import { kNicInterface } from "../lab/devices.js";
import { loadAddon } from "../native/addon.js";
import { CounterTable } from "../native/counters.js";
import { kRecordWords, type NativeAddon, type NativeWorker, RecordKind } from "../native/types.js";
import { hostMac } from "../scenario/addresses.js";
import { Fabric } from "../scenario/fabric.js";
import type { Scenario } from "../scenario/types.js";
import { type HostEvents, InhabitedHost, shapeKernel } from "./host.js";
import { labFolder } from "./place.js";
import { standingScale } from "./scale.js";

/** Of what programs send, where they do not say: that of scenarios' traffic. */
const kPriority = 3;
const kStartMs = 5000;
const kStepMs = 10;
/** How long programs may take to end when they are told to. */
const kPatienceMs = 2000;
/** From the last worker's opening to the first packet, wall ns: both threads must be waiting by then. */
const kLeadNs = 20e6;
/** Counters of ports, of native/engine/wire_port.h. */
const kLost = ["host_rx_overrun", "host_rx_truncated", "host_rx_abandoned", "host_tx_errors"];

export interface StandingOptions {
  name: string;
  /** Of the scenario, for whoever asks. */
  file: string;
  version: string;
  /** Of control sockets. */
  directory: string;
  events: HostEvents & {
    /** Somebody asks for the end, who is told that it comes. */
    down(): void;
    /** It cannot go on: a thread, or process 1 of a host, has ended. */
    failed(reason: string): void;
    warn(message: string, fields?: object): void;
  };
}

export class StandingLab {
  readonly scale: number;
  readonly folder: string;
  readonly #machines = new Map<string, Machine>();
  readonly #hosts: InhabitedHost[] = [];
  readonly #workers: NativeWorker[] = [];
  readonly #words = new Float64Array(kRecordWords * 64);
  readonly #started = Date.now();
  #counted: [LabWorker, LabWorker] | [] = [];
  #network: LabNetwork | undefined;
  #control: LabControl | undefined;
  #closed = false;

  private constructor(
    private readonly scenario: Scenario,
    private readonly options: StandingOptions,
    private readonly addon: NativeAddon,
  ) {
    this.scale = standingScale(scenario);
    this.folder = labFolder(options.directory, options.name);
  }

  /** It is there when this returns. @throws WeirError where it cannot be: then nothing is left. */
  static async open(scenario: Scenario, options: StandingOptions): Promise<StandingLab> {
    const lab = new StandingLab({ ...scenario, flows: [], changes: [] }, options, loadAddon<NativeAddon>());
    try {
      await lab.#open();
      return lab;
    } catch (error) {
      lab.close();
      throw error;
    }
  }

  /** Programs are told to end, and killed when they do not. */
  async end(): Promise<void> {
    const living = () => [...this.#processes().values()].flat().map(({ pid }) => pid);
    // Shells that people type at ignore the one.
    for (const pid of living()) for (const signal of ["SIGTERM", "SIGHUP"] as const) tryToKill(pid, signal);
    const limit = Date.now() + kPatienceMs;
    while (Date.now() < limit && living().length > 0) await sleep(kStepMs);
    this.close();
  }

  /** Whatever runs on its hosts is killed. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#control?.ended();
    for (const host of this.#hosts) host.close();
    for (const worker of this.#workers) worker.stop();
    for (const worker of this.#workers) worker.close();
    this.#network?.close();
    this.#control?.close();
  }

  report(): StandingReport {
    const { name, file, version } = this.options;
    const { switches, hosts } = this.scenario;
    const fabric = new Fabric(this.scenario);
    const processes = this.#processes();
    return {
      name,
      version,
      pid: process.pid,
      file,
      scale: this.scale,
      uptime_s: (Date.now() - this.#started) / 1000,
      folder: this.folder,
      user_namespace: inUserNamespace(),
      switches: switches.map((one) => one.name),
      hosts: hosts.map((host, i) => {
        const { link, neighbour } = fabric.attachment(i);
        return {
          name: host.name,
          addresses: hostAddresses(i),
          mac: macText(hostMac(i)),
          interface: kNicInterface,
          mtu: link.mtu,
          switch: neighbour.name,
          rate: link.rate,
          pid: this.#machines.get(host.name)?.pid ?? 0,
          processes: processes.get(host.name) ?? [],
        };
      }),
      fidelity: {
        longest_gap_us: Math.max(0, ...this.#workers.map((worker) => worker.recentGap())) / 1000,
        lost_frames: this.#counted.reduce((sum, one) => sum + lostFrames(one.counters), 0),
      },
    };
  }

  async #open(): Promise<void> {
    const { addon, scenario, scale, options } = this;
    const { name, version, directory, events } = options;
    this.#control = await LabControl.open(name, directory, {
      version,
      metrics: null,
      standing: {
        standing: () => this.report(),
        down: () => {
          events.down();
          return { pid: process.pid };
        },
      },
    });
    makeFolder(this.folder, 0o755);
    const network = await this.#build();
    const end = (link: number, node: string) => network.end(link, node);
    const cpus = { switches: -1, nics: -1 };
    for (const config of composeLab(scenario, { scale, end, cpus, inhabited: true })) {
      const worker: NativeWorker = new addon.Worker(config, () => this.#onDoorbell(worker));
      this.#workers.push(worker);
      asWeirError(() => worker.open());
    }
    const [switches, nics] = this.#workers as [NativeWorker, NativeWorker];
    for (const index of scenario.hosts.keys()) this.#hosts.push(this.#host(index, nics));
    const begin = addon.monotonicNow() + kLeadNs;
    for (const worker of this.#workers) worker.begin(begin);
    for (let waited = 0; this.#workers.some((worker) => worker.manifest() === undefined); waited += kStepMs) {
      if (waited >= kStartMs)
        throw new WeirError("the lab's threads did not start", { hint: "is the host very busy?" });
      await sleep(kStepMs);
    }
    this.#counted = [counting(switches), counting(nics)];
    this.#control.begun({
      scenario,
      scale,
      switches: this.#counted[0],
      nics: this.#counted[1],
      now: () => (addon.monotonicNow() - begin) / scale,
      programs: (host) => this.#hosts[host]?.programs() ?? new Map(),
    });
    for (const host of this.#hosts) {
      const device = this.#control.devices.get(host.place.name);
      if (device !== undefined) await host.serve(device, events);
    }
  }

  /** Namespaces, links, addresses. */
  async #build(): Promise<LabNetwork> {
    const { scenario, folder, scale } = this;
    const { events } = this.options;
    const hosts = join(folder, "hosts");
    writeFileSync(hosts, hostsFile(scenario));
    const { nodes, links } = labNetwork(scenario, true);
    const lacking = new Set<string>();
    const network = await LabNetwork.create(nodes, links, async ({ name, role }) => {
      if (role === "switch") return NetworkNamespace.create();
      const machine = await Machine.create({
        name,
        hosts,
        onLost: () => events.failed(`process 1 of ${name} has ended`),
      });
      this.#machines.set(name, machine);
      if (machine.lacking !== "") lacking.add(machine.lacking);
      return machine;
    });
    this.#network = network;
    const fabric = new Fabric(scenario);
    for (const [i, { name }] of scenario.hosts.entries()) {
      const machine = this.#machines.get(name) as Machine;
      const why = await shapeKernel(machine, Math.round(fabric.attachment(i).link.rate / scale));
      if (why !== undefined) lacking.add(why);
    }
    for (const what of lacking) events.warn("not all of a host could be had", { what });
    return network;
  }

  #host(index: number, worker: NativeWorker): InhabitedHost {
    const { scenario, scale } = this;
    const { name } = scenario.hosts[index] as Scenario["hosts"][number];
    const { link, neighbour } = new Fabric(scenario).attachment(index);
    const addresses = hostAddresses(index);
    const nic = {
      name: kNicInterface,
      address: addresses[0],
      addresses,
      vlan: undefined,
      programs: { priority: kPriority, group: undefined },
      classes: neighbour,
      port: { interface: kNicInterface, mac: hostMac(index), rate: Math.round(link.rate / scale), mtu: link.mtu },
    };
    const machine = this.#machines.get(name) as Machine;
    return new InhabitedHost({ name, index, folder: join(this.folder, name), machine, nic }, this.addon, worker);
  }

  /** By host; without process 1. */
  #processes(): Map<string, StandingReport["hosts"][number]["processes"]> {
    const namespaces = new Map([...this.#machines].map(([name, { pid }]) => [name, processNamespace(pid) ?? ""]));
    const found = inhabitants(new Set([...namespaces.values()].filter((one) => one !== "")));
    return new Map(
      [...this.#machines].map(([name, { pid }]) => [
        name,
        (found.get(namespaces.get(name) ?? "") ?? []).filter((one) => one.pid !== pid),
      ]),
    );
  }

  #onDoorbell(worker: NativeWorker): void {
    if (this.#closed) return;
    for (;;) {
      const count = worker.drainRecords(this.#words);
      for (let i = 0; i < count; i++)
        this.#take(worker, this.#words.subarray(i * kRecordWords, (i + 1) * kRecordWords));
      if (count * kRecordWords < this.#words.length) break;
    }
    for (const { device, bytes } of worker.drainPunted()) {
      if (worker === this.#workers[1]) this.#hosts[device]?.take(bytes);
    }
  }

  #take(worker: NativeWorker, [, kind, , , value]: Float64Array): void {
    if (kind !== RecordKind.ended || value !== 1) return;
    this.options.events.failed(`a worker failed: ${worker.outcome().failure ?? "unknown reason"}`);
  }
}

/** Counters as they are when they are looked at. */
function counting(worker: NativeWorker): LabWorker {
  const counters = new CounterTable(worker);
  return {
    worker,
    get counters() {
      counters.refresh();
      return counters;
    },
  };
}

/** It may be gone already. */
function tryToKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It is.
  }
}

/** Frames that did not reach a device, or not the link, because of the machine. */
function lostFrames(counters: CounterTable): number {
  return kLost.reduce((sum, name) => sum + counters.sum(name), 0);
}

/** What programs see as /etc/hosts. */
export function hostsFile({ hosts }: Pick<Scenario, "hosts">): string {
  const own = hosts.flatMap(({ name }, i) => hostAddresses(i).map((address) => `${address} ${name}`));
  return `${["127.0.0.1 localhost", "::1 localhost", ...own].join("\n")}\n`;
}
